package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/surfin-batch/surfin/internal/lease"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/runtime/engine"
	"github.com/surfin-batch/surfin/internal/series/sampling"
	"github.com/surfin-batch/surfin/internal/workslot"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type partSource struct {
	parts                  Parts
	lease, heartbeat, poll time.Duration
	slots                  chan struct{}
	report                 func(Event)
	refused                refusals
	resuming               atomic.Int64   // as in task.Claimant
	working                sync.WaitGroup // on deliveries: work that waits outlives its answer
}

func newPartSource(config Config, slots chan struct{}) (*partSource, error) {
	p := *config.Parts
	if p.Repository.Assignments == nil || p.Engine == nil || p.Job == nil || p.Executor == nil || p.Owner == (core.Owner{}) {
		return nil, errors.New("a worker for parts needs a repository, an engine, jobs, an executor and an owner")
	}
	p.Services.Fill()
	return &partSource{
		parts: p, lease: config.Lease, heartbeat: config.Heartbeat, poll: config.Poll, slots: slots, report: config.Report,
		refused: refusals{first: max(config.Poll, firstRefusal), byHash: map[string]postponed{}},
	}, nil
}

func (p *partSource) run(ctx context.Context, stop <-chan struct{}) error {
	return p.parts.Engine.Run(ctx, stop, engine.Subscription{Queues: []string{WakeQueue}, Slots: cap(p.slots)}, p.handler(ctx, stop))
}

func (p *partSource) handler(ctx context.Context, stop <-chan struct{}) engine.Handler {
	return func(_ context.Context, d engine.Delivery) engine.Answer {
		select {
		case <-stop:
			return engine.RetryAfter(0)
		default:
		}
		if !slot(ctx, p.slots, p.poll) {
			return pauseOf(p.poll)
		}
		own := newHeldSlot(p.slots)
		answered := make(chan engine.Answer, 1)
		p.working.Go(func() {
			defer own.end()
			answer, err := engine.Call(workslot.WithSlot(ctx, own), func(ctx context.Context, d engine.Delivery) engine.Answer {
				answer, err := p.handle(ctx, d, stop)
				if err != nil && ctx.Err() == nil {
					p.report(Event{What: "failed", Err: err})
				}
				return answer
			}, d)
			if err != nil {
				p.report(Event{What: "failed", Err: err})
			}
			answered <- answer
		})
		select {
		case answer := <-answered:
			return answer
		case <-own.left:
			return engine.Done()
		}
	}
}

func (p *partSource) handle(ctx context.Context, d engine.Delivery, stop <-chan struct{}) (engine.Answer, error) {
	if d.Kind == engine.Resume {
		return p.handleResume(ctx, d, stop)
	}
	a, since, err := p.assign(ctx, d)
	if later, ok := errors.AsType[*ports.NotNowError](err); ok {
		left := p.refused.left(later.Definition, time.Now())
		if left > 0 && p.giveBack(ctx, d) {
			return engine.Drop(), nil
		}
		return pauseOf(cmp.Or(left, p.lease/3)), nil
	}
	switch {
	case err != nil:
		return pauseOf(p.poll), err
	case a == nil:
		return engine.Drop(), nil
	}
	p.part(ctx, a, since, stop)
	return engine.Done(), nil
}

func (p *partSource) assign(ctx context.Context, d engine.Delivery) (*ports.Assignment, time.Duration, error) {
	since := p.clock().Now()
	a, err := p.parts.Repository.AssignPartition(ctx, p.request(d))
	return a, since, err
}

func (p *partSource) request(d engine.Delivery) ports.AssignRequest {
	return ports.AssignRequest{
		Owner: p.parts.Owner, Worker: p.parts.Worker, Lease: p.lease, MaxAttempts: p.parts.MaxAttempts, Except: p.refused.hashes(time.Now()),
		Dead: p.parts.Services.Owners.IsDead, Part: core.StepExecutionID(d.ID), Epoch: d.Epoch,
	}
}

func (p *partSource) handleResume(ctx context.Context, d engine.Delivery, stop <-chan struct{}) (engine.Answer, error) {
	exec, err := p.parts.Repository.Execution(ctx, core.JobExecutionID(d.ID))
	switch {
	case errors.Is(err, core.ErrNotFound):
		return engine.Drop(), nil
	case err != nil:
		return pauseOf(p.poll), err
	case exec.Epoch != d.Epoch || exec.Owner != core.Owner{} || exec.Status.IsOver():
		return engine.Drop(), nil
	}
	left := p.refused.left(exec.Definition.Hash, time.Now())
	if p.parts.Resume == nil {
		left = unknownPause
	}
	if left == 0 && p.resume(ctx, exec, ownWorker(d.Queue) != "", stop) {
		return engine.Done(), nil
	}
	if p.giveBack(ctx, d) {
		return engine.Drop(), nil
	}
	return pauseOf(max(left, p.refused.left(exec.Definition.Hash, time.Now()))), nil
}

