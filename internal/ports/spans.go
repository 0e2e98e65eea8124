package ports

import (
	"context"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Spans reads when the work of an instance began and ended: without contexts, positions and results,
// which are large. A zero end means that it lasts, or that its end was not recorded.
type Spans interface {
	// AttemptSpans returns the newest executions of an instance, newest first.
	AttemptSpans(ctx context.Context, id core.JobInstanceID, limit int) ([]AttemptSpan, error)
	// StepSpans returns step executions of an execution with a greater ID than after, by ID.
	StepSpans(ctx context.Context, id core.JobExecutionID, after core.StepExecutionID, limit int) ([]StepSpan, error)
	// MainSpans returns those of StepSpans that are no parts.
	MainSpans(ctx context.Context, id core.JobExecutionID, after core.StepExecutionID, limit int) ([]StepSpan, error)
	// Holds returns when the work of an execution was planned, parked, resumed, assigned and returned, in order, from the
	// place after on, with the place of the next page; 0 means the last one.
	Holds(ctx context.Context, id core.JobExecutionID, after int64) (list []Hold, next int64, err error)
	// TaskSpans returns at most limit of the attempts of the tasks that the steps have submitted, and of the tasks without one.
	TaskSpans(ctx context.Context, steps []core.StepExecutionID, limit int) ([]TaskSpan, error)
	// ChildSpans returns at most limit of the executions of child jobs.
	ChildSpans(ctx context.Context, parents []core.JobExecutionID, limit int) ([]ChildSpan, error)
	// WorkerNames returns the names of the workers that the history still knows, by the owner of their parts.
	WorkerNames(ctx context.Context) (map[core.Owner]string, error)
}

// AttemptSpan is an execution of an instance.
type AttemptSpan struct {
	ID      core.JobExecutionID
	Attempt int
	Status  core.Status
	Owner   core.Owner
	// Resumed: it has, or had, no owner for a while.
	Resumed bool
	// Steps is the number of its step executions.
	Steps                         int64
	CreatedAt, StartedAt, EndedAt time.Time
}

// StepSpan is a step execution: a step, or a part of one.
type StepSpan struct {
	ID        core.StepExecutionID
	Execution core.JobExecutionID
	First     core.StepExecutionID // as in core.StepExecution
	Name      string
	Visit     core.Visit
	Manager   core.StepExecutionID // 0 unless it is a part
	Branch    core.StepExecutionID
	Assigned  int
	Status    core.Status
	Counters  core.Counters
	Owner     core.Owner
	// LeaseUntil is of the part, or of the part that walks the branch of the step.
	LeaseUntil time.Time
	// StartedAt of a part is when it began; while it waits for a worker, when it was planned.
	StartedAt, EndedAt time.Time
}

// HoldKind is an event of work that can wait.
type HoldKind string

// The kinds. A park, a plan and a release begin a wait; a resume and an assignment end it.
const (
	HoldPark    HoldKind = "park"
	HoldResume  HoldKind = "resume"
	HoldPlan    HoldKind = "plan"
	HoldAssign  HoldKind = "assign"
	HoldRelease HoldKind = "release"
)

// Hold is a moment at which work began to wait, or was taken up.
type Hold struct {
	At   time.Time
	Kind HoldKind
	// Step is 0 for the execution; of a plan, the step that planned its parts.
	Step core.StepExecutionID
	// Owner let the work go: of an assignment, the one that lost it, or none. A resume has the new owner.
	Owner core.Owner
}

// TaskSpan is an attempt of a task, or a task that has none.
type TaskSpan struct {
	Task, Group int64
	// Step submitted the task; of several attempts of the step, the last one.
	Step core.StepExecutionID
	Type string
	// Number is the attempt; 0 means that the task has none.
	Number int
	// State is the attempt's; without one, the task's.
	State  string
	Worker string
	// Ready means that nothing but a worker was missing from CreatedAt on: no delay and no other task.
	Ready                         bool
	CreatedAt, StartedAt, EndedAt time.Time
}

// ChildSpan is the execution of a child job.
type ChildSpan struct {
	ID      core.JobExecutionID
	JobName string
	Parent  core.JobExecutionID
	// Call is StepSpan.First of the step that runs it.
	Call                          core.StepExecutionID
	Status                        core.Status
	Owner                         core.Owner
	CreatedAt, StartedAt, EndedAt time.Time
}

// Parts reads the parts of a step in pages.
type Parts interface {
	// PartedSteps returns the steps of an execution that have parts, by ID, with names and visits.
	PartedSteps(ctx context.Context, id core.JobExecutionID) ([]StepSpan, error)
	// PartCounts counts the parts of a step by status.
	PartCounts(ctx context.Context, manager core.StepExecutionID) (map[core.Status]int, error)
	// PartPage returns parts of a step with their places, in order.
	PartPage(ctx context.Context, filter PartFilter) ([]ListedPart, error)
}

// PartOrder is the order of a list of parts.
type PartOrder string

// The orders: as planned; the longest first; the failed first, then those at work, those that wait, the stopped and the
// complete ones.
const (
	PartsByNumber   PartOrder = "number"
	PartsByDuration PartOrder = "duration"
	PartsByStatus   PartOrder = "status"
)

// PartFilter selects parts of a step.
type PartFilter struct {
	Manager core.StepExecutionID
	Order   PartOrder
	// Left selects parts that are not complete.
	Left bool
	// After is the place of the last part of the previous page; nil means the first page.
	After *PartPlace
	Limit int
}

// PartPlace is the place of a part in an order: the greatest rank comes first, then the smallest ID. It
// outlives a change of the part.
type PartPlace struct {
	Rank int64
	Part core.StepExecutionID
}

// ListedPart is a part with its place in the order.
type ListedPart struct {
	Place PartPlace
	Step  core.StepExecution
}
