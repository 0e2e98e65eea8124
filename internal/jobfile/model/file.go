package model

import (
	"maps"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/jobfile/itemtype"
	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/source"
	"github.com/surfin-batch/surfin/internal/jobfile/template"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// File is a checked job file.
type File struct {
	Doc  *yamlfile.Document
	From source.Source
	// Folder is the absolute folder of the file; empty means that the file is not on the disk.
	Folder string
	Name   string
	Model  *language.Job
	Specs  []core.ParameterSpec
	// Flow and Finally are the elements as a tree, steps all steps and child jobs in it, in the order of the
	// file.
	Flow, Finally *List
	Steps         []*Step
	Outs          map[string]*row.Schema // named results of steps, where they have types
	Types         *itemtype.Types
	Listeners     []*ComponentUse
	Expect        *Condition
	Schedule      *Schedule           // nil means none
	On            *core.Placement     // of the registered job; nil means any worker
	Exclusive     *expression.Program // the key; nil means that the file has none
	Included      []source.Included   // the files that it includes, at any depth
	Clock         template.Clock
	Now           func() time.Time
	clockDefaults []clockDefault
	BadDefaults   bool // the file's defaults have a mistake
}

// clockDefault is the default of a parameter that depends on the time.
type clockDefault struct {
	parameter string
	template  *template.Template
}

// StepNames are the names of all steps and child jobs, also nested ones and those of finally, in the order of
// the file.
func (f *File) StepNames() []string {
	names := make([]string, len(f.Steps))
	for i, s := range f.Steps {
		names[i] = s.Name
	}
	return names
}

// StepNamed returns the step of that name, without those of finally, or nil.
func (f *File) StepNamed(name string) *Step {
	for _, s := range f.Steps {
		if s.Name == name && !s.Element.List.Finally {
			return s
		}
	}
	return nil
}

// Components are all uses of components in the file, without its child jobs.
func (f *File) Components() []*ComponentUse {
	uses := slices.Clone(f.Listeners)
	for _, s := range f.Steps {
		uses = append(uses, s.Components()...)
	}
	if f.Flow != nil {
		f.Flow.Walk(func(e *Element) {
			if e.Decider != nil {
				uses = append(uses, e.Decider)
			}
		})
	}
	return uses
}

func (f *File) IsSecret(name string) bool {
	return slices.ContainsFunc(f.Specs, func(s core.ParameterSpec) bool { return s.Secret && s.Name == name })
}

// Place is the position of a node in messages.
func (f *File) Place(n *yamlfile.Node) string {
	if f.Doc.Describe != nil {
		return f.Doc.Place(n)
	}
	return n.Position(f.Doc.Path)
}

// Definition returns the texts of the file, its includes and its child jobs at any depth, and one hash of
// them (rule F4).
func (f *File) Definition() core.Definition {
	files := map[string]core.DefinitionFile{}
	f.addFiles("", files)
	return core.NewDefinition(f.Doc.Text, f.From.Location(), slices.Collect(maps.Values(files)))
}

// addFiles adds the files that this one names. name is its own name.
func (f *File) addFiles(name string, files map[string]core.DefinitionFile) {
	for _, i := range f.Included {
		at := source.NameFrom(name, i.Name)
		files[at] = core.DefinitionFile{Name: at, Text: i.Doc.Text, Path: i.From.Location()}
	}
	for _, s := range f.Steps {
		if s.Child == nil || s.Child.File == nil {
			continue
		}
		child := s.Child.File
		at := source.NameFrom(name, s.Child.Model.File)
		if _, known := files[at]; !known {
			files[at] = core.DefinitionFile{Name: at, Text: child.Doc.Text, Path: child.From.Location()}
			child.addFiles(at, files)
		}
	}
}
