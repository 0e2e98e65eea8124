package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Search selects executions by more than their rows' indexes. A page of a
// search ends after about a tenth of a second, even if nothing was found.
type Search struct {
	// Params are NAME:VALUE; all must hold, of identifying parameters and of
	// others.
	Params []string `json:"params,omitempty"`
	// Text is in an error of the execution or of a step, or in an exit code
	// other than the plain ones. Its case does not matter.
	Text string `json:"text,omitempty"`
	// [EndedSince, EndedUntil) bounds the end.
	EndedSince time.Time `json:"ended_since,omitzero"`
	EndedUntil time.Time `json:"ended_until,omitzero"`
	// LongerThan is a duration, such as 90s or 1h30m: up to now while it runs.
	LongerThan string `json:"longer_than,omitempty"`
	// Has are of Marks; all must hold.
	Has []string `json:"has,omitempty"`
	// Actor has run, restarted, redriven, stopped, abandoned or recovered the
	// execution.
	Actor string `json:"actor,omitempty"`
	// Worker had a step or part: the name of a worker, HOST or HOST:PID.
	Worker string `json:"worker,omitempty"`
}

type (
	// SearchedTo is how far a search came.
	SearchedTo struct {
		Execution core.JobExecutionID `json:"execution"`
		// Time is when it was created.
		Time time.Time `json:"time,omitzero"`
	}
	// ExecutionCount is a number of executions. With More there are more, or
	// may be: only 10,000 are counted, and only for a tenth of a second.
	ExecutionCount struct {
		Count int  `json:"count"`
		More  bool `json:"more,omitempty"`
	}
)

// The marks of executions.
const (
	MarkSkipsLeft     = "skips_left"
	MarkRedrives      = "redrives"
	MarkStopRequested = "stop_requested"
	MarkLost          = "lost"
)

// Marks lists them.
func Marks() []string { return []string{MarkSkipsLeft, MarkRedrives, MarkStopRequested, MarkLost} }

const (
	searchBudget = 80 * time.Millisecond
	mostCounted  = 10_000
	mostText     = 200
	mostParams   = 20
)

// IsEmpty reports whether it has no condition.
func (r *Search) IsEmpty() bool {
	return len(r.Params) == 0 && r.Text == "" && r.EndedSince.IsZero() && r.EndedUntil.IsZero() && r.LongerThan == "" && len(r.Has) == 0 && r.Actor == "" && r.Worker == ""
}

func (r *Search) conditions(now time.Time) (search ports.ExecutionSearch, err error) {
	search = ports.ExecutionSearch{
		Text: r.Text, EndedFrom: r.EndedSince, EndedTo: r.EndedUntil, Actor: r.Actor, Worker: r.Worker, Budget: searchBudget,
	}
	for _, field := range []struct{ name, value string }{{"text", r.Text}, {"actor", r.Actor}, {"worker", r.Worker}} {
		if err := checkSearched(field.name, field.value); err != nil {
			return search, err
		}
	}
	if len(r.Params) > mostParams {
		return search, &RequestError{Field: "param", Reason: fmt.Sprintf("at most %d", mostParams)}
	}
	for _, text := range r.Params {
		match, err := parameterMatch(text)
		if err != nil {
			return search, err
		}
		search.Params = append(search.Params, match)
	}
	if r.LongerThan != "" {
		if search.LongerThan, err = time.ParseDuration(r.LongerThan); err != nil || search.LongerThan <= 0 {
			return search, &RequestError{Field: "longer_than", Value: r.LongerThan, Reason: "it is not a duration above zero, such as 90s or 1h30m"}
		}
	}
	if !r.EndedSince.IsZero() && !r.EndedUntil.IsZero() && !r.EndedSince.Before(r.EndedUntil) {
		return search, &RequestError{Field: "ended_until", Value: r.EndedUntil.Format(time.RFC3339), Reason: "it is not after ended_since"}
	}
	return search, r.marks(&search)
}

