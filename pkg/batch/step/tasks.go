package step

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/workslot"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// TaskGroups submits and follows a step's group: a *runtime.StepTasks.
type TaskGroups interface {
	// Submit stores the group and calls store with its number in one transaction. Warnings name handlers that
	// no process has.
	Submit(ctx context.Context, s task.Submission, store func(ctx context.Context, id task.GroupID) error) (warnings []string, err error)
	// Find returns the group submitted with the key, or 0.
	Find(ctx context.Context, key string) (task.GroupID, error)
	// Continue repeats the unsuccessful tasks, in one transaction with store.
	Continue(ctx context.Context, id task.GroupID, step core.StepExecutionID, store func(ctx context.Context, id task.GroupID) error) error
	// Cancel cancels unfinished tasks.
	Cancel(ctx context.Context, id task.GroupID, reason string) error
	// Group counts the tasks.
	Group(ctx context.Context, id task.GroupID) (*task.Group, error)
	// Failed returns unsuccessful tasks, at most limit, in order of submission.
	Failed(ctx context.Context, id task.GroupID, limit int) ([]task.Task, error)
	// Results is as in task.Queries.
	Results(ctx context.Context, id task.GroupID, limit int) ([]json.RawMessage, error)
	// Executors returns the tasks' type, and whether workers execute them.
	Executors(ctx context.Context, id task.GroupID) (handler string, workers bool, err error)
	// Execute executes the tasks in this process, until end is called.
	Execute(ctx context.Context, id task.GroupID, handler string) (end func(), err error)
}

// MaxTasks per step.
const MaxTasks = core.MaxPartitions

// maxResults bounds a step's task results, in bytes.
const maxResults = core.MaxContextBytes

const maxNamed = 10

// TasksConfig describes a step of tasks.
type TasksConfig struct {
	Name    string
	Handler string
	Budget  task.Budget
	// Items makes the payloads. It is called once: a restart keeps its tasks.
	Items func(ctx context.Context, run *model.StepRun) ([]json.RawMessage, error)
	// On restricts the workers; nil means any.
	On *core.Placement
	// Key and After are the item fields for a task's key and its predecessors' (rule TO6).
	Key, After string
	// Groups is required.
	Groups TaskGroups
	// Gate, promoted keys and listeners; nil means none.
	Expect    *model.Condition
	Promote   *model.Promotion
	Listeners func(ctx context.Context, run *model.StepRun) ([]any, error)
}

// TasksStep submits a task per item and ends with their group: kind "tasks" (rules TS1 to TS5).
//
// The group and the step's note of it are one transaction. While workers execute, the execution is parked
// unless something keeps it here; otherwise the step executes or waits. A stop cancels the group. A restart
// repeats the unsuccessful tasks.
//
// Counters: tasks (read), succeeded (written). Named results: `group`, `total`, `succeeded`, `failed`,
// `canceled` and `results`, the Json artifacts in item order, null if missing; absent above 64 KB.
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

// Promote selects keys copied to the job's context.
func (s *TasksStep) Promote() *model.Promotion { return s.config.Promote }

// StepListeners makes the listeners.
func (s *TasksStep) StepListeners(ctx context.Context, run *model.StepRun) ([]any, error) {
	return listenersOf(ctx, run, s.config.Listeners)
}

// Items returns the payloads, without other reads or writes. An impossible order is an error.
func (s *TasksStep) Items(ctx context.Context, run *model.StepRun) ([]json.RawMessage, error) {
	items, err := s.config.Items(ctx, run)
	if err != nil {
		return nil, err
	}
	specs, err := s.config.Specs(items)
	if err == nil {
		_, err = task.Submission{Tasks: specs}.Order()
	}
	return items, err
}

// Execute submits or continues the group and returns when it is over. core.ErrParked: workers have it.
func (s *TasksStep) Execute(ctx context.Context, run *model.StepRun) error {
	if run.Data.Group != nil {
		return fmt.Errorf("step %s, a step of tasks, in atomic group %s: %w", s.Name(), run.Data.Group.Name, ErrInGroup)
	}
	w := &taskWait{step: s, run: run, groups: s.config.Groups}
	if err := w.begin(ctx); err != nil {
		return err
	}
	if w.id == 0 {
		return nil
	}
	return w.follow(ctx)
}

type taskWait struct {
	step     *TasksStep
	run      *model.StepRun
	groups   TaskGroups
	id       task.GroupID
	canceled bool
}

func (w *taskWait) begin(ctx context.Context) error {
	if w.run.Step.Context == nil {
		w.run.Step.Context = core.NewExecutionContext()
	}
	if stored, ok := w.run.Step.Context.Get(core.TasksKey); ok {
		id, is := stored.(int64)
		if !is {
			return fmt.Errorf("the step's context has a %T at key %s", stored, core.TasksKey)
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

// key is shared by attempts that continue each other. Of two processes that believe to own the step, one
// submits.
func (w *taskWait) key() string { return fmt.Sprintf("surfin.step %d", w.run.Step.First) }

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
		w.run.Step.Context.Delete(core.TasksKey) // no such group
		return err
	}
	w.run.Step.Context.Stored()
	w.run.Services.Observer.Observe(ctx, core.TasksSubmitted{
		Execution: job.ID, JobName: job.JobName, Step: w.run.Step.Name, StepID: w.run.Step.ID, Group: int64(w.id), Handler: w.step.config.Handler,
		Tasks: len(items), Warnings: warnings,
	})
	return nil
}

// store is guarded by the step's owner.
func (w *taskWait) store(ctx context.Context, id task.GroupID) error {
	w.id = id
	if err := w.run.Step.Context.Put(core.TasksKey, int64(id)); err != nil {
		return err
	}
	return w.run.Services.Plans.SaveStepContext(ctx, w.run.Ref, w.run.Step.Context)
}

const longestPoll = time.Second

func (w *taskWait) follow(ctx context.Context) error {
	handler, elsewhere, err := w.groups.Executors(ctx, w.id)
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

func (w *taskWait) watch(ctx context.Context, park bool) error {
	for begin := time.Now(); ; {
		over, err := w.look(ctx)
		switch {
		case err != nil || over:
			return err
		case w.releasing(), park:
			return core.ErrParked
		}
		if err := w.run.Pause(ctx, model.NextLook(time.Since(begin), longestPoll), w.canceled); err != nil {
			return err
		}
	}
}

// releasing: another process is to continue the step.
func (w *taskWait) releasing() bool {
	signal, ok := w.run.Services.Stop.(model.ReleaseSignal)
	return ok && signal.Releasing()
}

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

func (w *taskWait) cancel(ctx context.Context) error {
	w.canceled = true
	err := w.groups.Cancel(ctx, w.id, fmt.Sprintf("execution %d of job %s was stopped", w.run.Data.Job.ID, w.run.Data.Job.JobName))
	if _, over := errors.AsType[*task.GroupOverError](err); over {
		return nil
	}
	return err
}

// Earlier attempts' successes are in Before.
func (w *taskWait) report(g *task.Group) {
	s := w.run.Step
	s.Counters.Read = int64(g.Total) - s.Before.Read
	s.Counters.Write = int64(g.Succeeded) - s.Before.Write
	s.Out = map[string]any{
		"group": int64(g.ID), "total": int64(g.Total), "succeeded": int64(g.Succeeded), "failed": int64(g.Failed), "canceled": int64(g.Canceled),
	}
}

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

const maxReason = 200

func shortened(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > maxReason {
		return string(runes[:maxReason-1]) + "…"
	}
	return string(runes)
}

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
