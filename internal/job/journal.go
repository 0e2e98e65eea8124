package job

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// journal holds the visits of earlier attempts of the instance: the only memory of a walk (rule F5).
// The zero journal belongs to a first attempt.
type journal struct {
	rows  map[string][]ports.JournalRow // by flow
	inner map[string][]int64            // ordinals of elements with flows in them, by FlowPrefix + element
	steps map[core.StepExecutionID]core.StepExecution
	// database is the name of the repository's database.
	database string
}

// newJournal reads the journal. It does not read step executions that history has.
func newJournal(ctx context.Context, repository ports.JobRepository, exec *core.JobExecution, history map[string]ports.StepHistory) (*journal, error) {
	rows, err := repository.Visits(ctx, exec.InstanceID, exec.AnewSince())
	if err != nil {
		return nil, err
	}
	return journalOf(ctx, repository, rows, history)
}

// journalOf makes the journal from its rows, and adds to history the passed steps that are older than
// it.
func journalOf(ctx context.Context, repository ports.JobRepository, rows []ports.JournalRow, history map[string]ports.StepHistory) (*journal, error) {
	j := &journal{
		rows: map[string][]ports.JournalRow{}, inner: map[string][]int64{}, steps: map[core.StepExecutionID]core.StepExecution{},
		database: repository.Database(),
	}
	for _, h := range history {
		j.steps[h.Last.ID] = h.Last
	}
	var missing []core.StepExecutionID
	for i, row := range rows {
		if row.Kind == ports.VisitPass {
			id, err := strconv.ParseInt(row.Target, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("the journal of execution %d passes step execution %q: %w", row.Execution, row.Target, err)
			}
			row.Step = core.StepExecutionID(id)
			rows[i] = row
		}
		if row.Kind == ports.VisitTurn || row.Kind == ports.VisitAdopt {
			if _, _, err := ordinalsOf(row); err != nil {
				return nil, err
			}
		}
		if _, known := j.steps[row.Step]; !known && row.Step != 0 {
			missing = append(missing, row.Step)
		}
		j.add(row)
	}
	read, err := repository.StepsByID(ctx, missing)
	if err != nil {
		return nil, err
	}
	maps.Copy(j.steps, read)
	for _, s := range read {
		if _, newer := history[s.Name]; !newer && isPassedIn(rows, s.ID) {
			history[s.Name] = ports.StepHistory{Last: s, Attempts: 1}
		}
	}
	return j, nil
}

func isPassedIn(rows []ports.JournalRow, step core.StepExecutionID) bool {
	return slices.ContainsFunc(rows, func(r ports.JournalRow) bool { return r.Kind == ports.VisitPass && r.Step == step })
}

func (j *journal) add(row ports.JournalRow) {
	if len(j.rows[row.Flow]) == 0 {
		j.addInner(row.Flow)
	}
	j.rows[row.Flow] = append(j.rows[row.Flow], row)
}

// addInner notes the visits of the elements around a flow, which are in its name: outer#3/1/inner#2/0
// is in visit 2 of inner, which is in visit 3 of outer.
func (j *journal) addInner(flow string) {
	for at := strings.LastIndexByte(flow, '#'); at >= 0; at = strings.LastIndexByte(flow[:at], '#') {
		number, _, _ := strings.Cut(flow[at+1:], "/")
		ordinal, err := strconv.ParseInt(number, 10, 64)
		if err == nil && !slices.Contains(j.inner[flow[:at]], ordinal) {
			j.inner[flow[:at]] = append(j.inner[flow[:at]], ordinal)
		}
	}
}

// attempts bounds the attempts with rows that count, both included.
type attempts struct{ from, to core.JobExecutionID }

func allAttempts() attempts { return attempts{0, math.MaxInt64} }

func (a attempts) has(id core.JobExecutionID) bool { return a.from <= id && id <= a.to }

// entry is the known state of an element's last visit.
type entry struct {
	ports.JournalRow
	record *core.StepExecution // of a step, executed or passed
	// open means that the end of a split or a flow is not recorded: only the visits in it are known.
	open bool
	// outs are the outcomes of the visit in the attempts that recorded it, the newest last.
	outs []core.Outcome
	// followed is the kind of the next row, next its element and behind its ordinal; empty if not
	// known.
	followed ports.VisitKind
	next     string
	behind   int64
	// inner is the visit with the name prefix of the flows inside, and inside are the attempts with
	// rows that count there.
	inner  core.Visit
	inside attempts
	// innerOnly means that the element itself runs again although it completed: it led to a stop from
	// which a restart reaches it again.
	innerOnly bool
}

