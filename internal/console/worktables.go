package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

func (v *visit) workerLives() (bool, error) {
	workers, err := v.Tasks.Workers(v.r.Context())
	return slices.ContainsFunc(workers, func(w taskports.Worker) bool { return w.State == taskports.WorkerActive }), err
}

type tasksView struct {
	Tasks   []taskLine
	Form    map[string]string
	Filters []filterWord
	States  []choice
	Older   string
	Newest  string
	Group   *link
	// NoWorker: those that wait do not start.
	NoWorker string
}

type taskLine struct {
	link
	Group    link
	State    statusView
	Type     string
	Title    string
	Worker   string
	Attempts int
	Error    string
	Waits    string
	Next     moment
	Created  moment
	Updated  moment
}

func (v ofWork) tasks() (*page, error) {
	filter := task.Filter{Group: task.GroupID(v.key("group")), Type: v.text("type"), Before: task.ID(v.key("before")), Limit: pageSize}
	if state := task.State(strings.ToUpper(v.text("state"))); slices.Contains(taskports.States(), state) {
		filter.State = state
	} else if state != "" {
		var names []string
		for _, s := range taskports.States() {
			names = append(names, string(s))
		}
		v.mistake("state", string(state), "no such state", names...)
	}
	filter.Since, filter.Until, filter.Text = ofList(v).time("since"), ofList(v).time("until"), v.text("text")
	found, err := v.Tasks.Search(v.r.Context(), filter)
	if refused, is := errors.AsType[*refusal.Refusal](err); is {
		v.wrong = append(v.wrong, clip(refused.Error(), lineText))
		filter.Until, filter.Text = time.Time{}, ""
		found, err = v.Tasks.Search(v.r.Context(), filter)
	}
	if err != nil {
		return nil, err
	}
	view := tasksView{Form: map[string]string{}}
	if found.Next != 0 {
		view.Older = v.with("before", strconv.FormatInt(int64(found.Next), 10))
	}
	if filter.Before != 0 {
		view.Newest = v.with("before", "")
	}
	for i := range found.Tasks {
		view.Tasks = append(view.Tasks, v.taskLine(&found.Tasks[i], found.Waits[found.Tasks[i].ID]))
	}
	if slices.ContainsFunc(found.Tasks, func(t task.Task) bool { return !t.State.IsOver() }) {
		if view.NoWorker, err = v.Tasks.NoWorker(v.r.Context()); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"group", "type", "state", "since", "until", "text"} {
		if view.Form[name] = v.text(name); view.Form[name] != "" {
			view.Filters = append(view.Filters, filterWord{name + ": " + clip(view.Form[name], shortText), v.with(name, "", "before", "")})
		}
	}
	for _, s := range taskports.States() {
		view.States = append(view.States, choice{string(s), v.with("state", string(s), "before", ""), s == filter.State})
	}
	return &page{Title: "Tasks", Heading: "Tasks, newest first", Body: view, Live: "task", Acts: actingOn(v.visit, "Submit a task", "/tasks/submit")}, nil
}

func (v *visit) taskLink(of task.ID) link {
	number := strconv.FormatInt(int64(of), 10)
	return link{number, v.Base + "/tasks/" + number}
}

func (v *visit) groupLink(of task.GroupID) link {
	number := strconv.FormatInt(int64(of), 10)
	return link{number, v.Base + "/groups/" + number}
}

func (v ofWork) taskLine(t *task.Task, waits string) taskLine {
	l := taskLine{
		link: v.taskLink(t.ID), Group: v.groupLink(t.GroupID), State: stateView(string(t.State)), Type: clip(t.Spec.Type, shortText), Title: clip(v.masked(t.Spec.Title), shortText),
		Worker: clip(t.Worker, shortText), Attempts: t.Attempts, Error: clip(v.masked(t.LastError), lineText), Waits: clip(waits, lineText),
		Created: v.moment(t.CreatedAt), Updated: v.moment(t.UpdatedAt),
	}
	if t.NextRunAt != nil && !t.State.IsOver() {
		l.Next = v.moment(*t.NextRunAt)
	}
	return l
}

type taskView struct {
	taskLine
	Error     string
	Payload   string
	Facts     []paramView
	Attempts  []taskAttempt
	Decisions []decisionLine
}

type taskAttempt struct {
	Number    int
	Log       string // the address of its output
	State     statusView
	Worker    string
	Reason    string
	Outcome   string
	Started   moment
	Ended     moment
	Took      string
	Execution *link
}

