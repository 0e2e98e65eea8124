package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/surfin-batch/surfin/internal/lease"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/runtime/engine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

type taskSource struct {
	config   Config
	tasks    Tasks
	slots    chan struct{}
	handlers map[string]task.Handler
	decide   taskports.Decide
	sweep    *Sweep
	parts    engine.Handler // of deliveries other than tasks; nil means none
	// stop and handling belong to run; working counts idle executions too,
	// which outlive the answers to their deliveries.
	stop     <-chan struct{}
	handling context.Context //nolint:containedctx // see above
	working  sync.WaitGroup
	begun    chan struct{} // closed when the first tenure has begun
	beginOne sync.Once
	// grace: see taskports.Confirmed.
	grace atomic.Int64
	// resuming belongs to the source of parts.
	resuming *atomic.Int64
	// When the common work was last done, and its part that recovers tasks.
	all, recovered time.Time

	mu     sync.Mutex
	tenure *tenure // nil if the worker has no lease
	// busy are tasks worked on; true: the end in that epoch could not be
	// recorded.
	busy map[engine.Key]bool
}

func newTaskSource(config Config, slots chan struct{}) (*taskSource, error) {
	t := *config.Tasks
	if t.Executions == nil || t.Maintenance == nil || t.Engine == nil || t.Database == nil || t.Catalog == nil || t.Worker == "" {
		return nil, errors.New("a worker for tasks needs a repository, its database, an engine, a catalog and a name")
	}
	t.Observer = core.Observers(t.Observer)
	if t.LeaveBehind == 0 {
		t.LeaveBehind = DefaultLeaveBehind
	}
	if t.Types == nil {
		t.Types = t.Catalog.Types()
	}
	handlers, err := t.Catalog.handlersOf(t.Types)
	if err != nil {
		return nil, err
	}
	decide, err := t.Catalog.Decide()
	if err != nil {
		return nil, err
	}
	sweep, err := NewSweep(t.Database, t.Maintenance, t.Engine, t.Catalog)
	if err != nil {
		return nil, err
	}
	return &taskSource{
		config: config, tasks: t, slots: slots, handlers: handlers, decide: decide, sweep: sweep,
		begun: make(chan struct{}), busy: map[engine.Key]bool{}, resuming: &atomic.Int64{},
	}, nil
}

func (s *taskSource) clock() lease.Clock { return lease.Clock{Rested: s.tasks.Database.WriterHeld} }

func (s *taskSource) claimant() taskports.Claimant {
	return taskports.Claimant{
		Worker: s.tasks.Worker, Capacity: s.config.Slots, Types: s.tasks.Types, Deciders: s.tasks.Catalog.Deciders(), Parts: s.config.Parts != nil, Version: s.tasks.Version,
		Lease: s.config.Lease, Grace: s.graceNow(), Owner: s.tasks.Owner.String(), Labels: s.tasks.Labels, Resuming: int(s.resuming.Load()), Draining: isClosed(s.stop),
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c: // never for nil
		return true
	default:
		return false
	}
}

func (s *taskSource) graceNow() time.Duration { return time.Duration(s.grace.Load()) }

func (s *taskSource) setTenure(t *tenure) {
	s.mu.Lock()
	s.tenure = t
	s.mu.Unlock()
	if t != nil {
		s.beginOne.Do(func() { close(s.begun) })
	}
}

func (s *taskSource) run(ctx context.Context, stop <-chan struct{}, parts engine.Handler) error {
	subscription := engine.Subscription{Queues: slices.Clone(s.tasks.Types), Slots: s.config.Slots}
	if s.parts = parts; parts != nil {
		subscription.Queues = append(subscription.Queues, WakeQueue)
	}
	if len(subscription.Queues) == 0 {
		return nil
	}
	subscription.Queues = append(subscription.Queues, QueueOf(s.tasks.Worker))
	s.stop = stop
	working, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	handling, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	s.handling = handling
	var lost error
	broken, drained := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(broken)
		if lost = s.keepTenures(working); lost != nil {
			end(task.ErrStopping)
		}
	}()
	go s.drain(ctx, stop, drained, end)
	leaving := either(stop, broken, drained)
	select {
	case <-s.begun:
	case <-leaving:
	case <-ctx.Done():
	}
	err := s.tasks.Engine.Run(handling, leaving, subscription, s.handle)
	s.working.Wait()
	close(drained)
	leave()
	<-broken
	s.leave(ctx)
	return errors.Join(lost, err)
}

