package console

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// plainAct is an act on one thing that needs a button and at most a reason.
type plainAct struct {
	// path is of the page, and with /v1 before it of the operation, unless that has another one.
	path, of  string
	section   string
	operation string
	verb      string
	// named returns the thing, or an error if it is not there.
	named    func(ofWorkAct) (string, error)
	noReason bool
}

func plainActs() []plainAct {
	return []plainAct{
		{path: "/tasks/{task}/cancel", section: "tasks", operation: "cancel-task", verb: "Cancel", named: ofWorkAct.namedTask},
		{path: "/tasks/{task}/rerun", section: "tasks", operation: "rerun-task", verb: "Run again", named: ofWorkAct.namedTask},
		{path: "/groups/{group}/cancel", section: "groups", operation: "cancel-group", verb: "Cancel", named: ofWorkAct.namedGroup},
		{path: "/events/{event}/offer", section: "events", operation: "offer-event", verb: "Offer", named: func(f ofWorkAct) (string, error) { return "event " + f.r.PathValue("event"), nil }},
		{path: "/schedules/{job}/pause", of: "/definitions/{job}/disable", section: "schedules", operation: "disable-definition", verb: "Pause", named: ofWorkAct.namedSchedule, noReason: true},
		{path: "/schedules/{job}/resume", of: "/definitions/{job}/enable", section: "schedules", operation: "enable-definition", verb: "Resume", named: ofWorkAct.namedSchedule, noReason: true},
		{path: "/jobs/{job}/register", section: "jobs", operation: "register-job", verb: "Register", noReason: true},
		{path: "/recover", section: "executions", operation: "recover", verb: "End", named: func(ofWorkAct) (string, error) { return "executions without a process", nil }, noReason: true},
	}
}

// plainOf is the act of this page.
func (f ofWorkAct) plainOf() plainAct {
	all := plainActs()
	return all[slices.IndexFunc(all, func(p plainAct) bool { return p.path == f.act.pattern })]
}

func (f ofWorkAct) sendPlain() (operation, error) {
	return operation{"/v1" + f.filled(f.plainOf().operates()), f.guarded(map[string]any{})}, nil
}

func (f ofWorkAct) sendSetting() (operation, error) {
	return operation{"/v1" + f.filled("/settings/{name}"), map[string]any{"value": f.values.Get("value")}}, nil
}

func (p plainAct) operates() string {
	if p.of != "" {
		return p.of
	}
	return p.path
}

// filled is a path with the values of this one.
func (f ofWorkAct) filled(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if name, is := strings.CutPrefix(part, "{"); is {
			parts[i] = url.PathEscape(f.r.PathValue(strings.TrimSuffix(name, "}")))
		}
	}
	return strings.Join(parts, "/")
}

// back is the page that an act is about: events have none of their own.
func (f ofWorkAct) back() string {
	at := f.filled(f.act.pattern)
	at = at[:strings.LastIndexByte(at, '/')]
	if strings.HasPrefix(at, "/events/") {
		return "/events"
	}
	return cmp.Or(at, "/executions")
}

func (f ofWorkAct) plain() (*page, error) {
	p := f.plainOf()
	name, err := p.named(f)
	if err != nil {
		return nil, err
	}
	return f.plainPage(p, name), nil
}

func (f ofWorkAct) plainPage(p plainAct, name string, sentences ...string) *page {
	view := actView{Form: f.view(p.verb + " " + name), Sentences: append(sentences, wording.WorkAct(p.operation)...)}
	view.Form.NoReason, view.Form.Cancel = p.noReason, f.Base+f.back()
	return &page{Title: p.verb + " " + name, Heading: p.verb + " " + name, Body: view}
}

func (f ofWorkAct) namedTask() (string, error) {
	t, err := f.Tasks.Task(f.r.Context(), task.ID(f.number("task")))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("task %d of type %s", t.ID, clip(t.Spec.Type, shortText)), nil
}

func (f ofWorkAct) namedGroup() (string, error) {
	g, err := f.Tasks.Group(f.r.Context(), task.GroupID(f.number("group")))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("group %d", g.ID), nil
}

func (f ofWorkAct) namedSchedule() (string, error) {
	job := f.r.PathValue("job")
	registered, err := f.Service.Definitions(f.r.Context())
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(registered, func(d operator.DefinitionView) bool { return d.Job == job }) {
		return "", fmt.Errorf("registered job %s: %w", clip(job, shortText), core.ErrNotFound)
	}
	return "the schedule of job " + clip(job, shortText), nil
}

// setting is the form of a setting.
func (f ofWorkAct) setting() (*page, error) {
	name := f.r.PathValue("name")
	all, err := f.Tasks.Settings(f.r.Context())
	if err != nil {
		return nil, err
	}
	for i := range all {
		s := &all[i]
		if s.Name != name {
			continue
		}
		value := s.Value
		if f.values.Has("value") {
			value = f.values.Get("value")
		}
		view := actView{Form: f.view("Set " + s.Name), Sentences: append([]string{s.Effect}, wording.WorkAct("change-setting")...)}
		view.Form.NoReason, view.Form.Cancel = true, f.Base+"/settings"
		in := inputView{parameterLine: parameterLine{Name: s.Name, Type: s.Unit}, Field: "value", Value: value, Input: "text", Wrong: f.wrong("value")}
		in.First = in.Wrong != ""
		view.Fields = []inputView{in}
		return &page{Title: "Setting " + s.Name, Heading: "Setting " + s.Name, Body: view}, nil
	}
	return nil, fmt.Errorf("setting %s: %w", clip(name, shortText), core.ErrNotFound)
}
