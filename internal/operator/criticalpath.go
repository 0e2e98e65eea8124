package operator

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// CriticalPath is the chain of steps that decided how long an attempt took: the step that ended last,
// the one that it had to wait for, and so on.
type CriticalPath struct {
	Execution core.JobExecutionID `json:"execution"`
	Attempt   int                 `json:"attempt"`
	// Duration is the sum of its steps, and Total how long the attempt took, in seconds. The rest is
	// between the steps.
	Duration float64 `json:"duration"`
	Total    float64 `json:"total"`
	// Lasts: the attempt is not over.
	Lasts bool           `json:"lasts,omitempty"`
	Steps []CriticalStep `json:"steps"`
}

// CriticalStep is a step of the chain.
type CriticalStep struct {
	Step     string               `json:"step"`
	ID       core.StepExecutionID `json:"step_execution"`
	Element  string               `json:"element,omitempty"`
	Round    int                  `json:"round,omitempty"`
	Status   core.Status          `json:"status"`
	Duration float64              `json:"duration"`
	// Parked is how long it waited without a process, in seconds.
	Parked float64 `json:"parked,omitempty"`
	// Part is the longest of its parts.
	Part *CriticalPart `json:"part,omitempty"`
}

// CriticalPart is the longest part of a step.
type CriticalPart struct {
	Name     string               `json:"name"`
	ID       core.StepExecutionID `json:"step_execution"`
	Duration float64              `json:"duration"`
	Process  *Process             `json:"process,omitempty"`
	Worker   string               `json:"worker,omitempty"`
}

// critical walks back from the step of the attempt that ended last.
func (b *timelineBuilder) critical(a *ports.AttemptSpan) *CriticalPath {
	var steps []Span
	for _, s := range b.steps {
		if s.Execution == a.ID {
			steps = append(steps, s)
		}
	}
	if len(steps) == 0 {
		return nil
	}
	paths := make([][]flowPlace, len(steps))
	last := 0
	for i := range steps {
		if paths[i] = pathOf(steps[i].visit); b.later(&steps[i], &steps[last]) {
			last = i
		}
	}
	attempt := b.attemptSpans(a)[0]
	c := &CriticalPath{Execution: a.ID, Attempt: a.Attempt, Total: attempt.Duration, Lasts: !a.Status.IsOver()}
	for at := last; at >= 0; {
		c.Steps = append(c.Steps, b.criticalStep(&steps[at]))
		c.Duration += steps[at].Duration
		before := -1
		for i := range steps[:at] { // a later start cannot delay it
			if precedes(paths[i], paths[at]) && (before < 0 || b.later(&steps[i], &steps[before])) {
				before = i
			}
		}
		at = before
	}
	slices.Reverse(c.Steps)
	return c
}

func (b *timelineBuilder) later(x, y *Span) bool {
	if x.Ended.IsZero() || y.Ended.IsZero() {
		return x.Ended.IsZero()
	}
	return !x.Ended.Before(y.Ended)
}

func (b *timelineBuilder) criticalStep(s *Span) CriticalStep {
	c := CriticalStep{
		Step: s.Name, ID: s.Step, Element: s.Element, Round: s.Round, Status: core.Status(s.Status), Duration: s.Duration, Parked: seconds(b.parked[s.Step]),
	}
	if b.rounds[roundOf{s.Execution, s.visit.Flow, s.visit.Element}] == 1 {
		c.Round = 0
	}
	if part := b.longest[s.Step]; part.Step != 0 {
		c.Part = &CriticalPart{Name: part.Name, ID: part.Step, Duration: part.Duration, Process: part.Process, Worker: part.Worker}
	}
	return c
}

// place is a visit in a flow, and the branch that was entered there; -1 if it is the visit of a step.
type flowPlace struct {
	ordinal int64
	branch  int
}

// pathOf is the place of a visit in the job's own flow, in the flow entered there, and so on.
func pathOf(v core.Visit) []flowPlace {
	var path []flowPlace
	rest := v.Flow
	if rest == ports.FlowFinally || strings.HasPrefix(rest, ports.FlowFinally+"/") {
		path = append(path, flowPlace{math.MaxInt64, 0})
		rest = strings.TrimPrefix(strings.TrimPrefix(rest, ports.FlowFinally), "/")
	}
	for rest != "" { // ELEMENT#ORDINAL/BRANCH, separated by slashes
		_, after, found := strings.Cut(rest, "#")
		number, after, is := strings.Cut(after, "/")
		branch, next, _ := strings.Cut(after, "/")
		ordinal, err := strconv.ParseInt(number, 10, 64)
		n, failed := strconv.Atoi(branch)
		if !found || !is || err != nil || failed != nil {
			break
		}
		path, rest = append(path, flowPlace{ordinal, n}), next
	}
	return append(path, flowPlace{v.Ordinal, -1})
}

// precedes reports whether the walk that visited y had to wait for x: x comes before it in a flow that both are in.
func precedes(x, y []flowPlace) bool {
	for i := range min(len(x), len(y)) {
		switch {
		case x[i].ordinal != y[i].ordinal:
			return x[i].ordinal < y[i].ordinal
		case x[i].branch != y[i].branch:
			return false
		}
	}
	return false
}