func either(a, b, over <-chan struct{}) <-chan struct{} {
	c := make(chan struct{})
	go func() {
		select {
		case <-a:
		case <-b:
		case <-over:
		}
		close(c)
	}()
	return c
}

func (s *taskSource) drain(ctx context.Context, stop, drained <-chan struct{}, end context.CancelCauseFunc) {
	select {
	case <-ctx.Done():
		end(task.ErrStopping)
		return
	case <-drained:
		return
	case <-stop:
	}
	s.notifyDraining(ctx)
	timer := time.NewTimer(max(s.config.Drain, 0))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-drained:
		return
	}
	end(task.ErrStopping)
}

func (s *taskSource) notifyDraining(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.config.Lease/3)
	defer cancel()
	if _, err := s.tasks.Executions.Heartbeat(ctx, s.claimant(), nil); err != nil {
		s.heartbeatFailed(err)
	}
}

func (s *taskSource) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.config.Lease/3)
	defer cancel()
	if err := s.tasks.Executions.Leave(ctx, s.tasks.Worker); err != nil {
		s.config.Report(Event{What: "failed", Err: fmt.Errorf("record that the worker stops: %w", err)})
	}
}

// followedEvery is how often a worker tends although it follows a leader: that one may be stuck.
const followedEvery = 10 * time.Second

// tend leaves the work to the leader that it follows. A worker with a shorter poll does not wait for the leader's.
func (s *taskSource) tend(ctx context.Context) error {
	if s.config.Poll >= DefaultPoll && s.config.Follows() && time.Since(s.all) < followedEvery {
		return nil
	}
	return s.tendAll(ctx)
}

func (s *taskSource) tendAll(ctx context.Context) error {
	s.all = time.Now()
	_, err := s.sweep.MakeDue(ctx)
	if now := time.Now(); now.Sub(s.recovered) >= min(s.config.Heartbeat, longestTick)*9/10 {
		s.recovered = now
		n, failed := s.sweep.Recover(ctx)
		err = errors.Join(err, failed)
		if n > 0 { // recovered tasks are due at once
			_, failed = s.sweep.MakeDue(ctx)
			err = errors.Join(err, failed)
		}
	}
	return err
}

func (s *taskSource) handle(ctx context.Context, d engine.Delivery) engine.Answer {
	if d.Kind != engine.Task {
		return s.parts(ctx, d)
	}
	if s.handlers[d.Queue] == nil && ownWorker(d.Queue) == "" {
		s.config.Report(Event{Task: &task.Task{ID: task.ID(d.ID), Spec: task.Spec{Type: d.Queue}}, What: "refused", Err: errors.New(s.tasks.Catalog.lacks(d.Queue))})
		return pauseOf(unknownPause)
	}
	if !slot(ctx, s.slots, s.config.Poll) {
		return pauseOf(s.config.Poll)
	}
	t, answer, ok := s.permitted(d.Key())
	if !ok {
		<-s.slots
		return answer
	}
	e := newExecution(s.handling, t, taskDelivery(d))
	detach := context.AfterFunc(ctx, func() { e.end(context.Cause(ctx)) })
	defer detach()
	answered := make(chan engine.Answer, 1)
	s.working.Go(func() {
		defer e.end(nil)
		defer e.place.end()
		answer, recorded := pauseOf(s.config.Poll), true
		if t.add(e) {
			answer, recorded = e.work()
			t.remove(e)
		}
		s.release(d.Key(), recorded)
		answered <- answer
	})
	select {
	case answer = <-answered:
	case <-e.place.left:
		answer = engine.Done()
		select {
		case answer = <-answered: // it has ended
		default:
		}
	}
	return answer
}

func (s *taskSource) permitted(k engine.Key) (*tenure, engine.Answer, bool) {
	select {
	case <-s.stop:
		return nil, engine.RetryAfter(0), false
	default:
	}
	s.mu.Lock()
	t := s.tenure
	s.mu.Unlock()
	if t == nil || t.keeper.Err() != nil {
		return nil, pauseOf(s.config.Poll), false
	}
	if !s.take(k) {
		return nil, engine.Drop(), false
	}
	return t, engine.Answer{}, true
}

// A delivery may come twice.
func (s *taskSource) take(k engine.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, at := s.busy[k]; at {
		return false
	}
	s.busy[k] = false
	return true
}

func (s *taskSource) release(k engine.Key, recorded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if recorded {
		delete(s.busy, k)
	} else {
		s.busy[k] = true
	}
}
