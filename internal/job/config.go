package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/lease"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// The default times of a lease (rule L2): how long an execution belongs to its
// owner after a heartbeat, and how often the owner sends one.
const (
	DefaultLease     = 30 * time.Second
	DefaultHeartbeat = 5 * time.Second
)

// DefaultGrace is Config.Grace.
const DefaultGrace = 30 * time.Second

// recordTime bounds the final update, which is written even if the run's context has ended.
const recordTime = 30 * time.Second

// Config holds the dependencies and settings of a launcher.
type Config struct {
	Repository ports.JobRepository
	Executor   model.StepExecutor
	// Stores keep the checkpoints of steps that work in databases other than the repository's (rule
	// C18); nil means that such steps are refused.
	Stores   model.CheckpointStores
	Observer core.Observer // may be nil
	// Owner names this process; the zero value is CurrentOwner().
	Owner core.Owner
	// Lease and Heartbeat default to DefaultLease and DefaultHeartbeat. The heartbeat must be shorter
	// than half the lease.
	Lease, Heartbeat time.Duration
	// Grace bounds the steps of Finally and the listeners after the run's context has ended, and the
	// wait for a decision, condition or listener that ignores its context (rule L8). 0 means
	// DefaultGrace.
	Grace time.Duration
	// Apart returns the context of an execution, outside the work that launches it (rule T2a), or
	// refuses in a transaction. nil means the context of the launch.
	Apart func(ctx context.Context) (context.Context, error)
	// Dead reports whether another owner is known to be dead; nil means DeadOwner.
	Dead func(core.Owner) bool
	// RemoveLeft removes leftovers of a step that will not be resumed, such as part of a file on this
	// machine (rule C15b); nil keeps them.
	RemoveLeft func(ctx context.Context, left core.LeftBehind) error
	// Spawn runs work on its own goroutine, or refuses: for Start, branches of a split and partitions.
	// nil means `go`. It must not wait for other work that it was given.
	Spawn func(work func()) error
}

// Options change how a launcher launches.
type Options struct {
	// FromStart makes attempts that run everything again: they resume nothing of earlier attempts;
	// their committed rows remain.
	FromStart bool
	// From is the element at which an attempt starts over (rule F3a); empty resumes the incomplete
	// elements.
	From string
	// IfComplete lets an attempt with From follow one that completed.
	IfComplete bool
	// AcceptChanges lets an instance continue although its definition changed in finished elements
	// (rule F4), or a file that a reader continues changed (rule C15).
	AcceptChanges bool
	// Actor requested the launch from this process, for the audit; empty means the process itself.
	Actor string
	// Request is the client request that the launch serves; zero means none.
	Request ports.RequestKey
	// Backfill marks an instance that the launch makes: the next instance does not follow it (rule
	// L3a).
	Backfill bool
	// Task is the task that runs the job; 0 means none. A parked execution of a task is left to
	// workers: Run and Start return it unchanged.
	Task int64
	// On restricts the workers that may continue the execution of a task; nil means any.
	On *core.Placement
	// OnLast is called before the launch with the last execution of the instance; nil means that
	// there is none. An error refuses the launch.
	OnLast func(ctx context.Context, last *core.JobExecution) error
}

func (c Config) complete() (Config, error) {
	if c.Repository == nil || c.Executor == nil {
		return c, errors.New("a launcher needs a repository and a step executor")
	}
	c.Lease = cmp.Or(c.Lease, DefaultLease)
	c.Heartbeat = cmp.Or(c.Heartbeat, min(DefaultHeartbeat, c.Lease/4))
	c.Grace = cmp.Or(c.Grace, DefaultGrace)
	if c.Heartbeat < 0 || c.Lease < 2*c.Heartbeat {
		return c, fmt.Errorf("lease %v and heartbeat %v: the lease must be at least twice the heartbeat", c.Lease, c.Heartbeat)
	}
	if c.Owner == (core.Owner{}) {
		var err error
		if c.Owner, err = CurrentOwner(); err != nil {
			return c, err
		}
	}
	if c.Dead == nil {
		c.Dead = DeadOwner
	}
	c.Observer = core.Observers(c.Observer)
	spawn := c.Spawn
	if spawn == nil {
		spawn = func(work func()) error { go work(); return nil }
	}
	c.Spawn = func(work func()) error { // a panic is a refusal
		return exception.Guard(func() error { return spawn(work) })
	}
	return c, nil
}

func (c *Config) clock() lease.Clock { return lease.Clock{Rested: c.Repository.WriterHeld} }

func (c *Config) checkDefinition(ctx context.Context, j *model.Job, last *core.JobExecution, params core.Parameters, from *journal.From) (changedSteps []string, err error) {
	if j.CheckRestart == nil || last.Status == core.StatusCompleted || last.Definition.Hash == j.Definition.Hash && !last.FormerTimes {
		return nil, nil
	}
	history := ports.History{Records: c.Repository, Database: c.Repository.Database()}
	if c.Stores != nil {
		history.Checkpoints = c.Stores
	}
	if from != nil {
		history.Records = from.Records(history.Records, last.InstanceID)
	}
	if changedSteps, err = j.CheckRestart(ctx, last, history, params); err != nil {
		return nil, &DefinitionError{Last: last, Err: err}
	}
	return changedSteps, nil
}

// DefinitionError refuses to resume an instance with another definition (rule F4), or reports that the
// definitions could not be compared: Err is the error of model.Job.CheckRestart.
type DefinitionError struct {
	// Last is the execution that would have been resumed.
	Last *core.JobExecution
	Err  error
}

// Error is the error of the comparison.
func (e *DefinitionError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the comparison.
func (e *DefinitionError) Unwrap() error { return e.Err }

func (c *Config) removeLeft(ctx context.Context, left []core.LeftBehind) error {
	if c.RemoveLeft == nil {
		return nil
	}
	var errs []error
	for _, of := range left {
		if err := c.RemoveLeft(ctx, of); err != nil {
			errs = append(errs, fmt.Errorf("remove the leftovers of step %s: %w", of.Step, err))
		}
	}
	return errors.Join(errs...)
}
