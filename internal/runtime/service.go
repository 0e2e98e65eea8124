package runtime

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/lease"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/runtime/engine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/inbox"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// TaskServiceConfig configures a TaskService.
type TaskServiceConfig struct {
	Repository taskports.Repository
	Engine     engine.Engine
	Database   tx.Database
	Catalog    *Catalog
	// Logs means that old log text moves to a folder (tasks.logs); else a
	// log_retention_days_db is refused.
	Logs bool
	// Events may be nil.
	Events *inbox.Events
	// Places: nil means Repository.Places.
	Places []ports.Places
	// Leader may be nil: some process is assumed to lead.
	Leader func(ctx context.Context) (*taskports.Leader, error)
	// Runs are for schedules; without them there are none.
	Runs TimeRuns
	// Actor is for requests that name none; required.
	Actor string
	// Mask hides secrets in outputs; nil hides nothing.
	Mask func(text string) string
}

// TaskService submits and operates tasks; nothing else does. Methods work in
// ctx's transaction of the repository's database, else in their own. Refused
// requests return a *refusal.Refusal. It is safe for concurrent use.
type TaskService struct {
	submissions taskports.Submissions
	notes       taskports.Notes
	tasks       taskports.TaskQueries
	groups      taskports.GroupQueries
	workers     taskports.WorkerQueries
	settings    taskports.Settings
	engine      engine.Engine
	manager     *tx.Manager
	catalog     *Catalog
	logs        bool
	events      *inbox.Events
	actor       string
	places      []ports.Places
	leader      func(ctx context.Context) (*taskports.Leader, error)
	runs        TimeRuns
	mask        func(text string) string
}

// NewTaskService checks the configuration.
func NewTaskService(c TaskServiceConfig) (*TaskService, error) {
	r := c.Repository
	if r.Submissions == nil || c.Engine == nil || c.Database == nil || c.Catalog == nil || c.Actor == "" {
		return nil, errors.New("a service of tasks needs a repository, its database, an engine, a catalog and an actor")
	}
	if c.Places == nil {
		c.Places = []ports.Places{r.Places}
	}
	return &TaskService{
		submissions: r.Submissions, notes: r.Notes, tasks: r.TaskQueries, groups: r.GroupQueries, workers: r.WorkerQueries, settings: r.Settings,
		engine: c.Engine, manager: tx.NewManager(c.Database), catalog: c.Catalog, logs: c.Logs, events: c.Events, actor: c.Actor, places: c.Places, leader: c.Leader, runs: c.Runs, mask: c.Mask,
	}, nil
}

// Accepted is the answer to a submission.
type Accepted struct {
	task.Submitted
	// Warnings name types without a handler here.
	Warnings []string `json:"warnings,omitempty"`
}

// ownKeys begins the idempotency keys of steps and schedules.
const ownKeys = "surfin."

// Submit stores a group of tasks for workers, or refuses it with every error.
// Keys that begin with "surfin." are reserved. The audit records it.
func (s *TaskService) Submit(ctx context.Context, sub task.Submission) (accepted *Accepted, err error) {
	err = s.manager.Do(ctx, tx.Attr{}, func(ctx context.Context) error {
		if accepted, err = s.submit(ctx, sub, ownKeyed(sub)...); err != nil || accepted.Duplicate {
			return err
		}
		return s.notes.Note(ctx, ports.VerbSubmit, s.who(ctx, By{}), fmt.Sprintf("group %d with %d tasks", accepted.Group, len(sub.Tasks)))
	})
	if err != nil {
		return nil, refusalOf(err)
	}
	return accepted, nil
}

func ownKeyed(sub task.Submission) (wrong []error) {
	check := func(where, key string) {
		if strings.HasPrefix(key, ownKeys) {
			wrong = append(wrong, fmt.Errorf("%sidempotency_key: %q begins with %q, like the keys of steps and schedules: choose another one", where, key, ownKeys))
		}
	}
	check("", sub.IdempotencyKey)
	for i, spec := range sub.Tasks {
		check(fmt.Sprintf("tasks[%d]: ", i), spec.IdempotencyKey)
		if t := spec.TypeOr(sub.Type); strings.HasPrefix(t, ownKeys) {
			wrong = append(wrong, fmt.Errorf("tasks[%d]: type: %q begins with %q, like the queues of the framework", i, t, ownKeys))
		}
	}
	return wrong
}