// giveBack lets the leader assign work that this worker cannot begin to another
// one. It returns false for other work, or if it failed.
func (p *partSource) giveBack(ctx context.Context, d engine.Delivery) bool {
	if ownWorker(d.Queue) == "" {
		return false
	}
	work := ports.Ready{Execution: core.JobExecutionID(d.ID)}
	if d.Kind == engine.Part {
		work = ports.Ready{Part: core.StepExecutionID(d.ID)}
	}
	err := p.parts.Repository.GiveBack(context.WithoutCancel(ctx), work, p.parts.Worker)
	if err != nil {
		p.report(Event{What: "failed", Err: err})
	}
	return err == nil
}

// next asks for all work in one statement first: most polls find none.
func (p *partSource) next(ctx context.Context, stop <-chan struct{}) (func(context.Context), error) {
	found, err := p.parts.Repository.Work(ctx, p.request(engine.Delivery{}))
	if err != nil {
		return nil, err
	}
	if found.Parts {
		a, since, err := p.assign(ctx, engine.Delivery{})
		if err != nil {
			return nil, err
		}
		if a != nil {
			return func(ctx context.Context) { p.part(ctx, a, since, stop) }, nil
		}
	}
	if p.parts.Resume == nil {
		return nil, nil
	}
	if found.Children {
		if err := p.parts.Repository.RecoverChildren(ctx, p.parts.Owner.String(), p.parts.Services.Owners.IsDead); err != nil {
			return nil, err
		}
	}
	if !found.Parked && !found.Children { // a recovered child may be the last work that an execution waits for
		return nil, nil
	}
	ids, err := p.parts.Repository.Resumable(ctx, p.parts.Worker, 1, p.refused.hashes(time.Now()))
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	exec, err := p.parts.Repository.Execution(ctx, ids[0])
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) { p.resume(ctx, exec, false, stop) }, nil
}

// resume returns false if the execution is left to others: its job cannot be
// built here, or fails.
func (p *partSource) resume(ctx context.Context, exec *core.JobExecution, placed bool, stop <-chan struct{}) bool {
	report := func(what string, err error) { p.report(Event{Execution: exec.ID, What: what, Err: err}) }
	j, err := p.parts.Job(ctx, *exec)
	if err != nil {
		p.refused.add(exec.Definition.Hash, time.Now())
		err = fmt.Errorf("build job %s: %w", exec.JobName, err)
		report("refused", errors.Join(err, p.parts.Repository.RefuseResume(context.WithoutCancel(ctx), exec.ID, p.refusal(err))))
		return false
	}
	if !placed {
		p.resuming.Add(1)
		defer p.resuming.Add(-1)
	}
	err = p.parts.Resume(ctx, j, exec.ID, stop)
	if _, taken := errors.AsType[*core.TransitionError](err); taken {
		return true
	}
	if err != nil {
		p.refused.add(exec.Definition.Hash, time.Now()) // it may be available again at once
		report("failed", err)
		return false
	}
	p.refused.remove(exec.Definition.Hash)
	report("resumed", nil)
	return true
}

func (p *partSource) refusal(err error) string {
	return fmt.Sprintf("refused by worker %d on %s: %v", p.parts.Owner.PID, p.parts.Owner.Host, err)
}

// part gives back a part that cannot be built here, or a lease that cannot be
// renewed.
func (p *partSource) part(ctx context.Context, a *ports.Assignment, since time.Duration, stop <-chan struct{}) {
	report := func(what string, err error) {
		p.report(Event{Partition: &a.Step, Execution: a.Job.ID, What: what, Err: err})
	}
	report("taken", nil)
	work, err := p.workOf(ctx, a, since, stop)
	if err != nil {
		p.refused.add(a.Job.Definition.Hash, time.Now())
		report("refused", errors.Join(err, p.parts.Repository.ReleasePartition(context.WithoutCancel(ctx), refOf(a), p.refusal(err))))
		return
	}
	p.refused.remove(a.Job.Definition.Hash)
	ended, err := work()
	switch {
	case errors.Is(err, core.ErrLostOwner):
		report("lost", err)
	case err != nil:
		report("failed", err)
	case ended == nil:
		report("released", nil)
	default:
		a.Step = *ended
		report("ended", nil)
	}
}

func refOf(a *ports.Assignment) ports.StepRef {
	return ports.StepRef{ID: a.Step.ID, Owner: a.Step.Owner, Epoch: a.Step.Epoch}
}

