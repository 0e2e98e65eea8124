package console

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// executionsView is the table of executions.
type executionsView struct {
	List []executionLine
	// Filters are the chosen ones: each can be removed.
	Filters []filterWord
	// Statuses and Jobs are suggestions for the form.
	Statuses []choice
	Jobs     []string
	Form     map[string]string
	// Older is the next page, Newest the first one.
	Older, Newest string
}

// filterWord is a filter as a word with the address without it.
type filterWord struct{ Text, Without string }

// executionLine is an execution in a table.
type executionLine struct {
	link
	Job     link
	Status  statusView
	Exit    string
	Attempt int
	Params  string
	Created moment
	Started moment
	Ended   moment
	Took    string
	Error   string
	Owner   string
	Waits   string
}

func (v ofList) executions() (*page, error) {
	req := v.listRequest()
	found, err := v.list(v.r.Context(), &req)
	if err != nil {
		return nil, err
	}
	view := executionsView{List: v.executionLines(found.Executions), Filters: v.filterWords(), Jobs: v.Jobs.Names(), Form: map[string]string{}}
	for _, name := range filterNames() {
		view.Form[name] = v.text(name)
	}
	for _, s := range core.Statuses() {
		view.Statuses = append(view.Statuses, choice{string(s), v.with("statuses", string(s), "running", "", "before", ""), slices.Contains(req.Statuses, s)})
	}
	if found.Next != 0 {
		view.Older = v.with("before", id(found.Next))
	}
	if req.Before != 0 {
		view.Newest = v.with("before", "")
	}
	heading := "All executions, newest first"
	if len(view.Filters) > 0 {
		heading = "Executions with these filters, newest first"
	}
	return &page{Title: "Executions", Heading: heading, Body: view}, nil
}

func filterNames() []string {
	return []string{"job", "instance", "statuses", "running", "exit", "since", "until"}
}

const pageSize = 50

func (v ofList) listRequest() operator.ListRequest {
	req := operator.ListRequest{
		Job: v.text("job"), Instance: core.JobInstanceID(v.key("instance")), Exit: v.text("exit"), Since: v.time("since"), Until: v.time("until"),
		Before: core.JobExecutionID(v.key("before")), Limit: pageSize,
	}
	for text := range strings.SplitSeq(v.text("statuses"), ",") {
		s := core.Status(strings.ToUpper(strings.TrimSpace(text)))
		switch {
		case s == "":
		case slices.Contains(core.Statuses(), s):
			req.Statuses = append(req.Statuses, s)
		default:
			v.mistake("statuses", text, "no such status", operator.StatusNames()...)
		}
	}
	switch text := v.text("running"); text {
	case "", "false":
	case "true":
		req.Running = true
	default:
		v.mistake("running", text, "expected true or false")
	}
	return req
}

// time is a time in the query: RFC 3339, or a date or a time in the page's zone.
func (v ofList) time(name string) time.Time {
	text := v.text(name)
	if text == "" {
		return time.Time{}
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, v.zone); err == nil {
			return t
		}
	}
	v.mistake(name, text, "not a time", "2026-11-22", "2026-11-22T15:04", "2026-11-22T15:04:05Z")
	return time.Time{}
}

// list leaves out a filter that the service refuses, and shows the rest.
func (v ofList) list(ctx context.Context, req *operator.ListRequest) (operator.ExecutionPage, error) {
	found, err := v.Service.List(ctx, *req)
	wrong, is := errors.AsType[*operator.RequestError](err)
	if !is {
		return found, err
	}
	v.mistake(wrong.Field, wrong.Value, wrong.Reason, wrong.Allowed...)
	*req = operator.ListRequest{Job: req.Job, Instance: req.Instance, Running: req.Running && wrong.Field != "running", Before: req.Before, Limit: req.Limit}
	return v.Service.List(ctx, *req)
}

func (v ofList) filterWords() []filterWord {
	var list []filterWord
	for _, name := range filterNames() {
		text := v.text(name)
		if text == "" {
			continue
		}
		word := name + ": " + clip(text, shortText)
		if name == "running" {
			word = "not over"
		}
		list = append(list, filterWord{word, v.with(name, "", "before", "")})
	}
	return list
}

func (v *visit) executionLines(found []operator.Execution) []executionLine {
	list := make([]executionLine, len(found))
	for i := range found {
		list[i] = v.executionLine(&found[i])
	}
	return list
}

func (v *visit) executionLine(e *operator.Execution) executionLine {
	l := executionLine{
		link: v.executionLink(e.ID), Job: link{clip(e.JobName, shortText), v.jobLink(e.JobName)}, Status: status(e.Status), Exit: exitOf(e.Status, e.ExitCode),
		Attempt: e.Attempt, Params: clip(v.masked(wording.Parameters(e.Params.Identifying().All())), lineText), Created: v.moment(e.CreatedAt),
		Started: v.moment(e.StartedAt), Ended: v.moment(e.EndedAt), Error: clip(v.masked(e.Error), lineText),
	}
	if !e.StartedAt.IsZero() {
		l.Took = humanize.Seconds(e.Duration)
	}
	if e.Owner != nil {
		l.Owner = "process " + strconv.Itoa(e.Owner.PID) + " on " + clip(e.Owner.Host, shortText)
		if e.Owner.Dead || e.Owner.Lost {
			l.Waits = wording.Lease(e.Owner, v.Now())
		}
	}
	if e.Waiting != nil {
		l.Waits, l.Error = v.Commands.Parked(e.Waiting), ""
	}
	return l
}
