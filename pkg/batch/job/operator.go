package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// OperatorConfig is what an operator works with.
type OperatorConfig struct {
	Repository core.JobRepository
	// Launcher runs what is started and restarted; nil: nothing can be.
	Launcher *Launcher
	// Jobs finds a job by its name; its error has core.ErrNoSuchJob in its chain where
	// there is none. nil: there are none.
	Jobs func(ctx context.Context, name string) (*core.Job, error)
	// Actor is who acts, for the audit; empty: this process, as CurrentOwner names it.
	Actor string
	// Dead reports whether an owner is known to be dead; nil: DeadOwner.
	Dead func(core.Owner) bool
	// Notify tells the owner of an execution that a stop was asked for, so that it need
	// not wait for its next heartbeat or commit; nil: nobody is told.
	Notify func(ctx context.Context, exec core.JobExecution) error
	// Sweep deletes what Purge and DeleteInstance cannot reach, the checkpoints of
	// deleted instances in other databases: Checkpoints.Sweep of the repository, for
	// each of them. It is called after either has deleted instances; nil: they stay.
	Sweep func(ctx context.Context) error
}

// Operator starts and restarts jobs in this process, and stops, abandons, recovers
// and purges executions of any process (rule L3). It is safe for concurrent use.
type Operator struct{ config OperatorConfig }

// NewOperator checks the configuration and fills in the defaults.
func NewOperator(config OperatorConfig) (*Operator, error) {
	if config.Repository == nil {
		return nil, errors.New("an operator needs a repository")
	}
	if config.Jobs == nil {
		config.Jobs = func(_ context.Context, name string) (*core.Job, error) {
			return nil, fmt.Errorf("%s: %w", name, core.ErrNoSuchJob)
		}
	}
	if config.Actor == "" {
		owner, err := CurrentOwner()
		if err != nil {
			return nil, err
		}
		config.Actor = owner.String()
	}
	if config.Dead == nil {
		config.Dead = DeadOwner
	}
	return &Operator{config: config}, nil
}

// Start launches the named job with these parameters, beside the caller. Its errors
// are core.ErrNoSuchJob and the refusals of a launch.
func (o *Operator) Start(ctx context.Context, name string, params core.Parameters) (*Running, error) {
	j, err := o.job(ctx, name)
	if err != nil {
		return nil, err
	}
	return o.launch(ctx, j, params)
}

// StartNext goes on with the newest instance of the job where that has not
// completed, unless the given parameters name another one; else it starts the next,
// with the parameters of NextParameters. core.ErrNoIncrementer without incrementer.
func (o *Operator) StartNext(ctx context.Context, name string, given map[string]string) (*Running, error) {
	n, err := o.next(ctx, name, given)
	if err != nil {
		return nil, err
	}
	choose := n.parameters
	if n.resumes() {
		choose = n.again
	}
	params, err := choose()
	if err != nil {
		return nil, fmt.Errorf("next instance of job %s: %w", name, err)
	}
	return o.launch(ctx, n.job, params)
}

// NextParameters answers the parameters of the instance after the newest one: what
// the job's incrementer makes of those of its newest execution, redrives aside, with
// those given. Parameters that the job does not declare are left out, but for what
// the incrementer has set. Its errors are core.ErrNoSuchJob, core.ErrNoIncrementer
// and *core.ParameterError, everything wrong with the parameters together.
func (o *Operator) NextParameters(ctx context.Context, name string, given map[string]string) (core.Parameters, error) {
	n, err := o.next(ctx, name, given)
	if err != nil {
		return core.Parameters{}, err
	}
	params, err := n.parameters()
	if err != nil {
		return core.Parameters{}, fmt.Errorf("next instance of job %s: %w", name, err)
	}
	return params, nil
}

