package core

import (
	"context"
	"fmt"
	"time"
)

// Job is a compiled definition: what a launcher runs.
type Job struct {
	Name        string
	Description string
	Parameters  []ParameterSpec
	Flow        Flow
	Definition  Definition
	// Restartable is false for jobs of which a failed instance must not run again.
	Restartable bool
	// Bind checks and fixes what depends on the launch's parameters, before an
	// execution exists; nil if nothing does. Its error refuses the launch.
	Bind func(ctx context.Context, params Parameters) error
	// RedriveOf is the execution whose skipped items the job redrives; 0: none.
	RedriveOf JobExecutionID
}

// Flow is the graph of a job: elements and the explicit edges between them.
type Flow struct {
	// Elements in the order of the definition; the first one starts.
	Elements []Element
}

// Find returns the named element.
func (f Flow) Find(name string) (Element, bool) {
	for _, e := range f.Elements {
		if e.ElementName() == name {
			return e, true
		}
	}
	return nil, false
}

// Element is a node of a flow. The set of kinds is closed: StepElement.
type Element interface {
	ElementName() string
	Edges() []Transition
	element()
}

// StepElement is a node that runs a step.
type StepElement struct {
	Step Step
	Next []Transition
	// AllowStartIfComplete runs the step again on a restart though it completed.
	AllowStartIfComplete bool
	// StartLimit is the most attempts of the step per instance; 0: no limit.
	StartLimit int
}

// ElementName is the step's name.
func (e *StepElement) ElementName() string { return e.Step.Name() }

// Edges are the transitions that leave the step.
func (e *StepElement) Edges() []Transition { return e.Next }

func (*StepElement) element() {}

// Transition leads from an element to a target when the element's exit code
// matches Pattern: `*` is any run of characters, `?` one character. The most
// specific pattern wins whatever the order; with no match the job ends with the
// element's outcome (rule F1).
type Transition struct {
	Pattern string
	Target  Target
}

// TargetKind says what a transition leads to.
type TargetKind string

// The kinds of target.
const (
	TargetElement TargetKind = "element"
	TargetEnd     TargetKind = "end"
	TargetFail    TargetKind = "fail"
	TargetStop    TargetKind = "stop"
)

// Target is where a transition leads.
type Target struct {
	Kind TargetKind
	// Name is the element, for TargetElement.
	Name string
	// Exit replaces the job's exit code, for end and fail; empty: COMPLETED, FAILED.
	Exit string
	// Restart is the element at which a restart goes on, for stop; empty: the
	// element that stopped.
	Restart string
	// Message is shown to the operator, for stop.
	Message string
}

// Step is one unit of work. Execute runs it and returns nil if it completed; it
// fills run.Step's counters, position and context as facts become committed. The
// step executor, not the step, records start and end.
type Step interface {
	Name() string
	// Kind is a word for the definition and messages: "chunk", "tasklet".
	Kind() string
	Execute(ctx context.Context, run *StepRun) error
}

// StepRun is what a step is told and what it reports.
type StepRun struct {
	Job *JobExecution
	// JobRef is the guard of writes about the job, such as the start of this step.
	JobRef JobRef
	// Earlier is the unfinished attempt of the same step that this one goes on
	// with; nil for a first attempt or a repetition from the start.
	Earlier *StepExecution
	// Step is this attempt's record; the step executor makes it. On a restart it
	// begins with the position and context of Earlier, and with counters of zero:
	// counters are those of one attempt.
	Step *StepExecution
	// Ref is the guard of every write about this step.
	Ref StepRef
	// Checkpoints is where a chunk step commits its progress: the repository, or
	// what CommitIn put in its place.
	Checkpoints CheckpointStore
	// Stores finds the place for steps that work in other databases than the
	// repository's; nil: they are refused.
	Stores   CheckpointStores
	claimed  ClaimedStore
	Observer Observer
	// Stop is closed when a stop was asked for: finish what is in hand, then
	// return ErrStopped.
	Stop <-chan struct{}
	// Asked is the request of the launcher's caller, which Stop follows a moment
	// later; Stopping sees it at once. It may be nil.
	Asked <-chan struct{}
	// Earlier steps of this instance, by name: expressions read them.
	Steps map[string]StepExecution
}

// Restarted reports whether this attempt goes on where an earlier one ended.
func (r *StepRun) Restarted() bool { return r.Earlier != nil }

// Stopping reports whether a stop was asked for.
func (r *StepRun) Stopping() bool {
	select {
	case <-r.Stop:
		return true
	case <-r.Asked:
		return true
	default:
		return false
	}
}

// TimeLimited is implemented by steps that may run for a limited time only; the
// step executor ends their context when it is over. 0 means no limit.
type TimeLimited interface{ Timeout() time.Duration }

// StepExecutor runs a step and records its start and its end.
type StepExecutor interface {
	// Execute returns the final record. A failure of the step is in the record;
	// the error is about the record itself (lost owner, database gone).
	Execute(ctx context.Context, step Step, run *StepRun) (*StepExecution, error)
}

// Validate reports what is wrong with the flow as a graph: no elements, names
// used twice, targets that do not exist.
func (f Flow) Validate() error {
	if len(f.Elements) == 0 {
		return fmt.Errorf("the flow is empty")
	}
	seen := map[string]bool{}
	for _, e := range f.Elements {
		if seen[e.ElementName()] {
			return fmt.Errorf("element %s is there twice", e.ElementName())
		}
		seen[e.ElementName()] = true
	}
	for _, e := range f.Elements {
		for _, t := range e.Edges() {
			if t.Target.Kind == TargetElement && !seen[t.Target.Name] {
				return fmt.Errorf("element %s: next %q: no such element", e.ElementName(), t.Target.Name)
			}
			if t.Target.Restart != "" && !seen[t.Target.Restart] {
				return fmt.Errorf("element %s: restart %q: no such element", e.ElementName(), t.Target.Restart)
			}
		}
	}
	return nil
}
