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
	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// The defaults of a lease (rule L2).
const (
	DefaultLease     = 30 * time.Second
	DefaultHeartbeat = 5 * time.Second
)

// DefaultGrace is Config.Grace.
const DefaultGrace = 30 * time.Second

// The final update is written even if the run's context has ended.
const recordTime = 30 * time.Second

// Config holds the dependencies and settings of a launcher.
type Config struct {
	Repository ports.Repository
	Executor   model.StepExecutor
	// Stores keep checkpoints in other databases (rule C18); nil refuses such
	// steps.
	Stores   model.CheckpointStores
	Observer core.Observer // may be nil
	// Owner is this process; zero means CurrentOwner().
	Owner core.Owner
	// They default to DefaultLease and DefaultHeartbeat. The heartbeat must be
	// shorter than half the lease.
	Lease, Heartbeat time.Duration
	// Grace bounds Finally, listeners and ignored contexts after the run's
	// context has ended (rule L8); 0 means DefaultGrace.
	Grace time.Duration
	// Apart returns an execution's context, outside the launching work (rule
	// T2a), or refuses in a transaction. nil means the launch's.
	Apart func(ctx context.Context) (context.Context, error)
	// Dead reports a dead owner; nil means DeadOwner.
	Dead func(core.Owner) bool
	// RemoveLeft removes leftovers of a step that is not resumed, such as part
	// of a file (rule C15b); nil keeps them.
	RemoveLeft func(ctx context.Context, left ports.LeftBehind) error
	// Spawn runs work on its own goroutine, or refuses; nil means `go`. It must
	// not wait for other work that it was given.
	Spawn func(work func()) error
}

// Options change how a launcher launches.
type Options struct {
	// FromStart resumes nothing of earlier attempts; their committed rows
	// remain.
	FromStart bool
	// From is the element at which to start over (rule F3a); empty resumes.
	From string
	// IfComplete lets From follow a completed attempt.
	IfComplete bool
	// AcceptChanges allows a changed definition of finished elements (rule F4),
	// or a changed file that a reader continues (rule C15).
	AcceptChanges bool
	// Actor is for the audit; empty means the process.
	Actor, Reason string
	// Bound is the state that the launch is for; nil means any.
	Bound *ports.Bound
	// Request is the client request served, or zero.
	Request ports.RequestKey
	// Backfill: the next instance does not follow it (rule L3a).
	Backfill bool
	// Task runs the job, or is 0. Its parked execution is left to workers: Run
	// and Start return it.
	Task int64
	// On restricts the workers that may continue it; nil means any.
	On *core.Placement
	// OnLast is called with the instance's last execution, or nil, before the
	// launch. An error refuses it.
	OnLast func(ctx context.Context, last *core.JobExecution) error
}

func (c Config) complete() (Config, error) {
	if c.Repository.Launches == nil || c.Executor == nil {
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
		return panics.Guard(func() error { return spawn(work) })
	}
	return c, nil
}

func (c *Config) clock() lease.Clock { return lease.Clock{Rested: c.Repository.WriterHeld} }

func (c *Config) checkDefinition(ctx context.Context, j *model.Job, last *core.JobExecution, params core.Parameters, from *journal.From) (changedSteps []string, err error) {
	if j.CheckRestart == nil || last.Status == core.StatusCompleted || last.Definition.Hash == j.Definition.Hash && !last.FormerTimes {
		return nil, nil
	}
	history := ports.History{Records: c.Repository.Explorer, Database: c.Repository.Database()}
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

// DefinitionError refuses to resume with another definition (rule F4), or one
// that could not be compared: Err is from model.Job.CheckRestart.
type DefinitionError struct {
	Last *core.JobExecution
	Err  error
}

func (e *DefinitionError) Error() string { return e.Err.Error() }

func (e *DefinitionError) Unwrap() error { return e.Err }

func (c *Config) removeLeft(ctx context.Context, left []ports.LeftBehind) error {
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