func (p *partSource) workOf(ctx context.Context, a *ports.Assignment, since time.Duration, stop <-chan struct{}) (func() (*core.StepExecution, error), error) {
	j, err := p.parts.Job(ctx, a.Job)
	switch {
	case err != nil:
		return nil, fmt.Errorf("build job %s: %w", a.Job.JobName, err)
	case a.Step.IsBranch() && p.parts.Branch == nil:
		return nil, fmt.Errorf("part %s is a branch of a split, which this worker does not run", a.Step.Name)
	case a.Step.IsBranch():
		return func() (*core.StepExecution, error) { return p.parts.Branch(ctx, j, a, since, stop) }, nil
	}
	inner, run, err := p.rebuild(j, a)
	if err != nil {
		return nil, err
	}
	return func() (*core.StepExecution, error) { return p.partition(ctx, inner, run, a, since, stop) }, nil
}

func (p *partSource) partition(ctx context.Context, inner model.Step, run *model.StepRun, a *ports.Assignment, since time.Duration, stop <-chan struct{}) (*core.StepExecution, error) {
	working, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	asked := newStop(stop)
	defer asked.close()
	samples := sampling.New(sampling.Config{
		Store: p.parts.Repository.Series, Heartbeat: p.heartbeat, Observer: p.parts.Services.Observer,
		Guard: ports.JobRef{ID: a.Job.ID, Owner: a.Step.Owner, Epoch: a.Step.Epoch, Branch: a.Step.ID},
	})
	keeper := p.newLease(a, since, asked, cancel, samples.Beat)
	keeper.Start(ctx)
	samples.Start(ctx)
	run.Services.Stop, run.Services.Lease = asked, keeper
	ends := &leaving{Transitions: p.parts.Repository.Transitions, parts: p.parts.Repository.Assignments, stop: asked, lease: keeper}
	record, err := samples.Executor(p.parts.Executor(ends)).Execute(model.WithPatience(working, keeper), inner, run)
	samples.Stop()
	keeper.Stop()
	keeper.Wait()
	if err != nil || ends.released {
		return nil, err
	}
	return record, nil
}

func (p *partSource) newLease(a *ports.Assignment, since time.Duration, asked *stop, end context.CancelCauseFunc, beaten func()) *lease.Keeper {
	ref := refOf(a)
	return lease.New(lease.Config{
		Clock: p.clock(), Lease: p.lease, Heartbeat: p.heartbeat, Since: since, End: func(cause error) { end(cause) },
		Beat: func(ctx context.Context) error {
			requested, err := p.parts.Repository.HeartbeatStep(ctx, ref, p.lease)
			if requested {
				asked.Request()
			}
			if err == nil {
				beaten()
			}
			return err
		},
		Failed: func(err error) {
			p.parts.Services.Observer.Observe(context.Background(), core.HeartbeatFailed{Execution: a.Job.ID, Err: err})
		},
	})
}

func (p *partSource) clock() lease.Clock { return lease.Clock{Rested: p.parts.Repository.WriterHeld} }

func (p *partSource) rebuild(j *model.Job, a *ports.Assignment) (model.Step, *model.StepRun, error) {
	inner, err := innerStep(j, a.Manager.Name)
	if err != nil {
		return nil, nil, err
	}
	var data model.StepContext
	if err := json.Unmarshal(a.Shared, &data); err != nil {
		return nil, nil, fmt.Errorf("step %s: the data stored by its manager: %w", a.Step.Name, err)
	}
	data.Job.Definition = a.Job.Definition
	data.Name, data.Planned, data.Earlier = a.Step.Name, &a.Step, a.Earlier
	data.Part = partOf(a)
	services := p.parts.Services
	services.Checkpoints, services.Plans, services.Attempts = p.parts.Repository.CheckpointStore, p.parts.Repository, p.parts.Repository
	ref := refOf(a)
	services.Promoter = model.PromoterFunc(func(ctx context.Context, values map[string]any) error {
		promoted := core.NewExecutionContext()
		for key, value := range values {
			if err := promoted.Put(key, value); err != nil {
				return err
			}
		}
		return p.parts.Repository.PromotePartition(ctx, ref, promoted)
	})
	return inner, &model.StepRun{Data: data, Services: services}, nil
}

func innerStep(j *model.Job, name string) (model.Step, error) {
	for _, s := range append(j.Flow.Steps(), j.Finally.Steps()...) {
		if partitioned, ok := s.(interface{ Inner() model.Step }); ok && s.Name() == name {
			return partitioned.Inner(), nil
		}
	}
	return nil, fmt.Errorf("job %s has no step %s with partitions", j.Name, name)
}

func partOf(a *ports.Assignment) *core.Partition {
	part := ports.PartitionOf(a.Manager.Name, a.Step)
	return &part
}
