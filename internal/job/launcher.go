package job

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/confine"
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
}

// Launcher runs jobs in this process. It is safe for concurrent use.
type Launcher struct {
	config  Config
	options Options
}

func (l *Launcher) clock() lease.Clock { return lease.Clock{Rested: l.config.Repository.WriterHeld} }

// With returns a launcher with other options.
func (l *Launcher) With(o Options) *Launcher { return &Launcher{config: l.config, options: o} }

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
	if config.Grace == 0 {
		config.Grace = DefaultGrace
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
	spawn := config.Spawn
	if spawn == nil {
		spawn = func(work func()) error { go work(); return nil }
	}
	config.Spawn = func(work func()) error { // a panic is a refusal
		return exception.Guard(func() error { return spawn(work) })
	}
	return &Launcher{config: config}, nil
}

// Run launches the job and returns when it is over. The returned record describes a job that ran,
// whether it completed, failed or stopped; the error reports a refused launch
// (*core.InstanceCompleteError, *core.AlreadyRunningError, *core.ExclusiveError,
// core.ErrNotRestartable, ...) or a record that could not be written (core.ErrLostOwner in its chain if
// another process took over).
//
// Closing stop requests a stop: the current chunk is finished, and the execution ends STOPPED. The end
// of ctx cancels at once; the final status is still written (rules C14, L4). stop may be nil.
func (l *Launcher) Run(ctx context.Context, j *model.Job, params core.Parameters, stop <-chan struct{}) (*core.JobExecution, error) {
	ctx, err := l.apart(ctx, j)
	if err != nil {
		return nil, err
	}
	r, err := l.prepare(ctx, j, params, stop)
	if err != nil {
		return nil, err
	}
	exec, err := r.run(ctx)
	if err == nil && exec.Status == core.StatusParked && l.options.Task == 0 {
		return l.afterPark(ctx, j, exec, stop)
	}
	return exec, err
}

// apart returns the context of an execution that is launched with ctx (rule T2a).
func (l *Launcher) apart(ctx context.Context, j *model.Job) (context.Context, error) {
	ctx = l.patient(ctx)
	if l.config.Apart == nil {
		return ctx, nil
	}
	own, err := l.config.Apart(ctx)
	if err != nil {
		return nil, fmt.Errorf("job %s: %w (%w), which would take its history along in a rollback: make it an element of the job (`job: %s`), or give the step the propagation NOT_SUPPORTED",
			j.Name, core.ErrInTransaction, err, j.Name)
	}
	return own, nil
}

// patient gives a context patience of one lease, unless it already has the patience of the execution
// that runs a child job (rule O1).
func (l *Launcher) patient(ctx context.Context) context.Context {
	if model.HasPatience(ctx) {
		return ctx
	}
	return model.WithPatience(ctx, lease.Bounded(l.config.Lease))
}

func (l *Launcher) prepare(ctx context.Context, j *model.Job, params core.Parameters, stop <-chan struct{}) (*run, error) {
	since := l.clock().Now()
	launched, taken, err := l.create(ctx, j, params, false)
	if err != nil {
		return nil, err
	}
	if launched.Execution.Context == nil {
		launched.Execution.Context = core.NewExecutionContext()
	}
	r := newRun(l, j, launched, since, stop)
	r.newDefinition = taken
	return r, nil
}

// create checks the job and creates its execution, and returns the steps that take the new definition.
func (l *Launcher) create(ctx context.Context, j *model.Job, params core.Parameters, forWorkers bool) (launched ports.Launched, taken []string, err error) {
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
	from, err := l.from(ctx, j, params)
	if err != nil {
		return launched, nil, err
	}
	if taken, err = l.checkRestart(ctx, j, params, from); err != nil {
		return launched, nil, fmt.Errorf("job %s: %w", j.Name, err)
	}
	key, err := exclusiveKey(j, params)
	if err != nil {
		return launched, nil, err
	}
	launched, err = l.launch(ctx, j, params, launchOf{key: key, forWorkers: forWorkers, from: from})
	return launched, taken, err
}

// launchOf holds the inputs of a launch other than the job and its parameters.
type launchOf struct {
	key        core.ExclusiveKey
	forWorkers bool
	from       *From
}