func (s *TaskService) submit(ctx context.Context, sub task.Submission, wrong ...error) (*Accepted, error) {
	sub.Tasks = slices.Clone(sub.Tasks)
	for i, spec := range sub.Tasks {
		sub.Tasks[i].Type = spec.TypeOr(sub.Type)
	}
	if wrong = append(wrong, s.wrong(sub)...); len(wrong) > 0 {
		return nil, refuse(refusal.Invalid, errors.Join(wrong...), wrong...)
	}
	var accepted Accepted
	unknown := s.unknown(sub)
	if len(unknown) > 0 && !s.engine.Capabilities().Distributed {
		return nil, refuse(refusal.UnknownType, errors.New(s.catalog.lacks(unknown[0])))
	}
	for _, t := range unknown {
		accepted.Warnings = append(accepted.Warnings, s.catalog.lacks(t)+"; they wait for a worker that has one")
	}
	for i, spec := range sub.Tasks {
		if hint := bytes.TrimSpace(spec.DependenciesHint); len(hint) > 0 && string(hint) != "null" {
			accepted.Warnings = append(accepted.Warnings, fmt.Sprintf("tasks[%d]: dependencies_hint is stored but has no effect: write after: [keys], with the keys of the tasks of the group that it waits for", i))
		}
	}
	err := s.manager.Do(ctx, tx.Attr{}, func(ctx context.Context) error {
		submitted, waiting, err := s.submissions.Submit(ctx, sub)
		if err != nil {
			return err
		}
		accepted.Submitted = *submitted
		if accepted.Warnings, err = s.warnings(ctx, sub, accepted.Warnings); err != nil {
			return err
		}
		return s.engine.Enqueue(ctx, taskDeliveries(waiting)...)
	})
	if err != nil {
		return nil, refusalOf(err)
	}
	return &accepted, nil
}

func (s *TaskService) warnings(ctx context.Context, sub task.Submission, list []string) ([]string, error) {
	list, err := s.placementWarnings(ctx, sub, list)
	if err != nil || !s.engine.Capabilities().Distributed {
		return list, err
	}
	workers, err := s.workers.Workers(ctx)
	if err != nil {
		return nil, err
	}
	if has := func(w taskports.Worker) bool {
		return w.State == taskports.WorkerActive && slices.Contains(w.Deciders, sub.Decider)
	}; sub.Decider != "" && !slices.ContainsFunc(workers, has) {
		list = append(list, fmt.Sprintf("no live worker has the decider %q now; the tasks wait for one", sub.Decider))
	}
	var warned []string
	for _, spec := range sub.Tasks {
		if t := spec.Type; !slices.Contains(warned, t) && slices.Contains(s.catalog.Types(), t) && !taskports.IsExecuted(workers, t) {
			warned = append(warned, t)
			list = append(list, fmt.Sprintf("no live worker executes tasks of type %q now; they wait for one", t))
		}
	}
	return list, nil
}

func (s *TaskService) wrong(sub task.Submission) (wrong []error) {
	if len(sub.Tasks) == 0 {
		wrong = append(wrong, errors.New("tasks: the list is empty"))
	}
	wrong = append(wrong, flat("", sub.Check())...)
	if err := sub.Budget.Check(); err != nil {
		wrong = append(wrong, flat("", err)...)
	}
	if sub.Decider != "" && !slices.Contains(s.catalog.Deciders(), sub.Decider) {
		wrong = append(wrong, fmt.Errorf("decider: there is no %q (there are: %q)", sub.Decider, s.catalog.Deciders()))
	}
	for i, spec := range sub.Tasks {
		wrong = append(wrong, flat(fmt.Sprintf("tasks[%d]: ", i), spec.Check())...)
	}
	if _, err := model.TaskOrder(sub); err != nil {
		wrong = append(wrong, flat("", err)...)
	}
	return wrong
}

func flat(prefix string, err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{fmt.Errorf("%s%w", prefix, err)}
	}
	var list []error
	for _, e := range joined.Unwrap() {
		list = append(list, flat(prefix, e)...)
	}
	return list
}

func (s *TaskService) unknown(sub task.Submission) (types []string) {
	known := s.catalog.Types()
	for _, spec := range sub.Tasks {
		if !slices.Contains(known, spec.Type) && !slices.Contains(types, spec.Type) {
			types = append(types, spec.Type)
		}
	}
	slices.Sort(types)
	return types
}

// By names the actor and the reason.
type By struct {
	Actor  string `json:"actor,omitempty"` // "" means the service's
	Reason string `json:"reason,omitempty"`
}

// Acted is "applied", or "duplicate" if there was nothing to change.
type Acted struct {
	Answer string     `json:"answer"`
	State  task.State `json:"state,omitempty"` // of the task, now
}

