package tree

import (
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/template"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/config"
)

// Step is a checked step.
type Step struct {
	Name        string
	Element     *Element
	Model       *language.Step
	Child       *Child
	On          *core.Placement // of its partitions or tasks; nil means any worker
	Reader      *ComponentUse
	Processors  []*ComponentUse
	Writers     []*ComponentUse
	Tasklet     *ComponentUse
	Listeners   []*ComponentUse
	Tasks       *Tasks
	Partitioner *ComponentUse
	Part        map[string]expression.Var
	Expect      *Condition
	Promote     *model.Promotion
	Chunk       language.ChunkDefaults
	Retry       *config.ItemRetryConfig
	Skip        *config.ItemSkipConfig
	Timeout     *time.Duration
	Transaction *language.Transaction
}

// Components returns the step's components in the order of the pipeline.
func (s *Step) Components() []*ComponentUse {
	list := append([]*ComponentUse{s.Partitioner}, s.Work()...)
	return slices.DeleteFunc(append(list, s.Listeners...), func(u *ComponentUse) bool { return u == nil })
}

// Work are the components that do the work of the step.
func (s *Step) Work() []*ComponentUse {
	list := append([]*ComponentUse{s.Reader}, s.Processors...)
	list = append(append(list, s.Writers...), s.Tasklet)
	return slices.DeleteFunc(list, func(u *ComponentUse) bool { return u == nil })
}

// AllowsStart reports whether a completed step runs again.
func (s *Step) AllowsStart() bool {
	return s.Child == nil && s.Model.AllowStartIfComplete
}

// Positioned returns the first processor that has a position, or nil.
func (s *Step) Positioned() *ComponentUse {
	for _, u := range s.Processors {
		if u != nil && u.Component.Positioned {
			return u
		}
	}
	return nil
}

// InTransaction returns the first processor that works in the chunk's transaction, or nil.
func (s *Step) InTransaction() *ComponentUse {
	for _, u := range s.Processors {
		if u != nil && u.Component.InTransaction {
			return u
		}
	}
	return nil
}

// Child is a job as an element of another one.
type Child struct {
	Model *language.Child
	// File is nil if it could not be used; missing is the reason.
	File       *File
	Missing    string
	Parameters []ChildParameter
	On         *core.Placement // nil means any worker
}

// ChildParameter is the value that the file gives to one of the child's parameters.
type ChildParameter struct {
	Spec core.ParameterSpec
	Node *yamlfile.Node
	Late *template.LateValue
}

// Tasks is the checked work of a step of tasks.
type Tasks struct {
	Model *language.Tasks
	Late  map[*yamlfile.Node]*template.LateValue
}

// IsLate reports whether a value needs more than the launch knows.
func (d *Tasks) IsLate(n *yamlfile.Node) bool {
	return d.Late[n] != nil && d.Late[n].AtStep || slices.ContainsFunc(n.Items, d.IsLate) ||
		slices.ContainsFunc(n.Entries, func(e yamlfile.Entry) bool { return d.IsLate(e.Value) })
}
