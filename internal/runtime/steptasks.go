package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/confine"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/runtime/engine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// StepTasksConfig configures StepTasks.
type StepTasksConfig struct {
	Service    *TaskService
	Deliveries taskports.Deliveries
	// Tasks configures a worker of this process, without an engine.
	Tasks Tasks
	// Name makes a different worker's name for each call.
	Name func() (string, error)
	// Local makes an engine within this process.
	Local            func(Source) (engine.Engine, error)
	Lease, Heartbeat time.Duration
}

// Source: see local.Source.
type Source interface {
	Due(ctx context.Context, queues []string, limit int) ([]engine.Delivery, error)
}

// StepTasks is a step.TaskGroups. With a distributed engine, or a worker here
// that also takes parts, tasks are left to workers; otherwise the step's
// process executes them. It is safe for concurrent use.
type StepTasks struct {
	config  StepTasksConfig
	manager *tx.Manager

	mu      sync.Mutex
	working map[string]int // workers of this process, by the types of tasks that they take
}

// NewStepTasks checks the configuration.
func NewStepTasks(c StepTasksConfig) (*StepTasks, error) {
	if c.Service == nil || c.Deliveries == nil || c.Tasks.Executions == nil || c.Tasks.Database == nil || c.Tasks.Catalog == nil || c.Name == nil || c.Local == nil {
		return nil, errors.New("the tasks of steps need a service, a worker's dependencies, its name and a local engine")
	}
	return &StepTasks{config: c, manager: tx.NewManager(c.Tasks.Database), working: map[string]int{}}, nil
}

// Handlers returns the types with a handler here, and whether no others can be
// executed: the local engine knows no other process.
func (s *StepTasks) Handlers() (known []string, closed bool) {
	return s.config.Tasks.Catalog.Types(), !s.isDistributed()
}

// HandlerOff returns how to switch a handler on; "" if it is on, or none.
func (s *StepTasks) HandlerOff(handler string) (how string) {
	return s.config.Tasks.Catalog.HandlerOff(handler)
}

func (s *StepTasks) isDistributed() bool {
	return s.config.Service.engine.Capabilities().Distributed
}

// Working records, until done, that a worker here takes the types (nil: all)
// and resumes executions.
func (s *StepTasks) Working(types []string) (done func()) {
	if types == nil {
		types = s.config.Tasks.Catalog.Types()
	}
	count := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, t := range types {
			s.working[t] += n
		}
	}
	count(1)
	return func() { count(-1) }
}

func (s *StepTasks) hasWorkers(handler string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.working[handler] > 0 || s.isDistributed()
}

// Submit implements step.TaskGroups.
func (s *StepTasks) Submit(ctx context.Context, sub task.Submission, store func(ctx context.Context, id task.GroupID) error) (warnings []string, err error) {
	if c := confine.From(ctx).Confinement(); c != nil { // a client's values took part in the job
		sub.Tasks = slices.Clone(sub.Tasks)
		for i := range sub.Tasks {
			sub.Tasks[i].Client = &task.Client{Paths: c.Roots}
		}
	}
	again := false
	err = model.Patiently(ctx, func(ctx context.Context) error {
		err := s.submit(ctx, sub, store, again)
		again = true
		return err
	})
	if err != nil {
		return nil, err
	}
	if warnings, err = s.HandlerWarnings(ctx, sub.Type); err != nil {
		return nil, err
	}
	return patiently(ctx, func(ctx context.Context) ([]string, error) {
		return s.config.Service.placementWarnings(ctx, sub, warnings)
	})
}

// again: the reply was lost, so finding its group is success.
func (s *StepTasks) submit(ctx context.Context, sub task.Submission, store func(ctx context.Context, id task.GroupID) error, again bool) error {
	return s.manager.Do(ctx, tx.Attr{}, func(ctx context.Context) error {
		left, err := s.config.Service.groups.OpenGroupsBefore(ctx, sub.Step)
		if err != nil {
			return err
		}
		if err := s.cancelAll(ctx, left, "its step started again"); err != nil {
			return err
		}
		accepted, err := s.config.Service.submit(ctx, sub)
		if err != nil {
			return err
		}
		if accepted.Duplicate && !again {
			return fmt.Errorf("group %d was submitted for this step before: restart the job", accepted.Group)
		}
		return store(ctx, accepted.Group)
	})
}

// HandlerWarnings warns if only workers execute the type, and no live one does.
func (s *StepTasks) HandlerWarnings(ctx context.Context, handler string) ([]string, error) {
	if !s.hasWorkers(handler) {
		return nil, nil
	}
	s.mu.Lock()
	here := s.working[handler] > 0
	s.mu.Unlock()
	if here {
		return nil, nil
	}
	workers, err := patiently(ctx, s.config.Service.workers.Workers)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(workers, func(w taskports.Worker) bool { return w.State == "ACTIVE" && slices.Contains(w.Types, handler) }) {
		return nil, nil
	}
	return []string{fmt.Sprintf("no live worker executes tasks of type %q: they wait for one", handler)}, nil
}

