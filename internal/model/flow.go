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
	// Finally runs after the flow in every execution, whatever its outcome, before the final status is
	// written: its elements one after the other, regardless of failures. A failure there is recorded
	// and changes nothing. A restart never passes its steps.
	Finally Flow
	// Expect is checked when the flow has completed: if it does not hold, the execution is FAILED with
	// ExitExpectFailed. nil expects nothing.
	Expect *Condition
	// Listeners makes the listeners of one execution, of any of the interfaces BeforeJob and AfterJob;
	// nil means none. Closers among them are closed.
	Listeners  func(ctx context.Context, v *core.View) ([]any, error)
	Definition core.Definition
	// Timeout bounds the time of the flow in one execution; after it the execution is FAILED. 0 means
	// no bound.
	Timeout time.Duration
	// Restartable is false for jobs that must not run a failed instance again.
	Restartable bool
	// Incrementer makes the parameters of the next instance; nil means none.
	Incrementer Incrementer
	// Inherit names the parameters that the next instance, and a resumed one, take from the last
	// execution if they are not given. The others have their defaults.
	Inherit []string
	// Bind checks and fixes everything that depends on the launch's parameters, before an execution
	// exists; nil if nothing does. Its error refuses the launch.
	Bind func(ctx context.Context, params core.Parameters) error
	// CheckRestart is asked before an instance is resumed whose last execution had another
	// definition, or FormerTimes. It returns the steps that began and take the new definition, since nothing
	// of them is committed (rule F4a). Its error refuses the launch (rule F4). nil: any
	// definition may follow.
	CheckRestart func(ctx context.Context, last *core.JobExecution, history ports.History, params core.Parameters) (taken []string, err error)
	// Exclusive returns the key of a launch with these parameters: executions with the same key run one
	// at a time (rule L12). Its error refuses the launch. nil means no key.
	Exclusive func(params core.Parameters) (core.ExclusiveKey, error)
	// RedriveOf is the execution of the skipped items that the job redrives; 0 means none.
	RedriveOf core.JobExecutionID
	// Parent is the execution that runs the job as a step; 0 means none.
	Parent core.JobExecutionID
	// ParentCall is the first of the attempts at the parent's step that continue each other: the job's
	// work counts only for them (rule F2a).
	ParentCall core.StepExecutionID
	// ParentAnew is the execution since which the parent, and with it the job, runs everything again; 0
	// means neither does.
	ParentAnew core.JobExecutionID
	// On restricts the workers that may run the next execution (rule PL1); nil means any.
	On *core.Placement
	// Confinement restricts the paths of the next execution (rule SE3); nil means no restriction.
	Confinement *core.Confinement
}

// Incrementer returns the parameters of the instance after last, the newest execution of the job, which
// is nil if there was none. given are the caller's parameters. A *ParameterError names the value of
// last that cannot be counted on.
type Incrementer func(last *core.JobExecution, given core.Parameters) (core.Parameters, error)

// Flow is the graph of a job: elements and the explicit edges between them.
type Flow struct {
	// Elements in the order of the definition; the first one starts.
	Elements []Element
	// Strict makes an outcome that no transition matches an ErrNoTransition; otherwise the flow ends
	// with that outcome (rule F1).
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

// Index returns the index of the element in the definition, or -1 if the flow does not have it.
func (f Flow) Index(at Element) int { return slices.Index(f.Elements, at) }

// Element is a node of a flow. The set of kinds is closed: the types of
// element.go.
type Element interface {
	ElementName() string
	Edges() []Transition
	// Condition must hold for the element to run; nil always holds. If it does not hold, the element
	// completes with ExitNoop; the verdict is kept.
	Condition() *Condition
	element()
}

// Transition leads from an element to a target when the element's exit code matches Pattern: `*` is any
// run of characters, `?` one character; an empty pattern is `*`. The most specific pattern wins, in any
// order; with no match the flow ends with the element's outcome (rule F1). An outcome UNKNOWN is only
// matched by a pattern that is its exit code, without wildcards.
type Transition struct {
	Pattern string
	// Success makes it match outcomes of status COMPLETED only.
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

// Target is the target of a transition. Ends of a nested flow end that flow: its element's outcome is
// then matched by its own transitions; a stop stops the job.
type Target struct {
	Kind TargetKind
	// Name is the element, for TargetElement: one of the same flow.
	Name string
	// Exit replaces the exit code, for end, fail and stop; empty means COMPLETED, FAILED, STOPPED.
	Exit string
	// Restart is the element of the same flow at which a restart continues, for stop; empty means the
	// element that stopped.
	Restart string
	// Message is shown to the operator, for stop.
	Message string
}

// Step is one unit of work. Execute runs it and returns nil if it completed; it fills run.Step's
// counters, position and context as they are committed. The step executor, not the step, records start
// and end.
type Step interface {
	Name() string
	// Kind is a word for the definition and messages: "chunk", "tasklet".
	Kind() string
	Execute(ctx context.Context, run *StepRun) error
}

// PartsPreparer is implemented by steps that prepare something before they run in parts, such as a
// table that all parts fill. PrepareParts is called before the plan is stored, with the run of the
// first part.
type PartsPreparer interface {
	PrepareParts(ctx context.Context, run *StepRun) error
}

// PartsJoiner is implemented by steps that may publish one result of all their parts. JoinParts is called when all are
// complete, with their records in order and the run of the whole step; it stores its own position there.
type PartsJoiner interface {
	JoinsParts() bool
	JoinParts(ctx context.Context, run *StepRun, parts []core.StepExecution) error
}

// Targeted is implemented by steps that know, before they start, the targets that no other step or
// partition may write, such as files: a text for each.
type Targeted interface {
	Targets(ctx context.Context, run *StepRun) ([]string, error)
}

// TimeLimited is implemented by steps that may run for a limited time only; the
// step executor ends their context when it is over. 0 means no limit.
type TimeLimited interface{ Timeout() time.Duration }

// StepExecutor runs a step and records its start and its end.
type StepExecutor interface {
	// Execute returns the final record. A failure of the step is in the record; the error concerns the
	// record itself (lost owner, database gone).
	Execute(ctx context.Context, step Step, run *StepRun) (*core.StepExecution, error)
}

// Listened is implemented by steps that have listeners: the step executor makes them before Execute,
// sets StepRun.Listeners, calls the step's own callbacks (BeforeStep, AfterStep), and closes the
// Closers.
type Listened interface {
	StepListeners(ctx context.Context, run *StepRun) ([]any, error)
}

// Expecting is implemented by steps with a gate: a condition for a step that did its work to be
// COMPLETED. If it does not hold, the step is FAILED with ExitExpectFailed; the commits of a chunk step
// stay, the transaction of a tasklet is rolled back.
type Expecting interface{ Expect() *Condition }

// Promoting is implemented by steps that copy keys of their context to the job's
// when they end.
type Promoting interface{ Promote() *Promotion }

// Composite is implemented by steps that only run other steps or jobs, each through an executor of its
// own. When the context has ended they return by themselves, because everything they run is bounded:
// the step executor waits for them instead of abandoning them (rule L8).
type Composite interface{ Composite() }