type decisionLine struct {
	At                          moment
	Trigger, Policy, Is, Reason string
}

func (v ofWork) task() (*page, error) {
	ctx := v.r.Context()
	t, err := v.Tasks.Task(ctx, task.ID(v.number("task")))
	if err != nil {
		return nil, err
	}
	attempts, err := v.Tasks.Attempts(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	decisions, err := v.Tasks.Decisions(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	waits, err := v.Tasks.WaitingFor(ctx, t)
	if err != nil {
		return nil, err
	}
	view := taskView{taskLine: v.taskLine(t, waits), Error: whole(v.masked(t.LastError)), Payload: v.payload(t.Spec), Facts: v.facts(&t.Spec)}
	for i := range attempts {
		view.Attempts = append(view.Attempts, v.taskAttempt(&attempts[i]))
	}
	for _, d := range decisions {
		l := decisionLine{At: v.moment(d.DecidedAt), Trigger: d.Trigger, Policy: clip(d.Policy, shortText), Reason: clip(v.masked(d.Decision.Reason), lineText), Is: "again in " + humanize.Duration(d.Decision.Delay)}
		if d.Decision.Dead {
			l.Is = "give up"
		}
		view.Decisions = append(view.Decisions, l)
	}
	text := "Task " + view.Text
	do, verb, live := "/cancel", "Cancel it", "task:"+view.Text
	if t.State.IsOver() {
		do, verb, live = "/rerun", "Run it again", ""
	}
	return &page{
		Title: text + ": " + string(t.State), Heading: text + " of type " + view.Type + ": " + strings.ToLower(strings.ReplaceAll(string(t.State), "_", " ")), Body: view,
		Acts: actingOn(v.visit, verb, "/tasks/"+view.Text+do), Live: live,
	}, nil
}

// payload is the input of a task, as its reader may see it.
func (v ofWork) payload(spec task.Spec) string {
	form := runtime.SpecView(spec)
	if v.caller.Role != "operator" {
		form = runtime.ForViewers(form)
	}
	if len(form.Payload) == 0 {
		return ""
	}
	return whole(v.masked(indented(form.Payload)))
}

// indented is JSON for people: an encoder for HTML would write \u003e for a >.
func indented(object json.RawMessage) string {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(object))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return string(object)
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if encoder.Encode(value) != nil {
		return string(object)
	}
	return strings.TrimSuffix(text.String(), "\n")
}

func (v ofWork) facts(s *task.Spec) []paramView {
	var list []paramView
	add := func(name, value string) {
		if value != "" {
			list = append(list, paramView{Name: name, Value: clip(v.masked(value), lineText)})
		}
	}
	add("key", s.Key)
	add("after", strings.Join(s.After, ", "))
	add("idempotency key", s.IdempotencyKey)
	if s.Priority != 0 {
		add("priority", strconv.Itoa(s.Priority))
	}
	if s.On != nil {
		add("on", s.On.String())
	}
	if s.Timeout > 0 {
		add("timeout", s.Timeout.String())
	}
	return list
}

func (v ofWork) taskAttempt(a *taskports.Attempt) taskAttempt {
	l := taskAttempt{Number: a.Number, State: stateView(string(a.State)), Worker: clip(a.Worker, shortText), Reason: whole(v.masked(a.Reason)), Started: v.moment(a.StartedAt)}
	end := v.Now()
	if a.EndedAt != nil {
		l.Ended, end = v.moment(*a.EndedAt), *a.EndedAt
	}
	l.Took = humanize.Duration(max(0, end.Sub(a.StartedAt).Round(time.Millisecond)))
	if a.Outcome != nil {
		l.Outcome = string(a.Outcome.Kind)
		if a.Outcome.TimedOut {
			l.Outcome += ", timed out"
		}
		l.Reason = cmp.Or(l.Reason, whole(v.masked(a.Outcome.Reason)))
	}
	if a.Outcome != nil && slices.ContainsFunc(a.Outcome.Artifacts, func(of task.Artifact) bool { return of.Kind == task.KindStdout || of.Kind == task.KindStderr }) {
		l.Log = v.taskLink(a.TaskID).Href + "/log?attempt=" + strconv.Itoa(a.Number)
	}
	if a.JobExecution != 0 {
		l.Execution = &link{"execution " + id(a.JobExecution), v.executionLink(a.JobExecution).Href}
	}
	return l
}
