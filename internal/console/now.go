package console

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type nowView struct {
	Needs   []needLine
	Order   string
	Older   string
	Newest  string
	Running []progressLine
	// Others run without a step just now.
	Others      executionTable
	MoreRunning bool
	Ended       string
	Counts      []countLink
	Last        executionTable
	Day         dayView
}

type needLine struct {
	Status    statusView
	Text      string
	Link      string
	Execution string
	Job       *link
	Params    string
	Since     moment
	Ago       string
	Do        *command
	// Effect leads to the effect of a restart.
	Effect    string
	Scheduled bool
}

// countLink is a count of executions in a status.
type countLink struct {
	statusView
	Count, Href string
}

func (v ofList) now() (*page, error) {
	ctx := v.r.Context()
	o, err := v.Service.Overview(ctx, operator.OverviewRequest{Before: core.JobExecutionID(v.key("before")), Limit: pageSize, Catalog: v.Jobs})
	if err != nil {
		return nil, err
	}
	view := nowView{Order: wording.NeedOrder}
	for i := range o.Needs {
		view.Needs = append(view.Needs, v.needLine(&o.Needs[i], o.At))
	}
	if o.Next != 0 {
		view.Older = v.with("before", id(o.Next))
	}
	if v.text("before") != "" {
		view.Newest = v.with("before", "")
	}
	if view.Running, err = v.progress(operator.ProgressRequest{}); err != nil {
		return nil, err
	}
	var others []operator.Execution
	for i := range o.Running {
		e := &o.Running[i]
		if !slices.ContainsFunc(view.Running, func(l progressLine) bool { return l.Execution.Text == id(e.ID) }) {
			others = append(others, *e)
		}
	}
	view.Others = v.executionTable(others)
	view.MoreRunning = o.MoreRunning
	if o.Ended != nil {
		view.Ended, view.Counts = wording.Ended(o.Ended), v.countLinks(o.Ended)
	}
	if view.Day, err = v.day(); err != nil {
		return nil, err
	}
	const most = 10
	over := slices.DeleteFunc(core.Statuses(), func(s core.Status) bool { return !s.IsOver() })
	last, err := v.Service.List(ctx, operator.ListRequest{Statuses: over, Limit: most, FailedSteps: true})
	if err != nil {
		return nil, err
	}
	view.Last = v.executionTable(last.Executions)
	return &page{Title: nowTitle(&view), Heading: nowHeading(&view), Body: view, Live: "execution,progress,task,schedule,worker"}, nil
}

func (v ofList) countLinks(e *operator.EndedInWindow) []countLink {
	var list []countLink
	for _, s := range core.Statuses() {
		if n := e.Statuses[s]; n > 0 {
			list = append(list, countLink{status(s), humanize.Count(n), v.Base + "/executions?statuses=" + string(s) + "&ended_since=" + query(e.Since.Format(time.RFC3339))})
		}
	}
	return list
}

func (v ofList) needLine(n *operator.Need, now time.Time) needLine {
	l := needLine{Text: v.masked(wording.Need(n, now)), Since: v.moment(n.Since), Status: needStatus(n)}
	if !n.Since.IsZero() {
		l.Ago = humanize.Duration(max(0, now.Sub(n.Since))) + " ago"
	}
	switch {
	case n.Execution != 0 && n.Reason == operator.NeedSkips:
		l.Link, l.Execution = v.executionLink(n.Execution).Href+"/skips?left=true", id(n.Execution)
	case n.Execution != 0:
		l.Link, l.Execution = v.executionLink(n.Execution).Href, id(n.Execution)
	case n.Job != "":
		l.Link = v.jobLink(n.Job)
	case n.Reason == operator.NeedInVain || n.Reason == operator.NeedNoLeader:
		l.Link = v.Base + "/workers"
	case n.Reason == operator.NeedEvents:
		l.Link = v.Base + "/events?topic=" + query(n.Name)
	}
	if n.Job != "" {
		l.Job = &link{clip(n.Job, shortText), v.jobLink(n.Job)}
	}
	if n.Params != nil {
		l.Params = clip(v.masked(wording.Given(n.Params.Parameters)), lineText)
	}
	if len(n.Actions) > 0 {
		do := hintOf(v.visit, n.Actions[0])
		l.Do, l.Effect = &do, effectOf(v.visit, n.Actions)
	}
	l.Scheduled = n.Scheduled
	return l
}

// effectOf leads to the explanation of a restart, if that is the first action.
func effectOf(v *visit, actions []operator.Action) string {
	if len(actions) == 0 || actions[0].Kind != refusal.ActRestart {
		return ""
	}
	return v.executionLink(actions[0].Execution).Href + "#why"
}

// needStatus is the status of an execution, or a warning.
func needStatus(n *operator.Need) statusView {
	if n.Status != "" && n.Reason != operator.NeedSkips {
		return status(n.Status)
	}
	return statusView{strings.ReplaceAll(string(n.Reason), "_", " "), "warn"}
}

func nowTitle(view *nowView) string {
	return "Now: " + needs(view) + ", " + strconv.Itoa(len(view.Running)+len(view.Others.Rows)) + " running"
}

func needs(view *nowView) string {
	n := humanize.Count(len(view.Needs))
	if view.Older != "" {
		n += " or more"
	}
	if n == "1" {
		return "1 needs you"
	}
	return n + " need you"
}

func nowHeading(view *nowView) string {
	runs := len(view.Running) + len(view.Others.Rows)
	switch {
	case view.Newest != "":
		return "More that needs you"
	case len(view.Needs) > 0:
		return needs(view)
	case runs > 0:
		return "Nothing needs you; " + humanize.Count(runs) + " running"
	}
	return "Nothing needs you, and nothing runs"
}
