package job

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/confine"
	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/lease"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Launcher runs jobs in this process. It is safe for concurrent use.
type Launcher struct {
	config  Config
	options Options
}

// With returns a launcher with other options.
func (l *Launcher) With(o Options) *Launcher { return &Launcher{config: l.config, options: o} }

// NewLauncher completes the configuration with its defaults.
func NewLauncher(config Config) (*Launcher, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	return &Launcher{config: config}, nil
}

func (l *Launcher) newRun(j *model.Job, launched ports.Launched, since time.Duration, stop <-chan struct{}) *run {
	if launched.Execution.Context == nil {
		launched.Execution.Context = core.NewExecutionContext()
	}
	r := newRun(l.config, j, launched, since, stop)
	r.acceptChanges = l.options.AcceptChanges
	r.children = l.With(Options{AcceptChanges: l.options.AcceptChanges})
	return r
}

// Run launches the job and returns when it is over. The error is a refused
// launch (*ports.InstanceCompleteError, *ports.AlreadyRunningError,
// *ports.ExclusiveError, ports.ErrNotRestartable, ...) or an unwritten record
// (core.ErrLostOwner if taken over). Closing stop ends it STOPPED after the
// current chunk; may be nil. The end of ctx cancels at once; the final status
// is still written (rules C14, L4).
func (l *Launcher) Run(ctx context.Context, j *model.Job, params core.Parameters, stop <-chan struct{}) (*core.JobExecution, error) {
	ctx, err := l.ownContext(ctx, j)
	if err != nil {
		return nil, err
	}
	r, err := l.prepare(ctx, j, params, stop)
	if err != nil {
		return nil, err
	}
	exec, err := r.execute(ctx)
	if err == nil && exec.Status == core.StatusParked && l.options.Task == 0 {
		return l.awaitParked(ctx, j, exec, waiting{stop: stop, here: true})
	}
	return exec, err
}

func (l *Launcher) ownContext(ctx context.Context, j *model.Job) (context.Context, error) {
	ctx = l.withPatience(ctx)
	if l.config.Apart == nil {
		return ctx, nil
	}
	own, err := l.config.Apart(ctx)
	if err != nil {
		return nil, fmt.Errorf("job %s: %w (%w): a rollback would undo its history; make it an element of the job (`job: %s`), or give the step the propagation NOT_SUPPORTED",
			j.Name, ports.ErrInTransaction, err, j.Name)
	}
	return own, nil
}

// withPatience gives patience of one lease, or of the execution that runs
// a child job (rule O1).
func (l *Launcher) withPatience(ctx context.Context) context.Context {
	if model.HasPatience(ctx) {
		return ctx
	}
	return model.WithPatience(ctx, lease.Bounded(l.config.Lease))
}

func (l *Launcher) prepare(ctx context.Context, j *model.Job, params core.Parameters, stop <-chan struct{}) (*run, error) {
	since := l.config.clock().Now()
	launched, changedSteps, err := l.create(ctx, j, params, false)
	if err != nil {
		return nil, err
	}
	r := l.newRun(j, launched, since, stop)
	r.changedSteps = changedSteps
	return r, nil
}

func (l *Launcher) create(ctx context.Context, j *model.Job, params core.Parameters, forWorkers bool) (launched ports.Launched, changedSteps []string, err error) {
	if err := validate(j); err != nil {
		return launched, nil, fmt.Errorf("job %s: %w", j.Name, err)
	}
	ctx = confine.With(ctx, confine.New(j.Confinement))
	if err := CheckPaths(ctx, j, params); err != nil {
		return launched, nil, err
	}
	if j.Bind != nil {
		if err := j.Bind(ctx, params); err != nil {
			return launched, nil, err
		}
	}
	from, err := l.restartFrom(ctx, j, params)
	if err != nil {
		return launched, nil, err
	}
	changedSteps, isNew, err := l.checkRestart(ctx, j, params, from)
	if err != nil {
		return launched, nil, fmt.Errorf("job %s: %w", j.Name, err)
	}
	key, err := exclusiveKey(j, params)
	if err != nil {
		return launched, nil, err
	}
	launched, err = l.launch(ctx, j, params, ports.LaunchRequest{Exclusive: key, From: from.Launch(l.options.IfComplete), ForWorkers: forWorkers, New: isNew})
	return launched, changedSteps, err
}