// Cancel cancels an unfinished task; its worker learns of it at its next
// heartbeat.
func (s *TaskService) Cancel(ctx context.Context, id task.ID, by By) (*Acted, error) {
	return s.act(ctx, id, func(ctx context.Context) (core.Answer, error) {
		answer, opened, err := s.submissions.Cancel(ctx, id, s.who(ctx, by), by.Reason)
		if err != nil || answer != core.Applied {
			return answer, err
		}
		t, err := s.tasks.Task(ctx, id)
		if err != nil {
			return answer, err
		}
		if err := s.engine.Enqueue(ctx, taskDeliveries(opened)...); err != nil {
			return answer, err
		}
		return answer, s.engine.Cancel(ctx, taskDeliveries([]taskports.Delivery{{ID: id, Epoch: t.Epoch, Type: t.Spec.Type, Priority: t.Spec.Priority}})...)
	})
}

// CancelGroup cancels a group's unfinished tasks. An ended group is refused.
func (s *TaskService) CancelGroup(ctx context.Context, id task.GroupID, by By) (*Acted, error) {
	answer, err := s.submissions.CancelGroup(ctx, id, s.who(ctx, by), by.Reason)
	if err != nil {
		return nil, refusalOf(err)
	}
	return &Acted{Answer: string(answer)}, nil
}

// Rerun repeats a task that failed, timed out or was canceled, and those
// canceled because they wait for it. Attempts count from zero again.
func (s *TaskService) Rerun(ctx context.Context, id task.ID, by By) (*Acted, error) {
	return s.act(ctx, id, func(ctx context.Context) (core.Answer, error) {
		answer, waiting, err := s.submissions.Rerun(ctx, id, s.who(ctx, by), by.Reason)
		if err != nil {
			return answer, err
		}
		return answer, s.engine.Enqueue(ctx, taskDeliveries(waiting)...)
	})
}

func (s *TaskService) who(ctx context.Context, by By) string {
	return cmp.Or(by.Actor, ports.ActorOf(ctx), s.actor)
}

func (s *TaskService) act(ctx context.Context, id task.ID, move func(ctx context.Context) (core.Answer, error)) (*Acted, error) {
	var acted Acted
	err := s.manager.Do(ctx, tx.Attr{}, func(ctx context.Context) error {
		answer, err := move(ctx)
		if err != nil {
			return err
		}
		t, err := s.tasks.Task(ctx, id)
		if err != nil {
			return err
		}
		acted = Acted{Answer: string(answer), State: t.State}
		return nil
	})
	if err != nil {
		return nil, refusalOf(err)
	}
	return &acted, nil
}

// Task returns a task.
func (s *TaskService) Task(ctx context.Context, id task.ID) (*task.Task, error) {
	t, err := s.tasks.Task(ctx, id)
	return t, refusalOf(err)
}

// Tasks returns tasks, newest first.
func (s *TaskService) Tasks(ctx context.Context, f task.Filter) ([]task.Task, error) {
	if err := checkFilter(f); err != nil {
		return nil, err
	}
	list, err := s.tasks.Tasks(ctx, f)
	return list, refusalOf(err)
}

// Status counts the tasks of a group.
func (s *TaskService) Status(ctx context.Context, id task.GroupID) (*task.GroupStatus, error) {
	g, err := s.groups.Group(ctx, id)
	if err != nil {
		return nil, refusalOf(err)
	}
	return &g.GroupStatus, nil
}

// Group returns a group.
func (s *TaskService) Group(ctx context.Context, id task.GroupID) (*task.Group, error) {
	g, err := s.groups.Group(ctx, id)
	return g, refusalOf(err)
}

// Groups returns those with IDs below before (0: all), newest first. limit 0
// means 100.
func (s *TaskService) Groups(ctx context.Context, before task.GroupID, limit int) ([]task.Group, error) {
	list, err := s.groups.Groups(ctx, before, limit)
	return list, refusalOf(err)
}

// Attempts returns the attempts of a task, oldest first.
func (s *TaskService) Attempts(ctx context.Context, id task.ID) ([]taskports.Attempt, error) {
	list, err := s.tasks.Attempts(ctx, id)
	return list, refusalOf(err)
}

// Decisions returns those about a task, oldest first.
func (s *TaskService) Decisions(ctx context.Context, id task.ID) ([]taskports.DecisionRecord, error) {
	list, err := s.tasks.Decisions(ctx, id)
	return list, refusalOf(err)
}

// Workers returns the processes that execute tasks.
func (s *TaskService) Workers(ctx context.Context) ([]taskports.Worker, error) {
	list, err := s.workers.Workers(ctx)
	return list, refusalOf(err)
}

