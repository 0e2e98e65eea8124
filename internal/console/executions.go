package console

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

type executionsView struct {
	List executionTable
	// Filters are the chosen ones: each can be removed.
	Filters []filterWord
	// Statuses and Jobs are suggestions for the form.
	Statuses []choice
	Jobs     []string
	Form     map[string]string
	Marks    []choice
	// Older and Newer are the pages around this one, Newest the first one.
	Older, Newer, Newest string
	// SearchedTo is how far a search came.
	SearchedTo string
	Notes      []string
}

// filterWord is a filter as a word with the address without it.
type filterWord struct{ Text, Without string }

func (v ofList) executions() (*page, error) {
	req := v.listRequest()
	found, err := v.list(v.r.Context(), &req)
	if err != nil {
		return nil, err
	}
	if req.After != 0 { // it finds the oldest first
		slices.Reverse(found.Executions)
	}
	view := executionsView{List: v.executionTable(found.Executions), Filters: v.filterWords(), Jobs: v.Jobs.Names(), Form: map[string]string{}}
	for _, name := range filterNames() {
		view.Form[name] = v.text(name)
	}
	for _, s := range core.Statuses() {
		view.Statuses = append(view.Statuses, choice{string(s), v.with("statuses", string(s), "running", "", "before", ""), slices.Contains(req.Statuses, s)})
	}
	if len(view.List.Rows) > 0 && mayAct(v.visit) {
		view.List.Chosen = v.Base + "/bulk"
	}
	view.keys(v, req, found)
	view.Notes = found.Notes
	if found.SearchedTo != nil {
		view.SearchedTo = wording.SearchedTo(*found.SearchedTo)
	}
	for _, mark := range operator.Marks() {
		view.Marks = append(view.Marks, choice{mark, "", mark == v.text("has")})
	}
	heading := "All executions, newest first"
	if len(view.Filters) > 0 {
		heading = "Executions with these filters, newest first"
	}
	p := &page{Title: "Executions", Heading: heading, Body: view}
	if many := bulkLink(v.visit); many != "" && len(found.Executions) > 0 {
		p.Acts = actingOn(v.visit, "Act on all of them", many)
	}
	return p, nil
}

// keys are the addresses of the pages around this one.
func (view *executionsView) keys(v ofList, req operator.ListRequest, found operator.ExecutionPage) {
	if req.After != 0 {
		if found.Next != 0 {
			view.Newer = v.with("after", id(found.Next), "before", "")
		}
		if n := len(found.Executions); n > 0 {
			view.Older = v.with("before", id(found.Executions[n-1].ID), "after", "")
		}
	} else {
		if found.Next != 0 {
			view.Older = v.with("before", id(found.Next), "after", "")
		}
		if req.Before != 0 && len(found.Executions) > 0 {
			view.Newer = v.with("after", id(found.Executions[0].ID), "before", "")
		}
	}
	if req.Before != 0 || req.After != 0 {
		view.Newest = v.with("before", "", "after", "")
	}
}

func filterNames() []string {
	return []string{
		"job", "instance", "statuses", "running", "exit", "since", "until", "param", "text", "ended_since", "ended_until", "longer_than", "has", "actor", "worker",
	}
}

const pageSize = 50

func (v ofList) listRequest() operator.ListRequest {
	req := operator.ListRequest{
		Job: v.text("job"), Instance: core.JobInstanceID(v.key("instance")), Exit: v.text("exit"), Since: v.time("since"), Until: v.time("until"),
		Before: core.JobExecutionID(v.key("before")), Limit: pageSize,
		FailedSteps: true,
	}
	req.After = core.JobExecutionID(v.key("after"))
	req.Search = operator.Search{
		Text: v.text("text"), EndedSince: v.time("ended_since"), EndedUntil: v.time("ended_until"), LongerThan: v.text("longer_than"), Worker: v.text("worker"),
	}
	for _, param := range v.r.URL.Query()["param"] {
		if param != "" {
			req.Params = append(req.Params, param)
		}
	}
	if text := v.text("has"); text != "" {
		req.Has = strings.Split(text, ",")
	}
	if text := v.text("actor"); text != "" && v.caller.Role != settings.Operator {
		v.mistake("actor", text, errForOperators.Error())
	} else {
		req.Actor = text
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

// time is a time in the query, as the command takes it; one without an offset is in the page's zone.
func (v ofList) time(name string) time.Time {
	text := v.text(name)
	if text == "" {
		return time.Time{}
	}
	t, is := humanize.ParseMoment(text, v.zone, v.Now())
	if !is {
		v.mistake(name, text, "not a time", "2026-11-22", "2026-11-22T15:04", "2026-11-22T15:04:05Z", "36h", "90d")
	}
	return t
}

// list leaves out a filter that the service refuses, and shows the rest.
func (v ofList) list(ctx context.Context, req *operator.ListRequest) (operator.ExecutionPage, error) {
	found, err := v.Service.List(ctx, *req)
	for range filterNames() {
		wrong, is := errors.AsType[*operator.RequestError](err)
		if !is {
			return found, err
		}
		v.mistake(wrong.Field, wrong.Value, wrong.Reason, wrong.Allowed...)
		leaveOut(req, wrong.Field)
		found, err = v.Service.List(ctx, *req)
	}
	return found, err
}

func leaveOut(req *operator.ListRequest, field string) {
	switch field {
	case "running":
		req.Running = false
	case "statuses":
		req.Statuses = nil
	case "params", "param":
		req.Params = nil
	case "has":
		req.Has = nil
	case "longer_than":
		req.LongerThan = ""
	case "text":
		req.Text = ""
	case "actor":
		req.Actor = ""
	case "worker":
		req.Worker = ""
	default:
		*req = operator.ListRequest{Job: req.Job, Instance: req.Instance, Limit: req.Limit, FailedSteps: req.FailedSteps}
	}
}

func (v ofList) filterWords() []filterWord {
	var list []filterWord
	for _, name := range filterNames() {
		if name == "param" {
			list = append(list, v.paramWords()...)
			continue
		}
		text := v.text(name)
		if text == "" {
			continue
		}
		word := strings.ReplaceAll(name, "_", " ") + ": " + clip(text, shortText)
		if name == "running" {
			word = "not over"
		}
		list = append(list, filterWord{word, v.with(name, "", "before", "", "after", "")})
	}
	return list
}

// paramWords are the parameters of the search; each can be removed.
func (v ofList) paramWords() []filterWord {
	var list []filterWord
	all := v.r.URL.Query()["param"]
	for i, text := range all {
		if text == "" {
			continue
		}
		q := v.r.URL.Query()
		q["param"] = slices.Delete(slices.Clone(all), i, i+1)
		q.Del("before")
		q.Del("after")
		u := url.URL{Path: v.Base + v.r.URL.Path, RawQuery: q.Encode()}
		list = append(list, filterWord{"parameter " + clip(text, shortText), u.String()})
	}
	return list
}

// bulkLink is the address of the form for the executions of these filters; empty without any.
func bulkLink(v *visit) string {
	q := url.Values{}
	for _, name := range filterNames() {
		if text := v.r.URL.Query()[name]; len(text) > 0 && text[0] != "" {
			q[name] = text
		}
	}
	if len(q) == 0 {
		return ""
	}
	return withQuery("/bulk", q)
}
