package runtime

import (
	"context"
	"time"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/runtime/engine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// The defaults of a worker.
const (
	DefaultLease     = 30 * time.Second
	DefaultHeartbeat = 5 * time.Second
	DefaultPoll      = time.Second
	DefaultDrain     = 30 * time.Second
)

// Config needs Parts, or Tasks, or both.
type Config struct {
	// Parts may be nil: none are taken.
	Parts *Parts
	// Tasks may be nil: none are taken.
	Tasks *Tasks
	// Slots bounds concurrent work; 0 means 1.
	Slots int
	// They have defaults. The heartbeat must be shorter than half the lease.
	// Poll is for due retries and work that could not be done.
	Lease, Heartbeat, Poll time.Duration
	// Drain is how long running tasks may continue on stop; 0 means
	// DefaultDrain, negative not at all.
	Drain time.Duration
	// Sweep is the time between two polls for undelivered work; 0 means a third
	// of the lease, at most DefaultPoll. They find work of a dead process, and
	// work planned without an engine.
	Sweep time.Duration
	// Follows reports whether another process does the common work on tasks; nil means no.
	Follows func() bool
	// Report may be nil.
	Report func(Event)
}

func (c *Config) fill() {
	c.Slots = max(c.Slots, 1)
	if c.Lease == 0 {
		c.Lease = DefaultLease
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = min(DefaultHeartbeat, c.Lease/4)
	}
	if c.Poll == 0 {
		c.Poll = DefaultPoll
	}
	if c.Sweep == 0 {
		c.Sweep = min(c.Lease/3, DefaultPoll)
	}
	if c.Drain == 0 {
		c.Drain = DefaultDrain
	}
	if c.Follows == nil {
		c.Follows = func() bool { return false }
	}
	if c.Report == nil {
		c.Report = func(Event) {}
	}
}

// Parts configures how a worker runs parts, and resumes parked executions.
type Parts struct {
	Repository ports.Repository
	// Required.
	Engine engine.Engine
	// Job rebuilds an execution's job. If it fails, the worker leaves that
	// definition to others for a while.
	Job func(ctx context.Context, exec core.JobExecution) (*model.Job, error)
	// Executor records a partition's end in transitions.
	Executor func(transitions ports.Transitions) model.StepExecutor
	// Services are Stores, Observer, Owners and Spawner.
	Services model.StepServices
	// Resume resumes an execution, or begins a child job; may be nil. A
	// *core.TransitionError means that another process does. On stop, it parks
	// it again.
	Resume func(ctx context.Context, j *model.Job, id core.JobExecutionID, stop <-chan struct{}) error
	// Branch walks the branch of a split, and returns the ended part, or nil if
	// it gave it back, as on stop. since is the time of the request. nil
	// refuses such parts.
	Branch func(ctx context.Context, j *model.Job, a *ports.Assignment, since time.Duration, stop <-chan struct{}) (*core.StepExecution, error)
	// Owner is required.
	Owner core.Owner
	// The leader assigns work to Worker; "" means none.
	Worker      string
	MaxAttempts int
}

// Tasks configures how a worker takes tasks.
type Tasks struct {
	Executions  taskports.Executions
	Maintenance taskports.Maintenance
	// Engine is the same as in Config.Parts, if both are set.
	Engine   engine.Engine
	Database tx.Database
	Catalog  *Catalog
	// Types: nil means all of the catalog. Without any it has a heartbeat only.
	Types []string
	// Worker is unique, Version its program's.
	Worker, Version string
	// Labels are compared with placements. Owner is the parts' owner.
	Labels map[string]string
	Owner  core.Owner
	// LeaveBehind bounds how long a handler may run after its context; 0 means
	// DefaultLeaveBehind.
	LeaveBehind time.Duration
	Observer    core.Observer
}

// DefaultLeaveBehind is the time of rule L8.
const DefaultLeaveBehind = 30 * time.Second

// Event is something that happened in a worker.
type Event struct {
	// The event's subject; all zero for others, such as a poll.
	Partition *core.StepExecution
	Execution core.JobExecutionID
	Task      *task.Task
	// Kind of event: "taken", "ended", "released", "lost", "refused", "failed"
	// of partitions; "resumed", "refused", "failed" of executions; "taken",
	// "ended", "canceled", "lost", "aborted" (lease and grace nearly over),
	// "refused", "failed" of tasks; "failed" of a poll or common work.
	What string
	// Of an "ended" task.
	State  task.State
	Reason string
	Err    error
}

// Options are the settings that a worker's user chooses.
type Options struct {
	Slots int
	Poll  time.Duration
	Drain time.Duration
	// Types: nil means all with a handler here.
	Types []string
	// (rule PL1)
	Labels map[string]string
	// WithoutParts leaves parts to other workers.
	WithoutParts bool
	Report       func(Event)
}