// Restart makes another attempt of the execution's instance, with the parameters
// that it had. It must be the newest of its instance. The refusals, besides those of
// a launch, are core.ErrNotFound, *core.InstanceCompleteError, core.ErrAbandoned,
// core.ErrUnknownStatus, core.ErrNotMostRecent, core.ErrNoSuchJob and
// core.ErrNotRestartable. One that runs is for the launch to judge: it is an
// *core.AlreadyRunningError, unless its owner is lost.
func (o *Operator) Restart(ctx context.Context, id core.JobExecutionID) (*Running, error) {
	exec, err := o.config.Repository.Execution(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := o.checkRestart(ctx, exec); err != nil {
		return nil, err
	}
	j, err := o.job(ctx, exec.JobName)
	if err != nil {
		return nil, err
	}
	if exec.RedriveOf != j.RedriveOf {
		return nil, fmt.Errorf("job %s, execution %d redrives skipped items of execution %d, the job those of %d: %w",
			exec.JobName, id, exec.RedriveOf, j.RedriveOf, core.ErrNotRestartable)
	}
	return o.launch(ctx, j, exec.Params)
}

func (o *Operator) checkRestart(ctx context.Context, exec *core.JobExecution) error {
	about := func(reason error) error {
		return fmt.Errorf("job %s, execution %d: %w", exec.JobName, exec.ID, reason)
	}
	switch exec.Status {
	case core.StatusCompleted:
		return &core.InstanceCompleteError{Execution: *exec}
	case core.StatusAbandoned:
		return about(core.ErrAbandoned)
	case core.StatusUnknown:
		return about(core.ErrUnknownStatus)
	case core.StatusStarting, core.StatusStarted, core.StatusParked, core.StatusStopping, core.StatusStopped, core.StatusFailed:
	}
	newest, err := o.config.Repository.Executions(ctx, core.ExecutionFilter{Instance: exec.InstanceID, Limit: 1})
	if err != nil {
		return err
	}
	if len(newest) > 0 && newest[0].ID != exec.ID {
		return about(fmt.Errorf("%w: execution %d (%s)", core.ErrNotMostRecent, newest[0].ID, newest[0].Status))
	}
	return nil
}

// Stop asks the owner of an execution, in whatever process, to stop: the chunk in
// hand is finished. It answers the execution as it is now: STOPPING, or how it ended
// where it was over. An error of Notify comes with the execution: the request stands.
func (o *Operator) Stop(ctx context.Context, id core.JobExecutionID) (*core.JobExecution, error) {
	_, err := o.config.Repository.RequestStop(ctx, id)
	refused, rejected := errors.AsType[*core.TransitionError](err)
	if over := rejected && refused.Current != "" && refused.Current.IsOver(); err != nil && !over {
		return nil, err
	}
	exec, err := o.config.Repository.Execution(ctx, id)
	if err != nil || o.config.Notify == nil || exec.Status != core.StatusStopping {
		return exec, err
	}
	if err := o.config.Notify(ctx, *exec); err != nil {
		return exec, fmt.Errorf("job %s, execution %d: the stop is asked for, but its owner could not be told: %w", exec.JobName, id, err)
	}
	return exec, nil
}

// Abandon gives an execution up that is STOPPING, STOPPED, FAILED or UNKNOWN: its
// instance will not be restarted. One that runs, or completed, is an
// *core.AlreadyRunningError.
func (o *Operator) Abandon(ctx context.Context, id core.JobExecutionID) (*core.JobExecution, error) {
	if err := o.config.Repository.Abandon(ctx, id, o.config.Actor); err != nil {
		return nil, err
	}
	return o.config.Repository.Execution(ctx, id)
}

// Recover ends the executions whose owner is lost, and answers them: they are FAILED
// and can be restarted. There may be some though there is an error.
func (o *Operator) Recover(ctx context.Context) ([]core.JobExecution, error) {
	return o.config.Repository.Recover(ctx, o.config.Actor, o.config.Dead)
}

// Purge deletes old executions; see core.PurgeFilter. What was deleted is answered
// with an error, too.
func (o *Operator) Purge(ctx context.Context, filter core.PurgeFilter) (core.Purged, error) {
	purged, err := o.config.Repository.Purge(ctx, filter, o.config.Actor)
	if o.config.Launcher != nil {
		err = errors.Join(err, o.config.Launcher.removeLeft(ctx, purged.Left))
		purged.Left = nil
	}
	if err == nil && purged.Instances > 0 && !filter.DryRun {
		err = o.sweep(ctx)
	}
	return purged, err
}

// DeleteInstance deletes an instance with all of its history; one that runs is an
// *core.AlreadyRunningError.
func (o *Operator) DeleteInstance(ctx context.Context, id core.JobInstanceID) error {
	left, err := o.config.Repository.LeftBehind(ctx, id)
	if err != nil {
		return err
	}
	if err := o.config.Repository.DeleteInstance(ctx, id, o.config.Actor); err != nil {
		return err
	}
	if o.config.Launcher != nil {
		err = o.config.Launcher.removeLeft(ctx, left)
	}
	return errors.Join(err, o.sweep(ctx))
}

func (o *Operator) sweep(ctx context.Context) error {
	if o.config.Sweep == nil {
		return nil
	}
	if err := o.config.Sweep(ctx); err != nil {
		return fmt.Errorf("the history is deleted, but not its checkpoints in other databases: %w", err)
	}
	return nil
}

func (o *Operator) job(ctx context.Context, name string) (*core.Job, error) {
	j, err := o.config.Jobs(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("job %w", err)
	}
	return j, nil
}

func (o *Operator) launch(ctx context.Context, j *core.Job, params core.Parameters) (*Running, error) {
	if o.config.Launcher == nil {
		return nil, fmt.Errorf("job %s: this operator has no launcher, it cannot start jobs", j.Name)
	}
	return o.config.Launcher.Start(ctx, j, params)
}
