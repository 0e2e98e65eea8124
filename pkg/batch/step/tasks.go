package step

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/workslot"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// TaskGroups submits the group of a step, and follows it: a *runtime.StepTasks.
type TaskGroups interface {
	// Submit stores the group and calls store with its number, in one transaction. The warnings name
	// handlers that no process has.
	Submit(ctx context.Context, s task.Submission, store func(ctx context.Context, id task.GroupID) error) (warnings []string, err error)
	// Find returns the group that was submitted with the key, or 0.
	Find(ctx context.Context, key string) (task.GroupID, error)
	// Continue repeats the tasks of the group that ended without success, in one transaction with
	// store.
	Continue(ctx context.Context, id task.GroupID, step core.StepExecutionID, store func(ctx context.Context, id task.GroupID) error) error
	// Cancel cancels the unfinished tasks of the group.
	Cancel(ctx context.Context, id task.GroupID, reason string) error
	// Group counts the tasks of the group.
	Group(ctx context.Context, id task.GroupID) (*task.Group, error)
	// Failed returns tasks of the group that ended without success, at most limit, in the order
	// of the submission.
	Failed(ctx context.Context, id task.GroupID, limit int) ([]task.Task, error)
	// Results is as in task.Queries.
	Results(ctx context.Context, id task.GroupID, limit int) ([]json.RawMessage, error)
	// Executors returns the type of the group's tasks, and whether workers execute them: the step has
	// then nothing to do until they are over.
	Executors(ctx context.Context, id task.GroupID) (handler string, workers bool, err error)
	// Execute executes the tasks of the group in this process, until end is called.
	Execute(ctx context.Context, id task.GroupID, handler string) (end func(), err error)
}

// MaxTasks is the maximum number of tasks of a step.
const MaxTasks = core.MaxPartitions

// maxResults is the maximum size, in bytes, of the results of tasks that become a result of their step.
const maxResults = core.MaxContextBytes

// maxNamed is the number of tasks that the failure of a step names.
const maxNamed = 10

// TasksConfig describes a step of tasks.
type TasksConfig struct {
	Name string
	// Handler is the type of the tasks.
	Handler string
	Budget  task.Budget
	// Items makes the payloads of the tasks. It is called once: a restart keeps its tasks.
	Items func(ctx context.Context, run *model.StepRun) ([]json.RawMessage, error)
	// On restricts the workers that may execute the tasks; nil means any.
	On *core.Placement
	// Key and After are the item fields that name a task and list the keys of its predecessors (rule
	// TO6); "" means none.
	Key, After string
	// Groups is required.
	Groups TaskGroups
	// Expect is the step's gate, Promote selects the keys copied to the job's context and Listeners
	// makes its listeners; nil means none.
	Expect    *model.Condition
	Promote   *model.Promotion
	Listeners func(ctx context.Context, run *model.StepRun) ([]any, error)
}

// TasksStep submits a group of tasks, one for each item, and is over when the group is: a model.Step of
// kind "tasks" (rules TS1 to TS5).
//
// The group and the step's note of it are one transaction. If workers execute the tasks, the execution
// is parked meanwhile, unless something else keeps it in this process; otherwise the step executes them
// here, or waits. A stop of the execution cancels the group. A restart repeats the tasks that did not
// succeed.
//
// Its counters are the tasks (read) and the succeeded ones (written). Its named results are `group`,
// `total`, `succeeded`, `failed`, `canceled` and `results`, the Json artifacts of the tasks in the
// order of the items as a JSON array, null for a task without one; it is absent if it would exceed 64
// KB.
type TasksStep struct{ config TasksConfig }

// NewTasks checks the configuration.
func NewTasks(config TasksConfig) (*TasksStep, error) {
	if config.Name == "" || config.Handler == "" || config.Items == nil || config.Groups == nil {
		return nil, errors.New("a step of tasks needs a name, a handler, items and groups")
	}
	return &TasksStep{config: config}, nil
}

// Name is the step's name in its flow.
func (s *TasksStep) Name() string { return s.config.Name }

// Kind is "tasks".
func (s *TasksStep) Kind() string { return "tasks" }

// Handler is the type of the tasks.
func (s *TasksStep) Handler() string { return s.config.Handler }

// Expect is the step's gate.
func (s *TasksStep) Expect() *model.Condition { return s.config.Expect }

// Promote selects the keys that the step copies to the job's context.
func (s *TasksStep) Promote() *model.Promotion { return s.config.Promote }

