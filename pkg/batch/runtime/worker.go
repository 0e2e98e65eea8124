package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/lease"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// The defaults of a worker.
const (
	DefaultLease     = 30 * time.Second
	DefaultHeartbeat = 5 * time.Second
	DefaultPoll      = time.Second
)

// Config is what a worker works with.
type Config struct {
	Repository core.JobRepository
	// Job rebuilds the job of an execution from the definition that is stored with it. Where
	// it fails, the worker leaves all executions of that definition to others for a while.
	Job func(ctx context.Context, exec core.JobExecution) (*core.Job, error)
	// Executor makes what runs a partition and records its end in transitions.
	Executor func(transitions core.Transitions) core.StepExecutor
	// Services are what partitions work with: Stores, Observer, Owners and Spawner.
	Services core.StepServices
	// Resume resumes an execution that has no open partitions, of the job that Job made; nil:
	// this worker resumes none. A *core.TransitionError says that another process does. When
	// stop is closed, it parks the execution again.
	Resume func(ctx context.Context, j *core.Job, id core.JobExecutionID, stop <-chan struct{}) error
	// Owner names this process. Required.
	Owner core.Owner
	// Slots is how many partitions, and executions that are resumed, run at once; 0: 1.
	Slots int
	// Lease, Heartbeat and Poll are DefaultLease, DefaultHeartbeat and DefaultPoll where
	// zero. The heartbeat must be shorter than half the lease.
	Lease, Heartbeat, Poll time.Duration
	// MaxAttempts is that of core.AssignRequest.
	MaxAttempts int
	// Report is called with what went wrong and what was taken; nil: nothing is.
	Report func(Event)
}

// Options are what the user of a worker chooses.
type Options struct {
	// Slots is how many partitions run at once; 0: 1.
	Slots int
	// Poll is the time between two looks for work; 0: DefaultPoll.
	Poll time.Duration
	// Report is Config.Report.
	Report func(Event)
}

// Event is something that a worker did.
type Event struct {
	// Partition is the partition that it is about, Execution the execution; zero: neither,
	// as of a look for work.
	Partition *core.StepExecution
	Execution core.JobExecutionID
	// What happened: "taken", "ended", "released", "lost", "refused", "failed" of partitions,
	// "resumed", "refused", "failed" of executions, "failed" of a look for work.
	What string
	Err  error
}

// Worker takes partitions and runs them, and resumes parked executions.
type Worker struct {
	config  Config
	refused refusals
}

// NewWorker checks the configuration and fills in the defaults.
func NewWorker(config Config) (*Worker, error) {
	if config.Repository == nil || config.Job == nil || config.Executor == nil || config.Owner == (core.Owner{}) {
		return nil, errors.New("a worker needs a repository, jobs, an executor and an owner")
	}
	if config.Slots < 0 {
		return nil, fmt.Errorf("a worker with %d slots: there must be at least one", config.Slots)
	}
	config.Slots = max(config.Slots, 1)
	if config.Lease == 0 {
		config.Lease = DefaultLease
	}
	if config.Heartbeat == 0 {
		config.Heartbeat = min(DefaultHeartbeat, config.Lease/4)
	}
	if config.Poll == 0 {
		config.Poll = DefaultPoll
	}
	if config.Heartbeat < 0 || config.Lease < 2*config.Heartbeat {
		return nil, fmt.Errorf("lease %v and heartbeat %v: the lease must be at least twice the heartbeat", config.Lease, config.Heartbeat)
	}
	if config.Report == nil {
		config.Report = func(Event) {}
	}
	config.Services.Fill()
	return &Worker{config: config, refused: refusals{first: max(config.Poll, firstRefusal), byHash: map[string]refusal{}}}, nil
}

