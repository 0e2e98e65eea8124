package changes

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// lookBack is how long a row may take to come into sight after one with a higher
// number: a transaction that has not committed holds its numbers.
const lookBack = time.Minute

// maxRows bounds the rows of a source that a look reads: if there are more new
// ones, listeners receive a Reset.
const maxRows = 2000

// firstRows are the newest rows of a source that the first look remembers.
const firstRows = 200

func numbered() []ports.ChangeSource {
	return []ports.ChangeSource{ports.ChangeOfAudit, ports.ChangeOfTaskAudit, ports.ChangeOfTask, ports.ChangeOfAttempt}
}

func compared() []ports.ChangeSource {
	return []ports.ChangeSource{ports.ChangeOfHeldTask, ports.ChangeOfDefinition, ports.ChangeOfWorker}
}

// memory has the rows of earlier looks.
type memory struct {
	numbers map[ports.ChangeSource]*numbers
	marks   map[ports.ChangeSource]map[string]ports.ChangeRow
	looked  bool
}

func newMemory() *memory {
	m := &memory{numbers: map[ports.ChangeSource]*numbers{}, marks: map[ports.ChangeSource]map[string]ports.ChangeRow{}}
	for _, s := range numbered() {
		m.numbers[s] = &numbers{seen: map[int64]time.Time{}}
	}
	return m
}

// request selects every source: a listener that resumes must find the changes of
// its kinds, even if others alone listened meanwhile. Counters of steps are the
// exception, because a step that is seen for the first time is a change.
func (m *memory) request(progress bool, executions []core.JobExecutionID) ports.ChangesRequest {
	req := ports.ChangesRequest{After: map[ports.ChangeSource]int64{}, Executions: executions, Limit: maxRows}
	for source, n := range m.numbers {
		req.After[source] = n.floor
	}
	for _, source := range compared() {
		req.After[source] = 0
	}
	if progress {
		req.After[ports.ChangeOfStep] = 0
	}
	return req
}

// learn returns the changes since the last look, at most one event of each thing.
func (m *memory) learn(rows []ports.ChangeRow, now time.Time) []Event {
	bySource := map[ports.ChangeSource][]ports.ChangeRow{}
	for _, row := range rows {
		bySource[row.Source] = append(bySource[row.Source], row)
	}
	var changed []ports.ChangeRow
	reset := false
	for _, source := range numbered() {
		found, missed := m.numbers[source].learn(bySource[source], m.looked, now)
		changed, reset = append(changed, found...), reset || missed
	}
	for _, source := range append(compared(), ports.ChangeOfStep) {
		found := bySource[source]
		reset = reset || len(found) >= maxRows
		changed = append(changed, m.compare(source, found)...)
	}
	m.looked = true
	if reset {
		return []Event{{Kind: Reset}}
	}
	var events []Event
	known := map[Event]bool{}
	for _, row := range changed {
		if e, is := eventOf(row); is && !known[e] {
			known[e] = true
			events = append(events, e)
		}
	}
	return events
}

func (m *memory) compare(source ports.ChangeSource, rows []ports.ChangeRow) []ports.ChangeRow {
	before, now := m.marks[source], make(map[string]ports.ChangeRow, len(rows))
	var changed []ports.ChangeRow
	first := !m.looked && source != ports.ChangeOfStep
	for _, row := range rows {
		key := row.Name + " " + strconv.FormatInt(row.ID, 10)
		now[key] = row
		if was, is := before[key]; !first && (!is || was.Mark != row.Mark) {
			changed = append(changed, row)
		}
	}
	if source != ports.ChangeOfStep { // the end of a step is in the audit
		for key, row := range before {
			if _, is := now[key]; !is {
				changed = append(changed, row)
			}
		}
	}
	m.marks[source] = now
	return changed
}

// numbers are the rows of a numbered source. Rows up to floor are not read again.
type numbers struct {
	floor int64
	seen  map[int64]time.Time
}

// learn returns the new rows, in the order of their numbers, and whether there are more of them.
func (n *numbers) learn(rows []ports.ChangeRow, looked bool, now time.Time) (found []ports.ChangeRow, missed bool) {
	rows = slices.SortedFunc(slices.Values(rows), func(a, b ports.ChangeRow) int { return cmp.Compare(a.ID, b.ID) })
	for i, row := range rows {
		if _, known := n.seen[row.ID]; known {
			continue
		}
		n.seen[row.ID] = now
		found = append(found, row)
		missed = missed || looked && i == 0 && len(rows) >= maxRows
	}
	if !looked {
		found = nil
	}
	n.forget(rows, looked, now)
	return found, missed
}

// forget raises the floor above the rows that are old enough, or too many.
func (n *numbers) forget(rows []ports.ChangeRow, looked bool, now time.Time) {
	keep := maxRows
	if !looked {
		keep = firstRows
	}
	if over := len(rows) - keep; over >= 0 && len(rows) > 0 {
		n.floor = max(n.floor, rows[over].ID-1)
	}
	for id, at := range n.seen {
		if now.Sub(at) > lookBack {
			n.floor = max(n.floor, id)
		}
	}
	for id := range n.seen {
		if id <= n.floor {
			delete(n.seen, id)
		}
	}
}

func eventOf(row ports.ChangeRow) (Event, bool) {
	switch {
	case row.Source == ports.ChangeOfStep:
		return Event{Kind: Progress, Number: int64(row.Step), Execution: row.Execution}, true
	case row.Source == ports.ChangeOfWorker:
		return Event{Kind: Worker, Name: row.Name}, true
	case row.Step != 0:
		return Event{Kind: Step, Number: int64(row.Step), Execution: row.Execution}, true
	case row.Execution != 0:
		return Event{Kind: Execution, Number: int64(row.Execution), Execution: row.Execution}, true
	case row.Task != 0:
		return Event{Kind: Task, Number: row.Task}, true
	case row.Name != "":
		return Event{Kind: Schedule, Name: row.Name}, true
	}
	return Event{}, false
}