// Leader returns the current or last leader; nil if there never was one.
func (s *TaskService) Leader(ctx context.Context) (*taskports.Leader, error) {
	if s.leader == nil {
		return nil, nil
	}
	l, err := s.leader(ctx)
	return l, refusalOf(err)
}

// NoWorker returns a warning if no worker is alive, or "".
func (s *TaskService) NoWorker(ctx context.Context) (string, error) {
	workers, err := s.Workers(ctx)
	if err != nil || slices.ContainsFunc(workers, func(w taskports.Worker) bool { return w.State == taskports.WorkerActive }) {
		return "", err
	}
	return "no worker is alive: the tasks wait until one is started", nil
}

// WaitingTypes returns the types of waiting tasks that no live worker executes, sorted.
func (s *TaskService) WaitingTypes(ctx context.Context) ([]string, error) {
	waiting, err := s.workers.WaitingTypes(ctx)
	if err != nil {
		return nil, refusalOf(err)
	}
	workers, err := s.workers.Workers(ctx)
	if err != nil {
		return nil, refusalOf(err)
	}
	var names []string
	for _, t := range taskports.InVain(waiting, workers) {
		names = append(names, t.Name)
	}
	return names, nil
}

// WaitingDeciders returns the deciders that tasks wait for and no live worker has.
func (s *TaskService) WaitingDeciders(ctx context.Context) ([]taskports.WaitingDecider, error) {
	list, err := s.workers.WaitingDeciders(ctx)
	return list, refusalOf(err)
}

// WaitingFor returns why a task waits, or "".
func (s *TaskService) WaitingFor(ctx context.Context, t *task.Task) (string, error) {
	if t.State == task.Waiting && t.OpenAfterCount > 0 {
		return t.WaitsFor(), nil
	}
	if t.State.IsOver() || t.State == task.Running && !t.Confirming {
		return "", nil
	}
	if waits, err := s.Waits(ctx, []task.Task{*t}); err != nil || waits[t.ID] != "" {
		return waits[t.ID], err
	}
	g, err := s.groups.Group(ctx, t.GroupID)
	if err != nil || g.Decider == "" {
		return "", refusalOf(err)
	}
	missing, err := s.workers.WaitingDeciders(ctx)
	if err != nil || !slices.ContainsFunc(missing, func(d taskports.WaitingDecider) bool { return d.Name == g.Decider }) {
		return "", refusalOf(err)
	}
	return fmt.Sprintf("a worker that has the decider %q: no live worker has it", g.Decider), nil
}

// Settings returns the settings that processes share.
func (s *TaskService) Settings(ctx context.Context) ([]taskports.Setting, error) {
	list, err := s.settings.Settings(ctx)
	return list, refusalOf(err)
}

// Set changes a shared setting: the leader reads it at its next tick.
// "duplicate" means unchanged.
func (s *TaskService) Set(ctx context.Context, name, value string, by By) (*Acted, error) {
	if err := taskports.CheckSetting(name, value); err == nil && name == taskports.LogRetention && value != "0" && !s.logs {
		return nil, refuse(refusal.Invalid, fmt.Errorf("%w: %s would have no effect, because tasks.logs names no folder to which log text moves: set it in the surfin.yaml of the workers and of this command (SURFIN_TASKS_LOGS) first", taskports.ErrSetting, name))
	}
	answer, err := s.settings.Set(ctx, name, value, s.who(ctx, by))
	switch {
	case errors.Is(err, taskports.ErrSetting):
		return nil, refuse(refusal.Invalid, err)
	case err != nil:
		return nil, refusalOf(err)
	}
	return &Acted{Answer: string(answer)}, nil
}

const (
	firstLook   = 20 * time.Millisecond
	longestLook = 2 * time.Second
)

// patiently: rule O1.
func patiently[T any](ctx context.Context, read func(ctx context.Context) (T, error)) (answer T, err error) {
	err = model.Patiently(ctx, func(ctx context.Context) (err error) {
		answer, err = read(ctx)
		return err
	})
	return answer, err
}

// Wait returns the group when no task of it will move by itself. It polls ever
// less often. The error is ctx's cause.
func (s *TaskService) Wait(ctx context.Context, id task.GroupID) (*task.Group, error) {
	if !model.HasPatience(ctx) {
		ctx = model.WithPatience(ctx, lease.Waiting)
	}
	for pause := firstLook; ; pause = min(pause+pause/2, longestLook) {
		g, err := patiently(ctx, func(ctx context.Context) (*task.Group, error) { return s.groups.Group(ctx, id) })
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			return nil, refusalOf(err)
		case g.IsOver():
			return g, nil
		}
		sleep(ctx, jittered(pause))
	}
}