// Run works until stop is closed or ctx ends. On stop it finishes the chunks in hand and
// gives the partitions back; the end of ctx cancels at once. The error is that of the
// repository, if looks for work failed, and none succeeded, for longer than a lease. The
// time in which no slot is free, or the process is frozen, does not count: then there is
// no look.
func (w *Worker) Run(ctx context.Context, stop <-chan struct{}) error {
	var running sync.WaitGroup
	defer running.Wait()
	slots := make(chan struct{}, w.config.Slots)
	var failing time.Time // when the first look failed since one succeeded
	for {
		select {
		case <-stop:
			return nil
		case <-ctx.Done():
			return nil
		case slots <- struct{}{}:
		}
		work, err := w.next(ctx, stop)
		if work != nil {
			failing = time.Time{}
			running.Go(func() {
				defer func() { <-slots }()
				work()
			})
			continue
		}
		<-slots
		switch {
		case err == nil:
			failing = time.Time{}
		case ctx.Err() != nil:
			return nil
		case failing.IsZero():
			failing = time.Now()
			w.config.Report(Event{What: "failed", Err: err})
		case time.Since(failing) > w.config.Lease:
			return fmt.Errorf("worker: %w", err)
		default:
			w.config.Report(Event{What: "failed", Err: err})
		}
		if !w.pause(ctx, stop) {
			return nil
		}
	}
}

