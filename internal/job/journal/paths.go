package journal

import (
	"fmt"
	"math"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type abandoned struct {
	by       core.JobExecutionID
	from, to int64
}

func (p abandoned) has(e *Entry) bool {
	return p.from <= e.Ordinal && e.Ordinal <= p.to && p.by > e.Execution
}

// AbandonFrom is the target of a row that abandons from the ordinal on.
func AbandonFrom(ordinal int64) string { return Abandon(ordinal, math.MaxInt64) }

// Abandon is the target of a row that abandons both ordinals and those between.
func Abandon(first, last int64) string { return fmt.Sprintf("%d %d", first, last) }

// Adopt is the target of a row that continues an abandoned visit: its ordinal,
// and the first attempt that counts inside.
func Adopt(e *Entry) string { return fmt.Sprintf("%d %d", e.Inner.Ordinal, e.Within.From) }

func targetNumbers(row ports.JournalRow) (first, second int64, err error) {
	if _, err := fmt.Sscanf(row.Target, "%d %d", &first, &second); err != nil {
		return 0, 0, fmt.Errorf("the journal of execution %d, flow %q, visit %d: a row of kind %s has the target %q: %w",
			row.Execution, row.Flow, row.Ordinal, row.Kind, row.Target, err)
	}
	return first, second, nil
}

// countingAt excludes the attempts before one that abandoned the ordinal, if
// not later than until.
func (a Attempts) countingAt(paths []abandoned, ordinal int64, until core.JobExecutionID) Attempts {
	for _, p := range paths {
		if p.from <= ordinal && ordinal <= p.to && p.by <= until {
			a.From = max(a.From, p.by)
		}
	}
	return a
}

func abandonedWith(rows []Entry, paths []abandoned, e Entry) []Entry {
	var first *abandoned
	for i, p := range paths {
		if p.has(&e) && (first == nil || p.by < first.by) {
			first = &paths[i]
		}
	}
	var with []Entry
	for _, row := range rows {
		if first != nil && first.has(&row) {
			with = append(with, row)
		}
	}
	return with
}

func moveAdopted(rows []Entry, isAbandoned func(Entry) bool) []Entry {
	for _, adopt := range rows {
		if adopt.Kind != ports.VisitAdopt || isAbandoned(adopt) {
			continue
		}
		ordinal, from, _ := targetNumbers(adopt.JournalRow) //nolint:errcheck // Read has checked it
		for i := range rows {
			e := &rows[i]
			continues := e.Open && e.Ordinal == ordinal && e.Execution >= adopt.Execution
			if e.Element != adopt.Element || !continues && (e.Ordinal != adopt.Ordinal+1 || e.Execution < adopt.Execution || !e.IsVisit()) {
				continue
			}
			e.Ordinal = adopt.Ordinal + 1
			e.Inner, e.Within = e.Visit, Since(core.JobExecutionID(from))
			e.Inner.Ordinal = ordinal
		}
	}
	return rows
}

// markStopped marks visits that led to a stop with no later restart point:
// passing one again would stop again.
func markStopped(flow model.Flow, rows []Entry) {
	for _, stop := range rows {
		if stop.Kind != ports.VisitStop && !stop.JumpsBack(flow) {
			continue
		}
		for i := range rows {
			e := &rows[i]
			if e.IsVisit() && e.Element == stop.Element && e.Ordinal == stop.Ordinal-1 && e.Execution <= stop.Execution {
				e.RunsAgain = true
			}
		}
	}
}

// JumpsBack reports a stop with a restart point that does not follow its
// element.
func (e *Entry) JumpsBack(flow model.Flow) bool {
	at, known := flow.Find(e.Element)
	target, found := flow.Find(e.Target)
	return e.Kind == ports.VisitJump && known && found && flow.Index(target) <= flow.Index(at)
}