// from returns the start of the attempt; nil resumes the incomplete elements. A race is harmless: the
// launch refuses to follow an execution other than the one read here.
func (l *Launcher) from(ctx context.Context, j *model.Job, params core.Parameters) (*From, error) {
	if l.options.From == "" {
		return nil, nil //nolint:nilnil // most attempts have none
	}
	last, err := l.config.Repository.LastExecution(ctx, j.Name, params.Key())
	if err != nil {
		return nil, err
	}
	return NewFrom(ctx, l.config.Repository, j, last, l.options.From)
}

// checkRestart compares the job with the last attempt of the instance, if that will be resumed, and
// returns the steps that take the new definition. A race is harmless: of two launches the repository
// lets one run, and a step that takes the new definition refuses a position that an owner committed
// meanwhile.
func (l *Launcher) checkRestart(ctx context.Context, j *model.Job, params core.Parameters, from *From) (taken []string, err error) {
	if j.CheckRestart == nil || l.options.FromStart || l.options.AcceptChanges {
		return nil, nil
	}
	last, err := l.config.Repository.LastExecution(ctx, j.Name, params.Key())
	switch {
	case errors.Is(err, core.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return l.compare(ctx, j, last, params, from)
}

// compare compares the job with the attempt that it follows, as far as it keeps the finished work of
// that attempt.
func (l *Launcher) compare(ctx context.Context, j *model.Job, last *core.JobExecution, params core.Parameters, from *From) ([]string, error) {
	if j.CheckRestart == nil || last.Status == core.StatusCompleted || last.Definition.Hash == j.Definition.Hash && !last.FormerTimes {
		return nil, nil
	}
	history := ports.History{Records: l.config.Repository, Database: l.config.Repository.Database()}
	if l.config.Stores != nil {
		history.Checkpoints = l.config.Stores
	}
	if from != nil {
		history.Records = from.Records(history.Records, last.InstanceID)
	}
	return j.CheckRestart(ctx, last, history, params)
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

// checkNames refuses names that are longer than the journal can hold. log is the log of the flow.
func checkNames(flow model.Flow, log string) error {
	for _, at := range flow.Elements {
		if name := at.ElementName(); len(name) > core.MaxElementName {
			return fmt.Errorf("element %.20s...: its name has %d bytes, at most %d are allowed", name, len(name), core.MaxElementName)
		}
		for branch, inner := range model.Flows(at) {
			name := core.LongestInner(log, at.ElementName(), branch)
			if len(name) > core.MaxFlowName {
				return fmt.Errorf("element %s: the names of the elements around it have %d bytes, at most %d are allowed: use shorter names",
					at.ElementName(), len(name), core.MaxFlowName)
			}
			if err := checkNames(inner, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckExclusive returns the *core.ExclusiveError that refuses a launch of the job with these
// parameters now, or nil if no other execution blocks it (rule L12). dead is as in Config.
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

// launch creates the execution. It waits for a lost owner's open transaction no
// longer than two leases: PostgreSQL ends that transaction within one (rule L7);
// on SQLite it holds the database for as long as its process is frozen.
func (l *Launcher) launch(ctx context.Context, j *model.Job, params core.Parameters, of launchOf) (ports.Launched, error) {
	var from *ports.LaunchFrom
	if of.from != nil {
		from = &ports.LaunchFrom{After: of.from.after, IfComplete: l.options.IfComplete, Visits: of.from.rows}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*l.config.Lease)
	defer cancel()
	on := j.On
	if j.Parent == 0 && on == nil {
		on = l.options.On
	}
	owner := l.config.Owner
	owner.Nonce = rand.Text()[:8] // after a lost reply a launch finds its own execution, and no other's
	return l.config.Repository.Launch(ctx, ports.LaunchRequest{
		JobName: j.Name, Params: params, Definition: j.Definition, Restartable: j.Restartable,
		Owner: owner, Lease: l.config.Lease, Dead: l.config.Dead, Exclusive: of.key, ForWorkers: of.forWorkers, From: from,
		RedriveOf: j.RedriveOf, Task: l.options.Task, On: on, Parent: j.Parent, ParentCall: j.ParentCall, ParentAnew: j.ParentAnew, Confinement: j.Confinement, FromStart: l.options.FromStart, Request: l.options.Request, Actor: l.options.Actor,
		Backfill: l.options.Backfill,
	})
}