func (r *Search) marks(search *ports.ExecutionSearch) error {
	for _, mark := range r.Has {
		switch mark {
		case MarkSkipsLeft:
			search.SkipsLeft = true
		case MarkRedrives:
			search.Redriven = true
		case MarkStopRequested:
			search.StopRequested = true
		case MarkLost:
			search.Lost = true
		default:
			return &RequestError{Field: "has", Value: mark, Reason: "no such mark" + meant(mark, Marks()), Allowed: Marks()}
		}
	}
	return nil
}

func meant(name string, names []string) string {
	if near := nearest.Name(name, names); near != "" {
		return ", did you mean " + near + "?"
	}
	return ""
}

func checkSearched(field, text string) error {
	switch {
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return &RequestError{Field: field, Reason: "it is not UTF-8 text, or has a NUL character"}
	case utf8.RuneCountInString(text) > mostText:
		return &RequestError{Field: field, Reason: fmt.Sprintf("at most %d characters", mostText)}
	}
	return nil
}

// parameterMatch reads NAME:VALUE. The value is compared as each type that it
// can be of: 1.50 finds a decimal 1.5, and a string 1.50.
func parameterMatch(text string) (ports.ParameterMatch, error) {
	name, value, ok := strings.Cut(text, ":")
	if !ok || name == "" {
		return ports.ParameterMatch{}, &RequestError{Field: "param", Value: text, Reason: "NAME:VALUE is expected, such as day:2026-11-21"}
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return ports.ParameterMatch{}, &RequestError{Field: "param", Reason: "it is not UTF-8 text, or has a NUL character"}
	}
	match := ports.ParameterMatch{Name: name}
	for _, t := range core.ParameterTypes() {
		v, err := core.ParseParameter(t, value)
		if err != nil {
			continue
		}
		canonical, err := core.Parameter{Name: name, Type: t, Value: v}.Canonical()
		if err != nil {
			continue
		}
		at := slices.IndexFunc(match.Values, func(v ports.ParameterText) bool { return v.Text == canonical })
		if at < 0 {
			at = len(match.Values)
			match.Values = append(match.Values, ports.ParameterText{Text: canonical})
		}
		match.Values[at].Types = append(match.Values[at].Types, t)
	}
	return match, nil
}

// search returns a page of a search.
func (s *history) search(ctx context.Context, search ports.ExecutionSearch) (page ExecutionPage, err error) {
	search.Filter.Limit-- // the search itself looks for one more
	found, err := s.records.Search(ctx, search)
	if err != nil {
		return page, err
	}
	page.Executions, err = s.listed(ctx, found.IDs, search.Filter)
	if search.After != 0 {
		slices.Reverse(page.Executions)
	}
	if found.Reached != 0 {
		page.Next, page.SearchedTo = found.Reached, &SearchedTo{found.Reached, utc(found.ReachedAt)}
	}
	return page, err
}

func (s *history) count(ctx context.Context, search ports.ExecutionSearch) (*ExecutionCount, error) {
	search.Filter.Before, search.After, search.Filter.Limit = 0, 0, mostCounted
	found, err := s.records.Search(ctx, search)
	return &ExecutionCount{len(found.IDs), found.Reached != 0}, err
}

// knownNames is the number of parameters' names among which a misspelt one is
// recognized.
const knownNames = 1000

// notes explains a page without executions.
func (s *history) notes(ctx context.Context, search ports.ExecutionSearch) (notes []string, err error) {
	if len(search.Params) == 0 {
		return nil, nil
	}
	names, err := s.records.ParameterNames(ctx, knownNames)
	if err != nil || len(names) == knownNames {
		return nil, err
	}
	for _, p := range search.Params {
		if !slices.Contains(names, p.Name) {
			notes = append(notes, fmt.Sprintf("no execution in the history has a parameter %s%s", p.Name, meant(p.Name, names)))
		}
	}
	return notes, nil
}
