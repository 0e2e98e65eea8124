package model

import (
	"context"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Job is a compiled definition, the input of a launcher.
type Job struct {
	Name        string
	Description string
	Parameters  []core.ParameterSpec
	Flow        Flow
	// Finally runs after the flow in every execution, its elements in order, before the final
	// status is written. A failure is recorded and changes nothing. A restart never passes its
	// steps.
	Finally Flow
	// Expect must hold when the flow has completed, else the execution is FAILED with
	// ExitExpectFailed; nil means none.
	Expect *Condition
	// Listeners makes one execution's listeners (BeforeJob, AfterJob) and closes Closers; may be
	// nil.
	Listeners  func(ctx context.Context, v *core.View) ([]any, error)
	Definition core.Definition
	// Timeout bounds the flow's time; after it the execution is FAILED. 0 means none.
	Timeout     time.Duration
	Restartable bool
	Incrementer Incrementer
	// Inherit names parameters that the next instance, and a resumed one, take from the last
	// execution.
	Inherit []string
	// Bind checks what depends on the parameters; its error refuses the launch. May be nil.
	Bind func(ctx context.Context, params core.Parameters) error
	// CheckRestart judges another definition, or FormerTimes, before a resume. It returns the steps
	// that take the new one (rule F4a); its error refuses the launch (rule F4). nil allows all.
	CheckRestart func(ctx context.Context, last *core.JobExecution, history ports.History, params core.Parameters) (taken []string, err error)
	// Exclusive returns the launch's key: equal keys run one at a time (rule L12). Its error
	// refuses; nil means no key.
	Exclusive func(params core.Parameters) (core.ExclusiveKey, error)
	// RedriveOf is the execution of the redriven skips; 0 means none.
	RedriveOf core.JobExecutionID
	Parent    core.JobExecutionID
	// ParentCall is the first of the parent step's attempts that continue each other: the work
	// counts only for them (rule F2a).
	ParentCall core.StepExecutionID
	// ParentAnew is the execution since which the parent runs everything again; 0 means none.
	ParentAnew core.JobExecutionID
	// On restricts workers (rule PL1); nil means any.
	On *core.Placement
	// Confinement restricts paths (rule SE3); nil means none.
	Confinement *core.Confinement
}

// Incrementer returns the next instance's parameters after last, nil for the first. A
// *ParameterError names the value that cannot be counted on.
type Incrementer func(last *core.JobExecution, given core.Parameters) (core.Parameters, error)

// Flow is the graph of a job: elements and the explicit edges between them.
type Flow struct {
	Elements []Element
	// Strict makes an unmatched outcome an ErrNoTransition; otherwise the flow ends with it (rule
	// F1).
	Strict bool
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

// Index returns the element's index, or -1.
func (f Flow) Index(at Element) int { return slices.Index(f.Elements, at) }

// Element is a node of a flow.
type Element interface {
	ElementName() string
	Edges() []Transition
	// Condition must hold; nil always does. Else the element completes with ExitNoop; the verdict
	// is kept.
	Condition() *Condition
	element()
}

// Transition leads to a target when the exit code matches Pattern: `*` any run, `?` one character,
// empty is `*`. The most specific wins; with no match the flow ends with the outcome (rule F1).
// UNKNOWN is only matched by its exact exit code.
type Transition struct {
	Pattern string
	Success bool
	Target  Target
}

// TargetKind is the kind of a transition's target.
type TargetKind string

// The kinds of target.
const (
	TargetElement TargetKind = "element"
	TargetEnd     TargetKind = "end"
	TargetFail    TargetKind = "fail"
	TargetStop    TargetKind = "stop"
)

// Target is a transition's target. An end in a nested flow ends that flow; a stop stops the job.
type Target struct {
	Kind TargetKind
	Name string
	Exit string
	// Restart is where a restart continues after stop; empty means the element that stopped.
	Restart string
	Message string
}

// Step is one unit of work. Execute returns nil if it completed; it fills counters, position and
// context as they are committed. The step executor records start and end.
type Step interface {
	Name() string
	Kind() string
	Execute(ctx context.Context, run *StepRun) error
}

// PartsPreparer prepares something before a step's parts, such as a table, and before the plan is
// stored.
type PartsPreparer interface {
	PrepareParts(ctx context.Context, run *StepRun) error
}

// Targeted names, before the step starts, targets that no other step or partition may write.
type Targeted interface {
	Targets(ctx context.Context, run *StepRun) ([]string, error)
}

// TimeLimited bounds a step's time; 0 means no limit.
type TimeLimited interface{ Timeout() time.Duration }

// StepExecutor runs a step and records its start and its end.
type StepExecutor interface {
	// Execute returns the final record. A step's failure is in it; the error concerns the record
	// itself.
	Execute(ctx context.Context, step Step, run *StepRun) (*core.StepExecution, error)
}

// Listened is implemented by steps with listeners: the executor makes them, calls BeforeStep and
// AfterStep, and closes the Closers.
type Listened interface {
	StepListeners(ctx context.Context, run *StepRun) ([]any, error)
}

// Expecting is a step's gate: if it does not hold, the step is FAILED with ExitExpectFailed. A
// chunk step's commits stay, a tasklet is rolled back.
type Expecting interface{ Expect() *Condition }

// Promoting is implemented by steps that copy context keys to the job's.
type Promoting interface{ Promote() *Promotion }

// Composite only runs other steps or jobs. After the context's end they return by themselves: the
// executor waits instead of abandoning them (rule L8).
type Composite interface{ Composite() }