// StepListeners makes the step's listeners.
func (s *TasksStep) StepListeners(ctx context.Context, run *model.StepRun) ([]any, error) {
	return listenersOf(ctx, run, s.config.Listeners)
}

// Items returns the payloads that the step would have: it reads and writes nothing else. An impossible
// order is an error.
func (s *TasksStep) Items(ctx context.Context, run *model.StepRun) ([]json.RawMessage, error) {
	items, err := s.config.Items(ctx, run)
	if err != nil {
		return nil, err
	}
	specs, err := s.config.Specs(items)
	if err == nil {
		_, err = model.TaskOrder(task.Submission{Tasks: specs})
	}
	return items, err
}

// Execute submits the group, or continues the group of an earlier attempt, and returns when it is over.
// ports.ErrParked means that workers have it.
func (s *TasksStep) Execute(ctx context.Context, run *model.StepRun) error {
	if run.Data.Group != nil {
		return fmt.Errorf("step %s, a step of tasks, in atomic group %s: %w", s.Name(), run.Data.Group.Name, ErrInGroup)
	}
	w := &taskWait{step: s, run: run, groups: s.config.Groups}
	if err := w.begin(ctx); err != nil {
		return err
	}
	if w.id == 0 {
		return nil // no items, no work
	}
	return w.follow(ctx)
}

// taskWait is one execution of a TasksStep.
type taskWait struct {
	step   *TasksStep
	run    *model.StepRun
	groups TaskGroups
	id     task.GroupID // 0 if there are no tasks
	// canceled means that a stop of the execution has cancelled the group.
	canceled bool
}

func (w *taskWait) begin(ctx context.Context) error {
	if w.run.Step.Context == nil {
		w.run.Step.Context = core.NewExecutionContext()
	}
	if stored, ok := w.run.Step.Context.Get(ports.TasksKey); ok {
		id, is := stored.(int64)
		if !is {
			return fmt.Errorf("the step's context has a %T at key %s", stored, ports.TasksKey)
		}
		w.id = task.GroupID(id)
	} else if w.run.Data.Earlier != nil { // its commit may have been reported as failed
		var err error
		if w.id, err = w.groups.Find(ctx, w.key()); err != nil {
			return err
		}
	}
	switch {
	case w.id == 0:
		return w.submit(ctx)
	case w.run.Data.Resumed:
		return nil
	}
	return w.groups.Continue(ctx, w.id, w.run.Step.ID, w.store)
}

// key identifies the execution, the step and its visit: attempts of the step that continue each other
// share it. Of two processes that both believe to own the step, one submits.
func (w *taskWait) key() string { return fmt.Sprintf("surfin.step %d", w.run.Step.First) }

// submit gets the items, and submits a task for each.
func (w *taskWait) submit(ctx context.Context) error {
	items, err := callWithGrace(ctx, w.run, func(own *model.StepRun) ([]json.RawMessage, error) { return w.step.config.Items(ctx, own) })
	switch {
	case err != nil:
		return fmt.Errorf("items: %w", err)
	case len(items) > MaxTasks:
		return fmt.Errorf("items: %d items are more than the %d tasks that a step may have", len(items), MaxTasks)
	case len(items) == 0:
		w.report(&task.Group{})
		return nil
	case w.run.Stopping():
		return core.ErrStopped
	}
	specs, err := w.step.config.Specs(items)
	if err != nil {
		return fmt.Errorf("items: %w", err)
	}
	job := w.run.Data.Job
	s := task.Submission{
		Title: fmt.Sprintf("step %s of job %s, execution %d", w.run.Step.Name, job.JobName, job.ID), Type: w.step.config.Handler,
		Budget: w.step.config.Budget, Step: w.run.Step.ID, Tasks: specs,
		IdempotencyKey: w.key(),
	}
	warnings, err := w.groups.Submit(ctx, s, w.store)
	if err != nil {
		w.run.Step.Context.Delete(ports.TasksKey) // there is no such group
		return err
	}
	w.run.Step.Context.Stored()
	w.run.Services.Observer.Observe(ctx, core.TasksSubmitted{
		Execution: job.ID, JobName: job.JobName, Step: w.run.Step.Name, StepID: w.run.Step.ID, Group: int64(w.id), Handler: w.step.config.Handler,
		Tasks: len(items), Warnings: warnings,
	})
	return nil
}

