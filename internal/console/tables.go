package console

import (
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

type groupsView struct {
	Groups        []groupLine
	Older, Newest string
}

type groupLine struct {
	link
	State    statusView
	Title    string
	Total    string
	Counts   []partCount
	Decider  string
	Created  moment
	Updated  moment
	Deadline moment
	Budget   string
	Tasks    string
	Canceled moment
}

func (v ofWork) groups() (*page, error) {
	before := v.key("before")
	found, err := v.Tasks.Groups(v.r.Context(), task.GroupID(before), pageSize+1)
	if err != nil {
		return nil, err
	}
	var view groupsView
	if len(found) > pageSize {
		found = found[:pageSize]
		view.Older = v.with("before", strconv.FormatInt(int64(found[pageSize-1].ID), 10))
	}
	if before != 0 {
		view.Newest = v.with("before", "")
	}
	for i := range found {
		view.Groups = append(view.Groups, v.groupLine(&found[i]))
	}
	return &page{Title: "Groups", Heading: "Groups of tasks, newest first", Body: view}, nil
}

// groupView is a group with the newest tasks that failed.
type groupView struct {
	groupLine
	Failed []taskLine
}

func (v ofWork) groupLine(g *task.Group) groupLine {
	of := v.groupLink(g.ID)
	l := groupLine{
		link: of, State: stateView(string(g.State)), Title: clip(v.masked(g.Title), lineText), Total: humanize.Count(g.Total), Decider: clip(g.Decider, shortText),
		Created: v.moment(g.CreatedAt), Updated: v.moment(g.UpdatedAt), Tasks: v.Base + "/tasks?group=" + of.Text,
	}
	x := 0
	for _, s := range slices.Sorted(maps.Keys(g.ByState)) {
		const whole = 1000
		if n := g.ByState[s]; n > 0 {
			width := max(1, n*whole/max(1, g.Total))
			l.Counts = append(l.Counts, partCount{stateView(string(s)), humanize.Count(n), humanize.Count(n) + " " + string(s), x, width})
			x += width
		}
	}
	if g.DeadlineAt != nil {
		l.Deadline = v.moment(*g.DeadlineAt)
	}
	if g.CancelRequestedAt != nil {
		l.Canceled = v.moment(*g.CancelRequestedAt)
	}
	if n := g.Budget.MaxAttempts; n > 0 {
		l.Budget = strconv.Itoa(n) + " attempts of a task"
	}
	if g.Parallel > 0 {
		l.Budget += ", " + humanize.Plural(g.Parallel, "task") + " at once"
	}
	return l
}

func (v ofWork) group() (*page, error) {
	g, err := v.Tasks.Group(v.r.Context(), task.GroupID(v.number("group")))
	if err != nil {
		return nil, err
	}
	const most = 20
	failed, err := v.Tasks.Tasks(v.r.Context(), task.Filter{Group: g.ID, State: task.Failed, Limit: most})
	if err != nil {
		return nil, err
	}
	view := groupView{groupLine: v.groupLine(g)}
	for i := range failed {
		view.Failed = append(view.Failed, v.taskLine(&failed[i], ""))
	}
	p := &page{Title: "Group " + view.Text + ": " + string(g.State), Heading: "Group " + view.Text + " is " + string(g.State), Body: view}
	if !g.IsOver() {
		p.Live, p.Acts = "task", actingOn(v.visit, "Cancel it", "/groups/"+view.Text+"/cancel")
	}
	return p, nil
}

type eventsView struct {
	Topic  string
	Events []eventLine
	More   bool
}

type eventLine struct {
	ID, Topic, Subject, Key, Payload, Offers, Error string
	Received, Dead                                  moment
	Acts                                            []link
}

func (v ofList) events() (*page, error) {
	topic := v.text("topic")
	list, err := v.Tasks.DeadEvents(v.r.Context(), topic, pageSize+1)
	if err != nil {
		return nil, err
	}
	view := eventsView{Topic: topic, More: len(list) > pageSize}
	for _, e := range list[:min(len(list), pageSize)] {
		view.Events = append(view.Events, eventLine{
			strconv.FormatInt(e.ID, 10), clip(e.Topic, shortText), strconv.FormatInt(e.Subject, 10), clip(v.masked(e.DedupeKey), shortText),
			clip(v.masked(string(e.Payload)), lineText), strconv.Itoa(e.Offers), clip(v.masked(e.LastError), lineText), v.moment(e.ReceivedAt), v.moment(e.DeadAt), actingOn(v.visit, "offer it again", "/events/"+strconv.FormatInt(e.ID, 10)+"/offer"),
		})
	}
	heading := "No event is dead"
	if n := len(view.Events); n > 0 {
		heading = humanize.Plural(n, "dead event") + ": their effect is missing"
	}
	return &page{Title: "Events", Heading: heading, Body: view}, nil
}

type auditView struct {
	Acts          []actLine
	Filters       []filterWord
	Verbs         []choice
	Form          map[string]string
	Older, Newest string
}

type actLine struct {
	At         moment
	Act, Actor string
	Job        *link
	Execution  *link
	Task       *link
	Detail     string
}

func (v ofList) audit() (*page, error) {
	if v.caller.Role != settings.Operator {
		return nil, errForOperators
	}
	req := operator.ActsRequest{Act: v.text("act"), Actor: v.text("actor"), Job: v.text("job"), Since: v.time("since"), Before: v.key("before"), Limit: pageSize}
	if req.Act != "" && !slices.Contains(ports.Verbs(), req.Act) {
		v.mistake("act", req.Act, "no such act", ports.Verbs()...)
		req.Act = ""
	}
	found, err := v.Service.Acts(v.r.Context(), req)
	if wrong, is := errors.AsType[*operator.RequestError](err); is && wrong.Field == "before" {
		v.mistake("before", v.text("before"), wrong.Reason)
		req.Before = 0
		found, err = v.Service.Acts(v.r.Context(), req)
	}
	if err != nil {
		return nil, err
	}
	view := auditView{Form: map[string]string{}}
	for _, name := range []string{"act", "actor", "job", "since"} {
		if view.Form[name] = v.text(name); view.Form[name] != "" {
			view.Filters = append(view.Filters, filterWord{name + ": " + clip(view.Form[name], shortText), v.with(name, "", "before", "")})
		}
	}
	for _, verb := range ports.Verbs() {
		view.Verbs = append(view.Verbs, choice{verb, v.with("act", verb, "before", ""), verb == req.Act})
	}
	for i := range found.Acts {
		view.Acts = append(view.Acts, v.actLine(&found.Acts[i]))
	}
	if found.Next != 0 {
		view.Older = v.with("before", strconv.FormatInt(found.Next, 10))
	}
	if req.Before != 0 {
		view.Newest = v.with("before", "")
	}
	return &page{Title: "Audit", Heading: "Who did what, newest first", Body: view}, nil
}

func (v ofList) actLine(a *operator.ActView) actLine {
	l := actLine{At: v.moment(a.At), Act: a.Act, Actor: clip(wording.Actor(a.Actor), shortText), Detail: clip(v.masked(wording.ActDetail(a.Detail)), lineText)}
	if a.Job != "" {
		l.Job = &link{clip(a.Job, shortText), v.jobLink(a.Job)}
	}
	if a.Execution != 0 {
		of := v.executionLink(a.Execution)
		l.Execution = &of
	}
	if a.Task != 0 {
		of := v.taskLink(task.ID(a.Task))
		l.Task = &of
	}
	return l
}

type settingsView struct{ Settings []settingLine }

type settingLine struct {
	Name, Value, Unit, Effect, By string
	Default                       bool
	Updated                       moment
	Acts                          []link
}

func (v ofList) settings() (*page, error) {
	list, err := v.Tasks.Settings(v.r.Context())
	if err != nil {
		return nil, err
	}
	var view settingsView
	for _, s := range list {
		l := settingLine{Name: s.Name, Acts: actingOn(v.visit, "change", "/settings/"+url.PathEscape(s.Name)), Value: clip(s.Value, lineText), Unit: s.Unit, Effect: s.Effect, By: clip(wording.Actor(s.UpdatedBy), shortText), Default: s.Default}
		if s.UpdatedAt != nil {
			l.Updated = v.moment(*s.UpdatedAt)
		}
		view.Settings = append(view.Settings, l)
	}
	return &page{Title: "Settings", Heading: "Settings that all processes share", Body: view}, nil
}
