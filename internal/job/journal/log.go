package journal

import (
	"math"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Log is the path of one flow so far.
type Log struct {
	// Entries are the last visits, in order.
	Entries []Entry
	// Abandoned are the newest visits on abandoned paths that no attempt
	// reached again.
	Abandoned map[string]Entry
	// Ordinal is the greatest that counts.
	Ordinal int64
}

// Entry is an element's last visit.
type Entry struct {
	ports.JournalRow
	Record *core.StepExecution // of a step, executed or passed
	// Open: the end of a split or flow is not recorded.
	Open bool
	// Outcomes are by attempt, the newest last.
	Outcomes []core.Outcome
	// Of the row that follows; empty if not known.
	NextKind    ports.VisitKind
	Next        string
	NextOrdinal int64
	// Inner names the flows inside; Within are the attempts that count there.
	Inner  core.Visit
	Within Attempts
	// RunsAgain: it completed but led to a stop from which a restart reaches it
	// again. Elements inside are passed.
	RunsAgain bool
}

// Attempts bounds the attempts that count, both included.
type Attempts struct{ From, To core.JobExecutionID }

// AllAttempts includes every attempt.
func AllAttempts() Attempts { return Attempts{0, math.MaxInt64} }

// Since excludes the attempts before id.
func Since(id core.JobExecutionID) Attempts { return Attempts{id, math.MaxInt64} }

func (a Attempts) has(id core.JobExecutionID) bool { return a.From <= id && id <= a.To }

// ByElement returns the entries by element.
func ByElement(entries []Entry) map[string]Entry {
	m := make(map[string]Entry, len(entries))
	for _, e := range entries {
		m[e.Element] = e
	}
	return m
}

// LastRound returns the entries that no later round of a loop would reach
// again.
func LastRound(flow model.Flow, entries []Entry) map[string]Entry {
	return ByElement(slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return e.IsOfEarlierRound(flow, entries) }))
}

// IsOfEarlierRound reports whether the path has returned to before the element.
func (e *Entry) IsOfEarlierRound(flow model.Flow, path []Entry) bool {
	at, ok := flow.Find(e.Element)
	return ok && slices.ContainsFunc(path, func(later Entry) bool {
		to, ok := flow.Find(later.Element)
		return ok && later.Ordinal > e.Ordinal && later.IsVisit() && flow.Index(to) < flow.Index(at) && flow.Leads(later.Element, e.Element)
	})
}

// IsVisit is false for a change of path.
func (e *Entry) IsVisit() bool {
	switch e.Kind {
	case ports.VisitStep, ports.VisitNoop, ports.VisitDecision, ports.VisitFlow, ports.VisitGroup, ports.VisitPass:
		return true
	case ports.VisitStop, ports.VisitJump, ports.VisitAdopt, ports.VisitTurn:
	}
	return false
}

// Outcome returns the newest recorded one.
func (e *Entry) Outcome() (out core.Outcome, ok bool) {
	if len(e.Outcomes) == 0 {
		return core.Outcome{}, false
	}
	return e.Outcomes[len(e.Outcomes)-1], true
}

// IsLeftBy reports whether this outcome leads where the element led before.
func (e *Entry) IsLeftBy(at model.Element, out core.Outcome) bool {
	to, some := model.Next(at.Edges(), out.Status, out.ExitCode)
	switch {
	case e.NextKind == ports.VisitStop || e.NextKind == ports.VisitJump:
		return some && to.Kind == model.TargetStop
	case e.NextKind != "":
		return some && to.Kind == model.TargetElement && to.Name == e.Next
	}
	return slices.ContainsFunc(e.Outcomes, func(out core.Outcome) bool {
		was, known := model.Next(at.Edges(), out.Status, out.ExitCode)
		return some && known && was == to
	})
}

func lastVisits(rows []Entry) (entries []Entry, ordinal int64) {
	last := map[string]int64{}
	var all []Entry
	marks := map[int64]bool{} // for rows that change the path
	for i, e := range rows {
		ordinal = max(ordinal, e.Ordinal)
		if i+1 < len(rows) && rows[i+1].Ordinal == e.Ordinal { // a later attempt visited it again
			rows[i+1].Outcomes = append(slices.Clone(e.Outcomes), rows[i+1].Outcomes...)
			continue
		}
		switch {
		case e.IsVisit():
			last[e.Element] = e.Ordinal
		case e.Kind == ports.VisitAdopt || e.Kind == ports.VisitTurn:
			marks[e.Ordinal] = true
			continue
		}
		all = append(all, e)
	}
	for i, e := range all {
		switch {
		case e.IsVisit() && last[e.Element] != e.Ordinal: // an earlier round of a loop
			continue
		case !e.IsVisit() && i+1 < len(all): // a restart continued after the stop
			continue
		}
		if i+1 < len(all) {
			next := e.Ordinal + 1
			for marks[next] {
				next++
			}
			if next == all[i+1].Ordinal {
				e.NextKind, e.Next, e.NextOrdinal = all[i+1].Kind, all[i+1].Element, next
			}
		}
		entries = append(entries, e)
	}
	return entries, ordinal
}

func (e *Entry) recorded() (core.Outcome, bool) {
	switch e.Kind {
	case ports.VisitStep, ports.VisitPass:
		if e.Record == nil || e.Record.Status.IsRunning() {
			return core.Outcome{}, false
		}
		return OutcomeOf(e.Record), true
	case ports.VisitNoop:
		return core.Outcome{Status: core.StatusCompleted, ExitCode: core.ExitNoop}, true
	case ports.VisitDecision:
		return core.Outcome{Status: core.StatusCompleted, ExitCode: e.Verdict}, true
	case ports.VisitFlow, ports.VisitGroup:
		status, exit, ok := strings.Cut(e.Verdict, " ")
		return core.Outcome{Status: core.Status(status), ExitCode: exit}, ok
	case ports.VisitStop, ports.VisitJump, ports.VisitAdopt, ports.VisitTurn:
	}
	return core.Outcome{}, false
}

// VerdictOf is the verdict of the row of a split, flow or group.
func VerdictOf(out core.Outcome) string { return string(out.Status) + " " + out.ExitCode }

// OutcomeOf returns a step's outcome as transitions match it.
func OutcomeOf(s *core.StepExecution) core.Outcome {
	out := core.Outcome{Status: s.Status, ExitCode: s.ExitCode, Message: s.Error, Settles: s.Settles}
	if s.Error != "" && s.Status != core.StatusStopped {
		out.Message = "step " + s.Name + ": " + s.Error
	}
	if s.Status == core.StatusAbandoned { // it had failed
		out.Status = core.StatusFailed
	}
	if s.Status == core.StatusStopped { // rule F2b
		out.ExitCode = core.ExitStopped
	}
	if s.Status != core.StatusCompleted {
		out.Step = s.Name
	}
	return out
}

// IsDone reports whether a step is not resumed.
func IsDone(s core.StepExecution) bool {
	return s.Status == core.StatusCompleted || s.Status == core.StatusAbandoned
}

// StepName returns the name of an element's step execution; false if it has none.
func StepName(at model.Element) (string, bool) {
	switch e := at.(type) {
	case *model.StepElement:
		return e.Step.Name(), true
	case *model.FlowElement:
		return e.Name, e.AsStep
	case *model.DecisionElement, *model.SplitElement, *model.AtomicElement:
	}
	return "", false
}