// A race is harmless: the launch refuses to follow an execution other than the
// one read here.
func (l *Launcher) restartFrom(ctx context.Context, j *model.Job, params core.Parameters) (*journal.From, error) {
	if l.options.From == "" {
		return nil, nil //nolint:nilnil // most attempts have none
	}
	last, err := l.config.Repository.LastExecution(ctx, j.Name, params.Key())
	if err != nil {
		return nil, err
	}
	return journal.NewFrom(ctx, l.config.Repository, j, last, l.options.From)
}

// checkRestart returns the steps that take the new definition, and whether the instance is known to be new. A race is
// harmless: the repository lets one launch run, and such a step refuses a
// position committed meanwhile.
func (l *Launcher) checkRestart(ctx context.Context, j *model.Job, params core.Parameters, from *journal.From) (changedSteps []string, isNew bool, err error) {
	compares := j.CheckRestart != nil && !l.options.FromStart && !l.options.AcceptChanges
	if !compares && l.options.OnLast == nil {
		return nil, false, nil
	}
	last, err := l.config.Repository.LastExecution(ctx, j.Name, params.Key())
	if err != nil && !errors.Is(err, core.ErrNotFound) {
		return nil, false, err
	}
	if l.options.OnLast != nil {
		if err := l.options.OnLast(ctx, last); err != nil {
			return nil, false, err
		}
	}
	if !compares || last == nil {
		return nil, last == nil, nil
	}
	changedSteps, err = l.config.checkDefinition(ctx, j, last, params, from)
	return changedSteps, false, err
}

func validate(j *model.Job) error {
	err := j.Flow.Validate()
	if len(j.Finally.Elements) > 0 {
		err = errors.Join(err, j.Finally.Validate())
	}
	if err != nil {
		return err
	}
	return errors.Join(checkNames(j.Flow, ""), checkNames(j.Finally, ""))
}

// checkNames refuses names longer than the journal can hold.
func checkNames(flow model.Flow, log string) error {
	for _, at := range flow.Elements {
		if name := at.ElementName(); len(name) > ports.MaxElementName {
			return fmt.Errorf("element %.20s...: its name has %d bytes, at most %d are allowed", name, len(name), ports.MaxElementName)
		}
		for branch, inner := range model.Flows(at) {
			name := ports.LongestInner(log, at.ElementName(), branch)
			if len(name) > ports.MaxFlowName {
				return fmt.Errorf("element %s: the names of the elements around it have %d bytes, at most %d are allowed: use shorter names",
					at.ElementName(), len(name), ports.MaxFlowName)
			}
			if err := checkNames(inner, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckExclusive returns the *ports.ExclusiveError that refuses a launch now, or
// nil (rule L12). dead is as in Config.
func CheckExclusive(ctx context.Context, r ports.Launches, j *model.Job, params core.Parameters, dead func(core.Owner) bool) error {
	key, err := exclusiveKey(j, params)
	if err != nil {
		return err
	}
	return r.CheckExclusive(ctx, j.Name, key, dead)
}

func exclusiveKey(j *model.Job, params core.Parameters) (core.ExclusiveKey, error) {
	if j.Exclusive == nil {
		return "", nil
	}
	key, err := j.Exclusive(params)
	if err == nil {
		err = key.Check()
	}
	return key, err
}

// launch waits for a lost owner's open transaction at most two leases:
// PostgreSQL ends it within one (rule L7); on SQLite it lasts while its process
// is frozen.
func (l *Launcher) launch(ctx context.Context, j *model.Job, params core.Parameters, req ports.LaunchRequest) (ports.Launched, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*l.config.Lease)
	defer cancel()
	on := j.On
	if j.Parent == 0 && on == nil {
		on = l.options.On
	}
	owner := l.config.Owner
	owner.Nonce = rand.Text()[:8] // after a lost reply a launch finds its own execution, and no other's
	req.JobName, req.Params, req.Definition, req.Restartable = j.Name, params, j.Definition, j.Restartable
	req.Owner, req.Lease, req.Dead = owner, l.config.Lease, l.config.Dead
	req.RedriveOf, req.On, req.Parent, req.ParentCall, req.ParentAnew, req.Confinement = j.RedriveOf, on, j.Parent, j.ParentCall, j.ParentAnew, j.Confinement
	o := l.options
	req.Task, req.FromStart, req.Request, req.Actor, req.Reason, req.Bound, req.Backfill = o.Task, o.FromStart, o.Request, o.Actor, o.Reason, o.Bound, o.Backfill
	return l.config.Repository.Launch(ctx, req)
}

// RemoveLeft calls Config.RemoveLeft for steps that are not resumed.
func (l *Launcher) RemoveLeft(ctx context.Context, left []ports.LeftBehind) error {
	return l.config.removeLeft(ctx, left)
}
