package console

import (
	"net/url"
	"strconv"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// The fields of forms that links fill in.
const (
	fromField       = "from"
	fromStart       = "start"
	elementPrefix   = "at:"
	acceptField     = "accept_changes"
	ifCompleteField = "if_complete"
	stepField       = "step"
	// paramPrefix begins the field of a parameter, as its place in the body of the API.
	paramPrefix = "params."
	againField  = "again"
	nextField   = "next"
)

// hintOf is an action of the service as a command, and as a page with the form that does it.
func hintOf(v *visit, a operator.Action) command {
	h := v.Commands.Hint(a)
	return command{0, h.Label, v.masked(h.Text), "", targetOf(v, a)}
}

func mayAct(v *visit) bool { return v.Operations != nil && v.caller.Role == settings.Operator }

// actingOn are links to forms for those who may act: texts, each with its path.
func actingOn(v *visit, pairs ...string) []link {
	if !mayAct(v) {
		return nil
	}
	var list []link
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] != "" {
			list = append(list, link{pairs[i], v.Base + pairs[i+1]})
		}
	}
	return list
}

// targetOf is the page or the form for an action; empty if there is none, or if the caller may only read.
func targetOf(v *visit, a operator.Action) target {
	if to := pageOf(v, a); to != "" {
		return target{Href: to}
	}
	if !mayAct(v) {
		return target{}
	}
	to := formOf(v, a)
	return target{to, to != ""}
}

func pageOf(v *visit, a operator.Action) string {
	of := v.executionLink(a.Execution).Href
	switch kind := a.Kind; {
	case kind == refusal.ActShow || kind == refusal.ActExplain:
		return of
	case kind == refusal.ActCure:
		return of + "/results"
	case kind == refusal.ActSkips:
		return of + "/skips?left=true"
	case kind == refusal.ActWorkers || kind == refusal.ActWork:
		return v.Base + "/workers"
	}
	return ""
}

func formOf(v *visit, a operator.Action) string {
	of, q := v.executionLink(a.Execution).Href, url.Values{}
	switch kind := a.Kind; {
	case kind == refusal.ActRestart:
		if a.NeedsFile {
			return ""
		}
		if a.FromStart {
			q.Set(fromField, fromStart)
		} else if a.From != "" {
			q.Set(fromField, elementPrefix+a.From)
		}
		setYes(q, acceptField, a.AcceptChanges)
		setYes(q, ifCompleteField, a.IfComplete)
		return withQuery(of+"/restart", q)
	case kind == refusal.ActRedrive || kind == refusal.ActExport:
		if a.Step != "" {
			q.Set(stepField, a.Step)
		}
		return withQuery(of+"/redrive", q)
	case kind == refusal.ActRecover:
		return v.Base + "/recover"
	case kind == refusal.ActStop:
		return of + "/stop"
	case kind == refusal.ActAbandon:
		return of + "/abandon"
	case kind == refusal.ActRun || kind == refusal.ActAgain || kind == refusal.ActNext:
		if _, err := v.Jobs.Job(a.Job); err != nil || a.Job == "" {
			return ""
		}
		for name, value := range a.Params {
			q.Set(paramPrefix+name, value)
		}
		setYes(q, againField, a.Kind == refusal.ActAgain)
		setYes(q, nextField, a.Kind == refusal.ActNext)
		return withQuery(v.jobLink(a.Job)+"/run", q)
	}
	return ""
}

const yesValue = "true"

// number is a number in a body; another text is refused there.
func number(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	return text
}

func setYes(q url.Values, field string, on bool) {
	if on {
		q.Set(field, yesValue)
	}
}

func withQuery(path string, q url.Values) string {
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}