func (w *Worker) pause(ctx context.Context, stop <-chan struct{}) bool {
	timer := time.NewTimer(w.config.Poll)
	defer timer.Stop()
	select {
	case <-stop:
		return false
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// next takes something to do; nil: there is nothing.
func (w *Worker) next(ctx context.Context, stop <-chan struct{}) (func(), error) {
	except, since := w.refused.hashes(time.Now()), w.clock().Now()
	a, err := w.config.Repository.AssignPartition(ctx, core.AssignRequest{
		Owner: w.config.Owner, Lease: w.config.Lease, MaxAttempts: w.config.MaxAttempts, Except: except,
		Dead: w.config.Services.Owners.IsDead,
	})
	if err != nil {
		return nil, err
	}
	if a != nil {
		return func() { w.partition(ctx, a, since, stop) }, nil
	}
	if w.config.Resume == nil {
		return nil, nil
	}
	ids, err := w.config.Repository.Resumable(ctx, 1, except)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	exec, err := w.config.Repository.Execution(ctx, ids[0])
	if err != nil {
		return nil, err
	}
	return func() { w.resume(ctx, exec, stop) }, nil
}

// resume resumes an execution. One whose job cannot be built here is left to others.
func (w *Worker) resume(ctx context.Context, exec *core.JobExecution, stop <-chan struct{}) {
	report := func(what string, err error) { w.config.Report(Event{Execution: exec.ID, What: what, Err: err}) }
	j, err := w.config.Job(ctx, *exec)
	if err != nil {
		w.refused.add(exec.Definition.Hash, time.Now())
		err = fmt.Errorf("build job %s: %w", exec.JobName, err)
		report("refused", errors.Join(err, w.config.Repository.RefuseResume(context.WithoutCancel(ctx), exec.ID, w.refusal(err))))
		return
	}
	err = w.config.Resume(ctx, j, exec.ID, stop)
	if _, taken := errors.AsType[*core.TransitionError](err); taken {
		return
	}
	if err != nil {
		w.refused.add(exec.Definition.Hash, time.Now()) // it may be there again at once
		report("failed", err)
		return
	}
	w.refused.remove(exec.Definition.Hash)
	report("resumed", nil)
}

// refusal is what is stored of work that this worker could not begin.
func (w *Worker) refusal(err error) string {
	return fmt.Sprintf("refused by worker %d on %s: %v", w.config.Owner.PID, w.config.Owner.Host, err)
}

// partition runs one partition, which was asked for at the clock's time since. One that
// cannot be built here is given back for others, and one whose lease cannot be renewed.
func (w *Worker) partition(ctx context.Context, a *core.Assignment, since time.Duration, stop <-chan struct{}) {
	report := func(what string, err error) {
		w.config.Report(Event{Partition: &a.Step, Execution: a.Job.ID, What: what, Err: err})
	}
	report("taken", nil)
	ref := core.StepRef{ID: a.Step.ID, Owner: a.Step.Owner, Epoch: a.Step.Epoch}
	inner, run, err := w.rebuild(ctx, a)
	if err != nil {
		w.refused.add(a.Job.Definition.Hash, time.Now())
		report("refused", errors.Join(err, w.config.Repository.ReleasePartition(context.WithoutCancel(ctx), ref, w.refusal(err))))
		return
	}
	w.refused.remove(a.Job.Definition.Hash)
	working, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	asked := newStop(stop)
	defer asked.close()
	keeper := w.newLease(a, since, asked, cancel)
	keeper.Start(ctx)
	run.Services.Stop, run.Services.Lease = asked, keeper
	ends := &leaving{JobRepository: w.config.Repository, stop: asked, lease: keeper}
	record, err := w.config.Executor(ends).Execute(working, inner, run)
	keeper.Stop()
	keeper.Wait()
	switch {
	case errors.Is(err, core.ErrLostOwner):
		report("lost", err)
	case err != nil:
		report("failed", err)
	case ends.released:
		report("released", nil)
	default:
		a.Step = *record
		report("ended", nil)
	}
}

// newLease returns what keeps the lease of a partition that was asked for at the clock's
// time since. end ends its work.
func (w *Worker) newLease(a *core.Assignment, since time.Duration, asked *stop, end context.CancelCauseFunc) *lease.Keeper {
	ref := core.StepRef{ID: a.Step.ID, Owner: a.Step.Owner, Epoch: a.Step.Epoch}
	return lease.New(lease.Config{
		Clock: w.clock(), Lease: w.config.Lease, Heartbeat: w.config.Heartbeat, Since: since, End: func(cause error) { end(cause) },
		Beat: func(ctx context.Context) error {
			requested, err := w.config.Repository.HeartbeatStep(ctx, ref, w.config.Lease)
			if requested {
				asked.Request()
			}
			return err
		},
		Failed: func(err error) {
			w.config.Services.Observer.Observe(context.Background(), core.HeartbeatFailed{Execution: a.Job.ID, Err: err})
		},
	})
}

func (w *Worker) clock() lease.Clock { return lease.Clock{Rested: w.config.Repository.WriterHeld} }

// rebuild makes the step of a partition from the stored definition, and its run from
// what the step that planned it has stored.
func (w *Worker) rebuild(ctx context.Context, a *core.Assignment) (core.Step, *core.StepRun, error) {
	j, err := w.config.Job(ctx, a.Job)
	if err != nil {
		return nil, nil, fmt.Errorf("build job %s: %w", a.Job.JobName, err)
	}
	inner, err := innerStep(j, a.Manager.Name)
	if err != nil {
		return nil, nil, err
	}
	var data core.StepContext
	if err := json.Unmarshal(a.Shared, &data); err != nil {
		return nil, nil, fmt.Errorf("step %s: what its manager has stored: %w", a.Step.Name, err)
	}
	data.Job.Definition = a.Job.Definition
	data.Name, data.Planned, data.Earlier = a.Step.Name, &a.Step, a.Earlier
	data.Part = partOf(a)
	services := w.config.Services
	services.Checkpoints, services.Plans, services.Attempts = w.config.Repository, w.config.Repository, w.config.Repository
	ref := core.StepRef{ID: a.Step.ID, Owner: a.Step.Owner, Epoch: a.Step.Epoch}
	services.Promoter = core.PromoterFunc(func(ctx context.Context, values map[string]any) error {
		promoted := core.NewExecutionContext()
		for key, value := range values {
			if err := promoted.Put(key, value); err != nil {
				return err
			}
		}
		return w.config.Repository.PromotePartition(ctx, ref, promoted)
	})
	return inner, &core.StepRun{Data: data, Services: services}, nil
}

// innerStep finds the step that does the work of one partition.
func innerStep(j *core.Job, name string) (core.Step, error) {
	for _, s := range append(j.Flow.Steps(), j.Finally.Steps()...) {
		if partitioned, ok := s.(interface{ Inner() core.Step }); ok && s.Name() == name {
			return partitioned.Inner(), nil
		}
	}
	return nil, fmt.Errorf("job %s has no step %s with partitions", j.Name, name)
}

// partOf is the partition as its plan made it.
func partOf(a *core.Assignment) *core.Partition {
	part := core.PartitionOf(a.Manager.Name, a.Step)
	return &part
}