// log is the journal of one flow.
type log struct {
	// entries are the last visits of the elements, in their order.
	entries []entry
	// left are the newest visits of elements on paths that an attempt left and did not reach again.
	left map[string]entry
	// ordinal is the greatest ordinal that counts.
	ordinal int64
}

// log returns the journal of a flow: for each ordinal the newest attempt's row, without rows on
// abandoned paths, and for each element the last row.
func (j *journal) log(flow model.Flow, id string, within attempts) log {
	var rows []entry
	var turns []turn
	for _, row := range j.rows[id] {
		if !within.has(row.Execution) {
			continue
		}
		if row.Kind == ports.VisitTurn {
			from, to, _ := ordinalsOf(row) //nolint:errcheck // newJournal has read it
			turns = append(turns, turn{row.Execution, from, to})
		}
		rows = append(rows, entry{JournalRow: row})
	}
	rows = append(rows, j.open(flow, id, within)...)
	for i := range rows {
		e := &rows[i]
		e.inner, e.inside = e.Visit, within.floor(turns, e.Ordinal, e.Execution)
		if e.Kind == ports.VisitGroup {
			e.inside.to = min(e.inside.to, e.Execution)
		}
		if record, ok := j.steps[e.Step]; ok && e.Step != 0 {
			e.record = &record
		}
		if out, ok := e.outcome(); ok {
			e.outs = []core.Outcome{out}
		}
	}
	isDead := func(e entry) bool {
		return within.floor(turns, e.Ordinal, math.MaxInt64).from > e.Execution
	}
	rows = continued(rows, isDead)
	markStopped(flow, rows)
	newest := map[string]entry{}
	for _, e := range rows {
		before, there := newest[e.Element]
		if isVisit(e.Kind) && (!there || cmp.Or(cmp.Compare(e.Execution, before.Execution), cmp.Compare(e.Ordinal, before.Ordinal)) > 0) {
			newest[e.Element] = e
		}
	}
	l := log{left: map[string]entry{}}
	for element, e := range newest {
		if isDead(e) && !e.isOfEarlierRound(flow, leftWith(rows, turns, e)) {
			l.left[element] = e
		}
	}
	rows = slices.DeleteFunc(rows, isDead)
	slices.SortStableFunc(rows, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.Ordinal, b.Ordinal), cmp.Compare(a.Execution, b.Execution))
	})
	l.entries, l.ordinal = lastVisits(rows)
	return l
}

func ofLastRound(flow model.Flow, entries []entry) []entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e entry) bool { return e.isOfEarlierRound(flow, entries) })
}

// isOfEarlierRound reports whether the path has since returned to before the element and would reach it
// again.
func (e *entry) isOfEarlierRound(flow model.Flow, way []entry) bool {
	at, ok := flow.Find(e.Element)
	return ok && slices.ContainsFunc(way, func(later entry) bool {
		to, ok := flow.Find(later.Element)
		return ok && later.Ordinal > e.Ordinal && isVisit(later.Kind) && flow.Index(to) < flow.Index(at) && flow.Leads(later.Element, e.Element)
	})
}

// leftWith returns the rows abandoned by the first attempt that turned away from the entry.
func leftWith(rows []entry, turns []turn, e entry) []entry {
	var first *turn
	for i, t := range turns {
		if t.from <= e.Ordinal && e.Ordinal <= t.to && t.by > e.Execution && (first == nil || t.by < first.by) {
			first = &turns[i]
		}
	}
	var with []entry
	for _, row := range rows {
		if first != nil && row.Execution < first.by && first.from <= row.Ordinal && row.Ordinal <= first.to {
			with = append(with, row)
		}
	}
	return with
}

// turn is a path of earlier attempts that an attempt left.
type turn struct {
	by       core.JobExecutionID
	from, to int64
}

