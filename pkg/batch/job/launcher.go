package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// The default times of a lease (rule L2): how long an execution belongs to its
// owner after a heartbeat, and how often the owner sends one.
const (
	DefaultLease     = 30 * time.Second
	DefaultHeartbeat = 5 * time.Second
)

// recordTime bounds the final update, which is written though the run's context
// has ended.
const recordTime = 30 * time.Second

// Config is what a launcher works with.
type Config struct {
	Repository core.JobRepository
	Executor   core.StepExecutor
	// Stores keep the checkpoints of steps that work in other databases than the
	// repository's (rule C18); nil: such steps are refused.
	Stores   core.CheckpointStores
	Observer core.Observer // may be nil
	// Owner names this process; the zero value is CurrentOwner().
	Owner core.Owner
	// Lease and Heartbeat are DefaultLease and DefaultHeartbeat where zero. The
	// heartbeat must be shorter than half the lease.
	Lease, Heartbeat time.Duration
	// Dead reports whether another owner is known to be dead; nil: DeadOwner.
	Dead func(core.Owner) bool
}

// Launcher runs jobs in this process.
type Launcher struct{ config Config }

// NewLauncher checks the configuration and fills in the defaults.
func NewLauncher(config Config) (*Launcher, error) {
	if config.Repository == nil || config.Executor == nil {
		return nil, errors.New("a launcher needs a repository and a step executor")
	}
	if config.Lease == 0 {
		config.Lease = DefaultLease
	}
	if config.Heartbeat == 0 {
		config.Heartbeat = min(DefaultHeartbeat, config.Lease/4)
	}
	if config.Heartbeat < 0 || config.Lease < 2*config.Heartbeat {
		return nil, fmt.Errorf("lease %v and heartbeat %v: the lease must be at least twice the heartbeat", config.Lease, config.Heartbeat)
	}
	if config.Owner == (core.Owner{}) {
		owner, err := CurrentOwner()
		if err != nil {
			return nil, err
		}
		config.Owner = owner
	}
	if config.Dead == nil {
		config.Dead = DeadOwner
	}
	config.Observer = core.Observers(config.Observer)
	return &Launcher{config: config}, nil
}

// Run launches the job and returns when it is over. A job that ran is described
// by the returned record, whether it completed, failed or stopped; the error is
// about a launch that was refused (*core.InstanceCompleteError,
// *core.AlreadyRunningError, core.ErrNotRestartable, ...) or a record that could
// not be written (core.ErrLostOwner in its chain if another process took over).
//
// Closing stop asks for a stop: the chunk in hand is finished, and the execution
// ends STOPPED. The end of ctx cancels at once; the final status is written all
// the same (rules C14, L4). stop may be nil.
func (l *Launcher) Run(ctx context.Context, j *core.Job, params core.Parameters, stop <-chan struct{}) (*core.JobExecution, error) {
	if err := j.Flow.Validate(); err != nil {
		return nil, fmt.Errorf("job %s: %w", j.Name, err)
	}
	if j.Bind != nil {
		if err := j.Bind(ctx, params); err != nil {
			return nil, err
		}
	}
	launched, err := l.launch(ctx, j, params)
	if err != nil {
		return nil, err
	}
	r := newRun(l.config, j, launched, stop)
	return r.run(ctx)
}

// launch creates the execution. It waits for a lost owner's open transaction no
// longer than two leases: PostgreSQL ends that transaction within one (rule L7);
// on SQLite it holds the database for as long as its process is frozen.
func (l *Launcher) launch(ctx context.Context, j *core.Job, params core.Parameters) (core.Launched, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*l.config.Lease)
	defer cancel()
	return l.config.Repository.Launch(ctx, core.LaunchRequest{
		JobName: j.Name, Params: params, Definition: j.Definition, Restartable: j.Restartable,
		Owner: l.config.Owner, Lease: l.config.Lease, Dead: l.config.Dead,
		RedriveOf: j.RedriveOf,
	})
}

// run is one execution in progress.
type run struct {
	config   Config
	job      *core.Job
	exec     *core.JobExecution
	ref      core.JobRef
	previous *core.JobExecution
	history  map[string]core.StepHistory
	steps    map[string]core.StepExecution // the newest of each step so far
	left     map[string]bool               // keys of stops that this execution went on from
	stop     *stopSignal
}

func newRun(config Config, j *core.Job, launched core.Launched, stop <-chan struct{}) *run {
	exec := launched.Execution
	return &run{
		config: config, job: j, exec: exec, previous: launched.Previous,
		ref:   core.JobRef{ID: exec.ID, Owner: exec.Owner, Epoch: exec.Epoch},
		steps: map[string]core.StepExecution{}, left: map[string]bool{}, stop: newStopSignal(stop),
	}
}

func (r *run) run(ctx context.Context) (*core.JobExecution, error) {
	runCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	beats := r.heartbeats(runCtx, cancel)
	relayed := r.stop.relay(runCtx)
	out, err := r.work(runCtx)
	cancel(nil)
	<-beats
	<-relayed
	if errors.Is(err, core.ErrLostOwner) {
		r.config.Observer.Observe(ctx, core.OwnerLost{Execution: r.exec.ID})
		return r.exec, fmt.Errorf("job %s, execution %d: %w", r.job.Name, r.exec.ID, err)
	}
	return r.exec, r.end(ctx, out, err)
}

// work marks the execution started and walks the flow.
func (r *run) work(ctx context.Context) (outcome, error) {
	if r.exec.Context == nil {
		r.exec.Context = core.NewExecutionContext()
	}
	if r.previous != nil {
		var err error
		if r.history, err = r.config.Repository.LastSteps(ctx, r.exec.InstanceID); err != nil {
			return outcome{}, fmt.Errorf("read the history of the instance: %w", err)
		}
	}
	if _, err := r.config.Repository.ChangeJob(ctx, r.ref, core.JobChange{To: core.StatusStarted}); err != nil {
		return outcome{}, fmt.Errorf("record the start: %w", err)
	}
	r.exec.Status = core.StatusStarted
	r.exec.StartedAt = time.Now().UTC()
	r.config.Observer.Observe(ctx, core.JobStarted{Execution: *r.exec, Restarted: r.previous != nil})
	return r.walk(ctx)
}

// end writes the final status, even if the run's context has ended.
func (r *run) end(ctx context.Context, out outcome, failure error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	if failure != nil {
		out = outcome{status: core.StatusFailed, exit: core.ExitFailed, message: failure.Error()}
	}
	r.exec.Status, r.exec.ExitCode, r.exec.Error, r.exec.EndedAt = out.status, out.exit, out.message, time.Now().UTC()
	_, err := r.config.Repository.ChangeJob(ctx, r.ref, core.JobChange{
		To: out.status, ExitCode: out.exit, Error: out.message, Context: r.exec.Context,
	})
	if err != nil {
		return errors.Join(fmt.Errorf("job %s, execution %d: record the end: %w", r.job.Name, r.exec.ID, err), failure)
	}
	r.config.Observer.Observe(ctx, core.JobEnded{Execution: *r.exec})
	return nil
}
