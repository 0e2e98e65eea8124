package api

import (
	"context"
	"fmt"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/surfin-batch/surfin/internal/access"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

type (
	// TaskPath is embedded in the input of operations on a task.
	TaskPath struct {
		ID int64 `path:"task" minimum:"1" doc:"Number of a task"`
	}
	// GroupPath is embedded in the input of operations on a group of tasks.
	GroupPath struct {
		ID int64 `path:"group" minimum:"1" doc:"Number of a group of tasks"`
	}
	// ReasonBody is embedded in the body of acts.
	ReasonBody struct {
		Reason string `json:"reason,omitempty" maxLength:"1000" doc:"The reason, for the audit"`
	}
	listTasksInput struct {
		Group  int64     `query:"group" minimum:"0" doc:"Only tasks of this group"`
		State  string    `query:"state" maxLength:"50" doc:"Only tasks in this state"`
		Type   string    `query:"type" maxLength:"200" doc:"Only tasks of this type"`
		Since  time.Time `query:"since" doc:"Only tasks that were submitted then or later"`
		Until  time.Time `query:"until" doc:"Only tasks that were submitted before"`
		Text   string    `query:"text" maxLength:"200" doc:"Only tasks with this text in their type, title, key or last error; the case of letters does not matter"`
		Before int64     `query:"before" minimum:"0" doc:"Only those with a smaller number: next of the previous page"`
		PageSize
	}
	taskLogInput struct {
		TaskPath
		Attempt int    `query:"attempt" minimum:"0" doc:"Number of an attempt; 0 means the newest one with an output"`
		Output  string `query:"output" maxLength:"20" doc:"Stdout or Stderr; empty means the first that there is"`
		From    int    `query:"from" minimum:"0" doc:"Number of characters to leave out: next of the previous page"`
		Limit   int    `query:"limit" minimum:"0" maximum:"65536" doc:"Number of characters; 0 means 65536"`
	}
	groupsInput struct {
		Before int64 `query:"before" minimum:"0" doc:"Only those with a smaller number"`
		PageSize
	}
	taskList struct {
		Tasks []runtime.TaskView `json:"tasks"`
		Next  int64              `json:"next,omitempty" doc:"before of the next page, which may be empty; absent if all was searched. A page ends after about a tenth of a second"`
	}
	groupList struct {
		Groups []runtime.GroupView `json:"groups"`
	}
	taskDetails struct {
		Task      runtime.TaskView      `json:"task"`
		WaitsFor  string                `json:"waits_for,omitempty" doc:"What it waits for: tasks of its group, or a worker that its placement allows or that has its decider"`
		Attempts  []runtime.AttemptView `json:"attempts" doc:"Its executions, oldest first"`
		Decisions []taskDecision        `json:"decisions" doc:"The decisions after each execution, oldest first"`
	}
	submitInput struct {
		KeyHeader
		Body runtime.SubmitRequest
	}
	submitOneInput struct {
		KeyHeader
		Body runtime.SpecForm
	}
	submitted struct {
		ID       task.GroupID    `json:"id" doc:"The group"`
		Status   task.GroupState `json:"status" doc:"Its state"`
		Applied  bool            `json:"applied" doc:"False if it was submitted before"`
		Tasks    []task.ID       `json:"tasks" doc:"Its tasks, in the order of the submission"`
		Warnings []string        `json:"warnings,omitempty" doc:"Warnings: types that no worker executes now, or that no worker is alive"`
	}
	taskActInput struct {
		TaskPath
		KeyHeader
		Body *ReasonBody
	}
	groupActInput struct {
		GroupPath
		KeyHeader
		Body *ReasonBody
	}
	taskActed struct {
		ID      int64  `json:"id" doc:"The task, or the group"`
		Status  string `json:"status" doc:"Its current state"`
		Applied bool   `json:"applied" doc:"False if it was done before"`
	}
	// Its own name in the OpenAPI.
	taskDecision runtime.DecisionView
	artifactForm struct {
		Kind  string `json:"kind"`
		Value any    `json:"value"`
	}
)

func (a *api) addTasks(h huma.API) {
	huma.Register(h, get(h, "list-tasks", "/v1/tasks", "Tasks, newest first", ""), a.listTasks)
	huma.Register(h, get(h, "show-task", "/v1/tasks/{task}", "One task", "With its attempts and the decision after each."),
		func(ctx context.Context, in *TaskPath) (*output[taskDetails], error) {
			return answer(a, ctx, func() (*taskDetails, error) { return a.showTask(ctx, task.ID(in.ID)) })
		})
	huma.Register(h, get(h, "task-log", "/v1/tasks/{task}/log", "The output of a task", "The standard output and error that a handler left, a page at a time."),
		func(ctx context.Context, in *taskLogInput) (*output[taskports.TaskLog], error) {
			return answer(a, ctx, func() (*taskports.TaskLog, error) {
				return a.Tasks.Log(ctx, taskports.LogFilter{Task: task.ID(in.ID), Attempt: in.Attempt, Output: task.ArtifactKind(in.Output), From: in.From, Limit: in.Limit})
			})
		})
	huma.Register(h, get(h, "list-groups", "/v1/groups", "Groups of tasks, newest first", "Each with the counts of its tasks."),
		func(ctx context.Context, in *groupsInput) (*output[groupList], error) {
			return answer(a, ctx, func() (*groupList, error) {
				groups, err := a.Tasks.Groups(ctx, task.GroupID(in.Before), in.size())
				return &groupList{views(groups, runtime.ViewGroup)}, err
			})
		})
	huma.Register(h, get(h, "show-group", "/v1/groups/{group}", "One group of tasks", "Its state, budget and the counts of its tasks."),
		func(ctx context.Context, in *GroupPath) (*output[runtime.GroupView], error) {
			return answer(a, ctx, func() (*runtime.GroupView, error) {
				g, err := a.Tasks.Group(ctx, task.GroupID(in.ID))
				if err != nil {
					return nil, err
				}
				view := runtime.ViewGroup(*g)
				return &view, nil
			})
		})
	a.addSubmissions(h)
	a.addTaskActs(h)
}

func (a *api) addSubmissions(h huma.API) {
	const text = "Workers execute it as soon as they can. With the header Idempotency-Key, or an idempotency_key in the body, it is submitted once. A submission with errors is refused as a whole."
	huma.Register(h, post(h, "submit-task", "/v1/tasks", "Submit a task", "A group of one. "+text),
		func(ctx context.Context, in *submitOneInput) (*keyed[submitted], error) {
			return together(a, ctx, in.Key, request{"submit-task", 0, in.Body}, func(ctx context.Context, key ports.RequestKey) (*submitted, error) {
				return a.submit(ctx, runtime.SubmitRequest{Tasks: []*runtime.SpecForm{&in.Body}}, key)
			})
		})
	huma.Register(h, post(h, "submit-group", "/v1/groups", "Submit tasks as a group", "With a budget for all of them. "+text),
		func(ctx context.Context, in *submitInput) (*keyed[submitted], error) {
			return together(a, ctx, in.Key, request{"submit-group", 0, in.Body}, func(ctx context.Context, key ports.RequestKey) (*submitted, error) {
				return a.submit(ctx, in.Body, key)
			})
		})
}

func (a *api) addTaskActs(h huma.API) {
	huma.Register(h, post(h, "cancel-task", "/v1/tasks/{task}/cancel", "Cancel a task", "The worker that executes it is notified at its next heartbeat. A task that is over is refused."),
		func(ctx context.Context, in *taskActInput) (*keyed[taskActed], error) {
			return together(a, ctx, in.Key, request{"cancel-task", in.ID, in.Body}, func(ctx context.Context, _ ports.RequestKey) (*taskActed, error) {
				return actedOnTask(in.ID, a.Tasks.Cancel)(ctx, in.Body)
			})
		})
	huma.Register(h, post(h, "rerun-task", "/v1/tasks/{task}/rerun", "Execute a task again", "For a task that failed, timed out or was cancelled. Its attempts are counted again from 0; earlier ones stay in the history. Tasks that were cancelled because they wait for it wait again. A task that waits for an unsuccessful task is refused."),
		func(ctx context.Context, in *taskActInput) (*keyed[taskActed], error) {
			return together(a, ctx, in.Key, request{"rerun-task", in.ID, in.Body}, func(ctx context.Context, _ ports.RequestKey) (*taskActed, error) {
				return actedOnTask(in.ID, a.Tasks.Rerun)(ctx, in.Body)
			})
		})
	huma.Register(h, post(h, "cancel-group", "/v1/groups/{group}/cancel", "Cancel the unfinished tasks of a group", "A group that is over is refused."),
		func(ctx context.Context, in *groupActInput) (*keyed[taskActed], error) {
			return together(a, ctx, in.Key, request{"cancel-group", in.ID, in.Body}, func(ctx context.Context, _ ports.RequestKey) (*taskActed, error) {
				got, err := actedOnTask(in.ID, a.Tasks.CancelGroup)(ctx, in.Body)
				if err != nil {
					return nil, err
				}
				status, err := a.Tasks.Status(ctx, task.GroupID(in.ID))
				if err != nil {
					return nil, err
				}
				got.Status = string(status.State)
				return got, nil
			})
		})
}

func (p PageSize) size() int {
	if p.Limit == 0 {
		return 50
	}
	return p.Limit
}

// An empty list is not null.
func views[T, V any](list []T, view func(T) V) []V {
	made := make([]V, 0, len(list))
	for _, t := range list {
		made = append(made, view(t))
	}
	return made
}

func (a *api) listTasks(ctx context.Context, in *listTasksInput) (*output[taskList], error) {
	return answer(a, ctx, func() (*taskList, error) {
		found, err := a.Tasks.Search(ctx, task.Filter{
			Group: task.GroupID(in.Group), State: task.State(in.State), Type: in.Type, Since: in.Since, Until: in.Until, Text: in.Text, Before: task.ID(in.Before), Limit: in.size(),
		})
		if err != nil {
			return nil, err
		}
		return &taskList{views(found.Tasks, func(t task.Task) runtime.TaskView {
			view := viewTask(ctx, t)
			view.WaitsFor = found.Waits[t.ID]
			return view
		}), int64(found.Next)}, nil
	})
}

func viewTask(ctx context.Context, t task.Task) runtime.TaskView {
	view := runtime.ViewTask(t)
	view.Spec = shown(ctx, view.Spec)
	return view
}

func (a *api) showTask(ctx context.Context, id task.ID) (*taskDetails, error) {
	t, err := a.Tasks.Task(ctx, id)
	if err != nil {
		return nil, err
	}
	attempts, err := a.Tasks.Attempts(ctx, id)
	if err != nil {
		return nil, err
	}
	waits, err := a.Tasks.WaitingFor(ctx, t)
	if err != nil {
		return nil, err
	}
	decisions, err := a.Tasks.Decisions(ctx, id)
	return &taskDetails{viewTask(ctx, *t), waits, views(attempts, func(at taskports.Attempt) runtime.AttemptView {
		view := runtime.ViewAttempt(at)
		view.Action.Type = t.Spec.Type
		view.Action = shown(ctx, view.Action)
		return view
	}), views(decisions, func(d taskports.DecisionRecord) taskDecision { return taskDecision(runtime.ViewDecision(d)) })}, err
}

// The key of the request: if the process dies before the answer is stored, a
// repetition finds the group.
func (a *api) submit(ctx context.Context, req runtime.SubmitRequest, key ports.RequestKey) (*submitted, error) {
	for field, text := range map[string]string{"title": req.Title, "decider": req.Decider, "idempotency_key": req.IdempotencyKey, "type": req.Type} {
		if err := noNUL(field, text); err != nil {
			return nil, err
		}
	}
	sub := req.Submission()
	for i := range sub.Tasks {
		if operator.IsAct(sub.Tasks[i].Payload) && sub.Tasks[i].TypeOr(sub.Type) == task.TypeJob {
			return nil, &operator.RequestError{Field: fmt.Sprintf("body.tasks[%d].payload", i), Reason: "it is of a bulk or a back-fill: use POST /v1/bulk or /v1/jobs/{job}/backfill, which ask whether this server offers its job"}
		}
	}
	return a.submitAs(ctx, sub, key)
}

func (a *api) submitAs(ctx context.Context, sub task.Submission, key ports.RequestKey) (*submitted, error) {
	for i := range sub.Tasks {
		sub.Tasks[i].Client = &task.Client{Name: access.CallerOf(ctx).Name, Paths: a.Paths}
	}
	if sub.IdempotencyKey == "" && key.Key != "" {
		sub.IdempotencyKey = "API " + key.Client + " " + key.Key
	}
	accepted, err := a.Tasks.Submit(ctx, sub)
	if err != nil {
		return nil, err
	}
	status, err := a.Tasks.Status(ctx, accepted.Group)
	if err != nil {
		return nil, err
	}
	warning, err := a.Tasks.NoWorker(ctx)
	if err != nil {
		return nil, err
	}
	if warning != "" && !status.IsOver() {
		accepted.Warnings = append(accepted.Warnings, warning)
	}
	return &submitted{ID: accepted.Group, Status: status.State, Applied: !accepted.Duplicate, Tasks: accepted.Tasks, Warnings: accepted.Warnings}, nil
}

func noNUL(field, text string) error {
	if !access.IsText(text) {
		return &operator.RequestError{Field: "body." + field, Reason: "it contains a NUL character"}
	}
	return nil
}

func actedOnTask[ID ~int64](id int64, act func(context.Context, ID, runtime.By) (*runtime.Acted, error)) func(context.Context, *ReasonBody) (*taskActed, error) {
	return func(ctx context.Context, body *ReasonBody) (*taskActed, error) {
		by := runtime.By{Actor: actorOf(ctx)}
		if body != nil {
			by.Reason = body.Reason
		}
		if err := noNUL("reason", by.Reason); err != nil {
			return nil, err
		}
		got, err := act(ctx, ID(id), by)
		if err != nil {
			return nil, err
		}
		return &taskActed{ID: id, Status: string(got.State), Applied: got.Answer == string(core.Applied)}, nil
	}
}