// ordinalsOf reads the two numbers of the target of a VisitTurn (the first and the last
// ordinal) or a VisitAdopt (the ordinal, and the first attempt that counts inside).
func ordinalsOf(row ports.JournalRow) (first, second int64, err error) {
	if _, err := fmt.Sscanf(row.Target, "%d %d", &first, &second); err != nil {
		return 0, 0, fmt.Errorf("the journal of execution %d, flow %q, visit %d: a row of kind %s has the target %q: %w",
			row.Execution, row.Flow, row.Ordinal, row.Kind, row.Target, err)
	}
	return first, second, nil
}

func turnTarget(from, to int64) string { return fmt.Sprintf("%d %d", from, to) }

// floor leaves out the attempts before one that turned away from the ordinal, as far as
// it was not later than until.
func (a attempts) floor(turns []turn, ordinal int64, until core.JobExecutionID) attempts {
	for _, t := range turns {
		if t.from <= ordinal && ordinal <= t.to && t.by <= until {
			a.from = max(a.from, t.by)
		}
	}
	return a
}

// continued moves the visits inside an earlier visit to the visit that continues it, as rows of
// VisitAdopt record.
func continued(rows []entry, isDead func(entry) bool) []entry {
	for _, adopt := range rows {
		if adopt.Kind != ports.VisitAdopt || isDead(adopt) {
			continue
		}
		ordinal, from, _ := ordinalsOf(adopt.JournalRow) //nolint:errcheck // newJournal has read it
		inside := attempts{core.JobExecutionID(from), math.MaxInt64}
		for i := range rows {
			e := &rows[i]
			moved := e.open && e.Ordinal == ordinal && e.Execution >= adopt.Execution
			if e.Element != adopt.Element || !moved && (e.Ordinal != adopt.Ordinal+1 || e.Execution < adopt.Execution || !isVisit(e.Kind)) {
				continue
			}
			e.Ordinal = adopt.Ordinal + 1
			e.inner, e.inside = e.Visit, inside
			e.inner.Ordinal = ordinal
		}
	}
	return rows
}

func adoptTarget(e *entry) string { return fmt.Sprintf("%d %d", e.inner.Ordinal, e.inside.from) }

func isVisit(kind ports.VisitKind) bool {
	switch kind {
	case ports.VisitStep, ports.VisitNoop, ports.VisitDecision, ports.VisitFlow, ports.VisitGroup, ports.VisitPass:
		return true
	case ports.VisitStop, ports.VisitJump, ports.VisitAdopt, ports.VisitTurn:
	}
	return false
}

// lastVisits returns, of rows in order, the last of each element, and a stop at the end.
func lastVisits(rows []entry) (entries []entry, ordinal int64) {
	last := map[string]int64{}
	var all []entry
	marks := map[int64]bool{} // for rows that are not visits
	for i, e := range rows {
		ordinal = max(ordinal, e.Ordinal)
		if i+1 < len(rows) && rows[i+1].Ordinal == e.Ordinal { // a later attempt visited it again
			rows[i+1].outs = append(slices.Clone(e.outs), rows[i+1].outs...)
			continue
		}
		switch {
		case isVisit(e.Kind):
			last[e.Element] = e.Ordinal
		case e.Kind == ports.VisitAdopt || e.Kind == ports.VisitTurn:
			marks[e.Ordinal] = true
			continue
		}
		all = append(all, e)
	}
	for i, e := range all {
		switch {
		case isVisit(e.Kind) && last[e.Element] != e.Ordinal: // history
			continue
		case !isVisit(e.Kind) && i+1 < len(all): // a restart left the stop
			continue
		}
		if i+1 < len(all) {
			behind := e.Ordinal + 1
			for marks[behind] {
				behind++
			}
			if behind == all[i+1].Ordinal {
				e.followed, e.next, e.behind = all[i+1].Kind, all[i+1].Element, behind
			}
		}
		entries = append(entries, e)
	}
	return entries, ordinal
}

// open returns an entry for each split and flow in which an attempt visited something. If an attempt
// recorded its end, that is another entry of the same ordinal.
func (j *journal) open(flow model.Flow, id string, within attempts) []entry {
	var found []entry
	for _, at := range flow.Elements {
		kind, is := j.openKind(at)
		if !is {
			continue
		}
		for _, ordinal := range j.inner[core.FlowPrefix(id)+at.ElementName()] {
			v := core.Visit{Flow: id, Ordinal: ordinal, Element: at.ElementName()}
			if newest := j.newestIn(at, v, within); newest != 0 && !j.hasEnd(v, newest) {
				found = append(found, entry{open: true, JournalRow: ports.JournalRow{Execution: newest, FlowVisit: ports.FlowVisit{Visit: v, Kind: kind}}})
			}
		}
	}
	return append(found, j.gone(flow, id, within)...)
}