// Find implements step.TaskGroups.
func (s *StepTasks) Find(ctx context.Context, key string) (task.GroupID, error) {
	return patiently(ctx, func(ctx context.Context) (task.GroupID, error) { return s.config.Service.groups.GroupOf(ctx, key) })
}

// Executors implements step.TaskGroups. Only a worker chosen by the leader
// starts a placed task.
func (s *StepTasks) Executors(ctx context.Context, id task.GroupID) (handler string, workers bool, err error) {
	list, err := patiently(ctx, func(ctx context.Context) ([]task.Task, error) {
		return s.config.Service.tasks.Tasks(ctx, task.Filter{Group: id, Limit: 1})
	})
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("group %d: %w", id, core.ErrNotFound)
	}
	if err != nil {
		return "", false, err
	}
	spec := list[0].Spec
	return spec.Type, spec.On != nil && !spec.On.IsZero() || s.hasWorkers(spec.Type), nil
}

// Continue implements step.TaskGroups.
func (s *StepTasks) Continue(ctx context.Context, id task.GroupID, step core.StepExecutionID, store func(ctx context.Context, id task.GroupID) error) error {
	return model.Patiently(ctx, func(ctx context.Context) error { return s.resubmit(ctx, id, step, store) })
}

func (s *StepTasks) resubmit(ctx context.Context, id task.GroupID, step core.StepExecutionID, store func(ctx context.Context, id task.GroupID) error) error {
	return s.manager.Do(ctx, tx.Attr{}, func(ctx context.Context) error {
		waiting, err := s.config.Service.submissions.Continue(ctx, id, step, s.config.Service.actor, "its step was restarted")
		if err != nil {
			return err
		}
		if err := store(ctx, id); err != nil {
			return err
		}
		return s.config.Service.engine.Enqueue(ctx, taskDeliveries(waiting)...)
	})
}

// Cancel implements step.TaskGroups.
func (s *StepTasks) Cancel(ctx context.Context, id task.GroupID, reason string) error {
	cancel := func(ctx context.Context) error {
		_, err := s.config.Service.submissions.CancelGroup(ctx, id, s.config.Service.actor, reason)
		return err
	}
	if _, in := tx.From(ctx, s.config.Tasks.Database.Name()); in {
		return cancel(ctx)
	}
	return model.Patiently(ctx, cancel)
}

// GiveUp implements operator.OpenTasks.
func (s *StepTasks) GiveUp(ctx context.Context, instance core.JobInstanceID, reason string) error {
	ids, err := s.config.Service.groups.OpenGroupsOf(ctx, instance)
	if err != nil {
		return err
	}
	return s.cancelAll(ctx, ids, reason)
}

func (s *StepTasks) cancelAll(ctx context.Context, ids []task.GroupID, reason string) error {
	for _, id := range ids {
		err := s.Cancel(ctx, id, reason)
		if _, over := errors.AsType[*taskports.GroupOverError](err); err != nil && !over {
			return err
		}
	}
	return nil
}

// Group implements step.TaskGroups.
func (s *StepTasks) Group(ctx context.Context, id task.GroupID) (*task.Group, error) {
	return patiently(ctx, func(ctx context.Context) (*task.Group, error) { return s.config.Service.groups.Group(ctx, id) })
}

// Failed implements step.TaskGroups.
func (s *StepTasks) Failed(ctx context.Context, id task.GroupID, limit int) ([]task.Task, error) {
	return patiently(ctx, func(ctx context.Context) ([]task.Task, error) {
		return s.config.Service.groups.Unsuccessful(ctx, id, limit)
	})
}

// Results implements step.TaskGroups.
func (s *StepTasks) Results(ctx context.Context, id task.GroupID, limit int) ([]json.RawMessage, error) {
	return patiently(ctx, func(ctx context.Context) ([]json.RawMessage, error) {
		return s.config.Service.groups.Results(ctx, id, limit)
	})
}

type groupSource struct {
	deliveries taskports.Deliveries
	id         task.GroupID
}

func (g groupSource) Due(ctx context.Context, _ []string, limit int) ([]engine.Delivery, error) {
	found, err := g.deliveries.DueOf(ctx, g.id, limit)
	return taskDeliveries(found), err
}

// Execute implements step.TaskGroups: a worker here takes the group's tasks, as
// many as CPUs; others may too. end cancels running ones and waits.
func (s *StepTasks) Execute(ctx context.Context, id task.GroupID, handler string) (end func(), err error) {
	tasks := s.config.Tasks
	if tasks.Engine, err = s.config.Local(groupSource{s.config.Deliveries, id}); err != nil {
		return nil, err
	}
	tasks.Types = []string{handler}
	if tasks.Worker, err = s.config.Name(); err != nil {
		return nil, err
	}
	w, err := NewWorker(Config{Tasks: &tasks, Slots: goruntime.GOMAXPROCS(0), Lease: s.config.Lease, Heartbeat: s.config.Heartbeat, Drain: -1})
	if err != nil {
		return nil, err
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		if err := w.Run(ctx, stop); err != nil { // the step notices the failing database as well
			core.Observers(tasks.Observer).Observe(ctx, core.HeartbeatFailed{Err: err})
		}
	}()
	return func() {
		close(stop)
		<-done
	}, nil
}
