package job

import (
	"context"
	"math"
	"slices"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func stopped(message string) core.Outcome {
	return core.Outcome{Status: core.StatusStopped, ExitCode: core.ExitStopped, Message: message}
}

// stopAt records the stop. A step that failed is given up if the restart continues elsewhere: it is
// ABANDONED, and will be passed.
func (w *walk) stopAt(ctx context.Context, at model.Element, target model.Target) error {
	w.ordinal++
	if target.Restart == "" || target.Restart == at.ElementName() {
		w.note(at, ports.VisitStop, "", "")
		return w.port.stopped(ctx, w, at, false)
	}
	w.note(at, ports.VisitJump, "", target.Restart)
	return w.port.stopped(ctx, w, at, !w.flow.Leads(target.Restart, at.ElementName())) // otherwise the restart returns to it
}

// markStopped marks the visits that led to a stop without a restart point, or with one that precedes
// them. Passing one again would stop again.
func markStopped(flow model.Flow, rows []entry) {
	for _, stop := range rows {
		if stop.Kind != ports.VisitStop && (stop.Kind != ports.VisitJump || !leadsBack(flow, stop.Element, stop.Target)) {
			continue
		}
		for i := range rows {
			e := &rows[i]
			if isVisit(e.Kind) && e.Element == stop.Element && e.Ordinal == stop.Ordinal-1 && e.Execution <= stop.Execution {
				e.innerOnly = true
			}
		}
	}
}

func leadsBack(flow model.Flow, element, restart string) bool {
	at, known := flow.Find(element)
	target, found := flow.Find(restart)
	return known && found && flow.Index(target) <= flow.Index(at)
}

// repeat prepares the visit of an element that stopped the job: it runs again, although it completed.
// Elements inside it are passed.
func (w *walk) repeat(at model.Element, e, stop *entry) {
	again := *e
	again.innerOnly = true
	w.adopt = joined(map[string]entry{at.ElementName(): again}, w.adopt)
	w.ordinal = stop.Ordinal
}

// jumpsBackTo returns the index of the restart point if the log ends with a stop with an earlier
// element as its restart point, otherwise the length of the log. The walk reaches the elements in
// between again, so replay runs none of them.
func (w *walk) jumpsBackTo() int {
	entries := w.log.entries
	none := len(entries)
	if none == 0 {
		return none
	}
	stop := entries[none-1]
	if stop.Kind != ports.VisitJump || !leadsBack(w.flow, stop.Element, stop.Target) {
		return none
	}
	if since := slices.IndexFunc(entries[:none-1], func(e entry) bool { return e.Element == stop.Target }); since >= 0 {
		return since
	}
	return none
}

// jump continues at the restart point of a stop. If that is an earlier element, at index since,
// completed elements between them are passed, and the element that stopped runs again.
func (w *walk) jump(at model.Element, e *entry, before []entry, since int) way {
	w.ordinal = w.log.ordinal
	target, ok := w.flow.Find(e.Target)
	if !ok { // the definition no longer has it
		return way{next: []model.Element{at}}
	}
	if since < len(before) {
		w.adopt = joined(log{entries: ofLastRound(w.flow, before[since:])}.byElement(), w.adopt)
		w.ordinal++
		w.note(at, ports.VisitTurn, "", turnTarget(before[since].Ordinal, math.MaxInt64))
	}
	return way{next: []model.Element{target}}
}