// gone returns an entry for each element that the definition no longer has and in which an attempt
// visited something: only its name is known.
func (j *journal) gone(flow model.Flow, id string, within attempts) []entry {
	var found []entry
	for prefix, ordinals := range j.inner {
		name, is := strings.CutPrefix(prefix, core.FlowPrefix(id))
		if _, there := flow.Find(name); !is || there || strings.Contains(name, "#") {
			continue
		}
		for _, ordinal := range ordinals {
			v := core.Visit{Flow: id, Ordinal: ordinal, Element: name}
			if newest := j.newestUnder(v, within); newest != 0 && !j.hasEnd(v, newest) {
				found = append(found, entry{open: true, JournalRow: ports.JournalRow{
					Execution: newest, FlowVisit: ports.FlowVisit{Visit: v, Kind: ports.VisitFlow},
				}})
			}
		}
	}
	return found
}

// newestUnder returns the newest attempt with a row in a flow of the visit, or 0.
func (j *journal) newestUnder(v core.Visit, within attempts) core.JobExecutionID {
	var newest core.JobExecutionID
	branches := strings.TrimSuffix(v.Inner(0), "0")
	for flow, rows := range j.rows {
		if !strings.HasPrefix(flow, branches) {
			continue
		}
		for _, row := range rows {
			if within.has(row.Execution) {
				newest = max(newest, row.Execution)
			}
		}
	}
	return newest
}

// openKind reports whether the rows inside an element prove that it was visited. A flow with a step
// execution has a row of its own. The rows of a group in another database do not count without the row
// of its end: its transaction may be undone.
func (j *journal) openKind(at model.Element) (ports.VisitKind, bool) {
	switch e := at.(type) {
	case *model.SplitElement:
		return ports.VisitFlow, true
	case *model.FlowElement:
		return ports.VisitFlow, !e.AsStep
	case *model.AtomicElement:
		return ports.VisitGroup, e.Database == j.database
	case *model.StepElement, *model.DecisionElement:
	}
	return "", false
}

func (j *journal) hasEnd(v core.Visit, attempt core.JobExecutionID) bool {
	return slices.ContainsFunc(j.rows[v.Flow], func(row ports.JournalRow) bool {
		return row.Ordinal == v.Ordinal && row.Execution == attempt && row.Element == v.Element
	})
}

// newestIn returns the newest attempt that visited something inside the element, or 0.
func (j *journal) newestIn(at model.Element, v core.Visit, within attempts) core.JobExecutionID {
	var newest core.JobExecutionID
	for branch, flow := range model.Flows(at) {
		id := v.Inner(branch)
		for _, row := range j.rows[id] {
			if within.has(row.Execution) {
				newest = max(newest, row.Execution)
			}
		}
		for _, inner := range flow.Elements {
			for _, ordinal := range j.inner[core.FlowPrefix(id)+inner.ElementName()] {
				newest = max(newest, j.newestIn(inner, core.Visit{Flow: id, Ordinal: ordinal, Element: inner.ElementName()}, within))
			}
		}
	}
	return newest
}

func (l log) byElement() map[string]entry {
	entries := make(map[string]entry, len(l.entries))
	for _, e := range l.entries {
		entries[e.Element] = e
	}
	return entries
}

// outcome returns how the visit ended; false if that is not recorded.
func (e *entry) outcome() (core.Outcome, bool) {
	switch e.Kind {
	case ports.VisitStep, ports.VisitPass:
		if e.record == nil || e.record.Status.IsRunning() {
			return core.Outcome{}, false
		}
		return outcomeOf(e.record), true
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

func verdictOf(out core.Outcome) string { return string(out.Status) + " " + out.ExitCode }

func outcomeOf(s *core.StepExecution) core.Outcome {
	out := core.Outcome{Status: s.Status, ExitCode: s.ExitCode, Message: explain(s), Settles: s.Settles}
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
