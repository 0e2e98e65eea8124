// Package outline is the structure of a checked job file as data: the elements of its flow in the order
// of the file, each with its work, its transitions, its conditions and its place in the text.
// It imports jobfile's language and tree, model, yamlfile and core.
package outline

import (
	"slices"

	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Job is the outline of a job file.
type Job struct {
	// Flow has the elements in the order of the file; the first one starts.
	Flow []Element `json:"flow"`
	// Finally has the steps that run at the end of every execution.
	Finally []Element `json:"finally,omitempty"`
	// Expect is the job's own condition.
	Expect string `json:"expect,omitempty"`
}

// Element is an element of a flow.
type Element struct {
	Name string        `json:"element"`
	Kind language.Kind `json:"kind" enum:"step,decide,split,flow,atomic,job"`
	// Work is the kind of a step: chunk, tasklet or tasks.
	Work string `json:"work,omitempty" enum:"chunk,tasklet,tasks"`
	// Components are in the order of the pipeline.
	Components []Component `json:"components,omitempty"`
	// Handler executes a step's tasks.
	Handler string `json:"handler,omitempty"`
	// File is the job file of a child job.
	File string `json:"file,omitempty"`
	// OnWorkers: processes other than the job's may do the work.
	OnWorkers bool   `json:"on_workers,omitempty"`
	When      string `json:"when,omitempty"`
	Expect    string `json:"expect,omitempty"`
	// Next is empty in finally.
	Next []Edge `json:"next,omitempty"`
	// Flows are the branches of a split, or the one flow of a flow or a group.
	Flows [][]Element `json:"flows,omitempty"`
	Place Place       `json:"place"`
}

// Component is one component of a step or a decision.
type Component struct {
	Kind registry.Kind `json:"kind"`
	Name string        `json:"name"`
}

// Edge is a transition to an element of the same flow, or to the end of the flow.
type Edge struct {
	// On is the pattern of exit codes; of a default edge "*", after success.
	On string `json:"on"`
	// Default: the file does not state it, and it is taken after success.
	Default bool `json:"default,omitempty"`
	// When is the condition of a choice.
	When string           `json:"when,omitempty"`
	Kind model.TargetKind `json:"kind" enum:"element,end,fail,stop"`
	// Element is the target of kind element.
	Element string `json:"element,omitempty"`
	// Exit replaces the exit code of an end.
	Exit string `json:"exit,omitempty"`
	// Restart is the element at which a restart continues after a stop.
	Restart string `json:"restart,omitempty"`
	Message string `json:"message,omitempty"`
}

// Place is where an element is written. A job in Go has only Text.
type Place struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	// LastLine is the last line of the element.
	LastLine int `json:"last_line,omitempty"`
	// Text is the place in messages, such as "job.yaml:11:5" or "job bill: step load".
	Text string `json:"text"`
}

// Of returns the outline of a file.
func Of(f *tree.File) Job {
	j := Job{Flow: elements(f, f.Flow), Expect: conditionText(f.Expect)}
	if f.Finally != nil {
		j.Finally = elements(f, f.Finally)
	}
	return j
}

func elements(f *tree.File, list *tree.List) []Element {
	all := make([]Element, 0, len(list.Elements))
	for _, e := range list.Elements {
		of := Element{Name: e.Name, Kind: e.Kind, When: conditionText(e.When), Place: PlaceOf(f, e.Model.Node)}
		of.work(e)
		if !list.Finally {
			of.Next = edges(e)
		}
		for _, inner := range e.Lists {
			of.Flows = append(of.Flows, elements(f, inner))
		}
		all = append(all, of)
	}
	return all
}

func (of *Element) work(e *tree.Element) {
	switch s := e.Step; {
	case e.Kind == language.SplitKind:
		of.OnWorkers = e.Model.Split.Remote != "" && e.Model.Split.Remote != "false"
	case e.Decider != nil:
		of.Components = []Component{{e.Decider.Kind, e.Decider.Component.Name}}
	case s == nil:
	case s.Child != nil:
		of.File = s.Child.Model.File
		of.OnWorkers = s.Child.Model.Remote != "" && s.Child.Model.Remote != "false"
	default:
		of.Expect = conditionText(s.Expect)
		of.OnWorkers = s.Tasks != nil || s.Model.Partition != nil && s.Model.Partition.Remote
		for _, u := range s.Components() {
			of.Components = append(of.Components, Component{u.Kind, u.Component.Name})
		}
		switch {
		case s.Tasks != nil:
			of.Work, of.Handler = "tasks", s.Tasks.Model.Handler
		case s.Tasklet != nil:
			of.Work = "tasklet"
		default:
			of.Work = "chunk"
		}
	}
}

func edges(e *tree.Element) []Edge {
	list := make([]Edge, 0, len(e.Edges))
	for _, t := range e.Edges {
		edge := Edge{
			On: t.Pattern, Default: t.Success && !states(e), Kind: t.Target.Kind, Element: t.Target.Name, Exit: t.Target.Exit,
			Restart: t.Target.Restart, Message: t.Target.Message,
		}
		if i := slices.IndexFunc(e.Choices, func(c tree.Choice) bool { return c.Verdict == t.Pattern }); i >= 0 {
			edge.When = conditionText(e.Choices[i].When)
		}
		list = append(list, edge)
	}
	return list
}

// states reports whether the file itself says where the element leads after success.
func states(e *tree.Element) bool {
	for _, c := range e.Keys.Next.Cases {
		if c.Pattern == "" {
			return true
		}
	}
	return false
}

func conditionText(c *tree.Condition) string {
	if c == nil {
		return ""
	}
	return c.Text
}

// PlaceOf is the place of a node.
func PlaceOf(f *tree.File, n *yamlfile.Node) Place {
	if text := f.Doc.Place(n); text != "" {
		return Place{Text: text}
	}
	p := Place{File: f.Doc.Path, Line: n.Line, Column: n.Col, LastLine: n.LastLine(), Text: n.Position(f.Doc.Path)}
	if d := n.Document(); d != nil {
		p.File = d.Path
	}
	return p
}