// store notes the group in the step's context, under the guard of the step's owner.
func (w *taskWait) store(ctx context.Context, id task.GroupID) error {
	w.id = id
	if err := w.run.Step.Context.Put(ports.TasksKey, int64(id)); err != nil {
		return err
	}
	return w.run.Services.Plans.SaveStepContext(ctx, w.run.Ref, w.run.Step.Context)
}

func (w *taskWait) follow(ctx context.Context) error {
	handler, elsewhere, err := w.groups.Executors(ctx, w.id) // the file's handler may be another one by now
	if err != nil {
		return err
	}
	if elsewhere && !w.run.Data.MayPark {
		return workslot.WithoutSlot(ctx, func() error { return w.watch(ctx, false) })
	}
	end := func() {}
	defer func() { end() }()
	if !elsewhere && !w.run.Stopping() {
		if end, err = w.groups.Execute(ctx, w.id, handler); err != nil {
			return err
		}
	}
	return w.watch(ctx, elsewhere)
}

// watch polls the group until it is over. park means that the step is parked if it is not.
func (w *taskWait) watch(ctx context.Context, park bool) error {
	for begin := time.Now(); ; {
		over, err := w.look(ctx)
		switch {
		case err != nil || over:
			return err
		case w.releasing(), park:
			return ports.ErrParked
		}
		if err := w.run.Pause(ctx, model.NextLook(time.Since(begin), longestPoll), w.canceled); err != nil {
			return err
		}
	}
}

// releasing reports whether another process is to continue the step.
func (w *taskWait) releasing() bool {
	signal, ok := w.run.Services.Stop.(model.ReleaseSignal)
	return ok && signal.Releasing()
}

// look reports whether the step is over, and how.
func (w *taskWait) look(ctx context.Context) (over bool, err error) {
	if w.run.Stopping() && !w.releasing() && !w.canceled {
		if err := w.cancel(ctx); err != nil {
			return true, err
		}
	}
	g, err := w.groups.Group(ctx, w.id)
	if err != nil || !g.IsOver() {
		return false, err
	}
	w.report(g)
	return true, w.outcome(ctx, g)
}

// cancel cancels the group. A finished one is unchanged.
func (w *taskWait) cancel(ctx context.Context) error {
	w.canceled = true
	err := w.groups.Cancel(ctx, w.id, fmt.Sprintf("execution %d of job %s was stopped", w.run.Data.Job.ID, w.run.Data.Job.JobName))
	if _, over := errors.AsType[*taskports.GroupOverError](err); over {
		return nil
	}
	return err
}

// report counts the tasks. Tasks that succeeded in earlier attempts are in Before.
func (w *taskWait) report(g *task.Group) {
	s := w.run.Step
	s.Counters.Read = int64(g.Total) - s.Before.Read
	s.Counters.Write = int64(g.Succeeded) - s.Before.Write
	s.Out = map[string]any{
		"group": int64(g.ID), "total": int64(g.Total), "succeeded": int64(g.Succeeded), "failed": int64(g.Failed), "canceled": int64(g.Canceled),
	}
}

// outcome returns the end of the step: an unsuccessful task fails it.
func (w *taskWait) outcome(ctx context.Context, g *task.Group) error {
	if g.Succeeded == g.Total {
		return w.results(ctx)
	}
	if w.canceled && g.State == task.GroupCancelled {
		return core.ErrStopped
	}
	failed, err := w.groups.Failed(ctx, w.id, maxNamed)
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d tasks of group %d did not succeed: ", g.Total-g.Succeeded, g.Total, w.id)
	for i, t := range failed {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "task %d is %s", t.ID, t.State)
		if t.LastError != "" {
			fmt.Fprintf(&b, ": %s", shortened(t.LastError))
		}
	}
	if more := g.Total - g.Succeeded - len(failed); more > 0 {
		fmt.Fprintf(&b, "; and %d more", more)
	}
	return errors.New(b.String())
}

// maxReason is the number of characters of each task's reason in a failure.
const maxReason = 200

func shortened(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > maxReason {
		return string(runes[:maxReason-1]) + "…"
	}
	return string(runes)
}

// results puts the values of the tasks into the results of the step.
func (w *taskWait) results(ctx context.Context) error {
	values, err := w.groups.Results(ctx, w.id, maxResults)
	if err != nil || values == nil {
		return err
	}
	text, err := json.Marshal(values)
	if err != nil {
		return err
	}
	w.run.Step.Out["results"] = string(text)
	if _, err := core.Results(w.run.Step.Out).Encode(); errors.Is(err, core.ErrContextTooLarge) {
		delete(w.run.Step.Out, "results")
	}
	return nil
}
