// Package journal reads the journal of an instance: the visits of earlier
// attempts in each flow (rule F5), without abandoned paths and earlier rounds
// of a loop. A Journal holds the rows, a Log those of one flow, an Entry one
// visit. A row of kind turn abandons a path; kind adopt continues a visit of
// one. It imports core only.
package journal

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

// Repository stores the journal.
type Repository interface {
	Visits(ctx context.Context, id core.JobInstanceID, since core.JobExecutionID) ([]ports.JournalRow, error)
	StepsByID(ctx context.Context, ids []core.StepExecutionID) (map[core.StepExecutionID]core.StepExecution, error)
	LastSteps(ctx context.Context, id core.JobInstanceID, since core.JobExecutionID) (map[string]ports.StepHistory, error)
	Database() string
}

// Journal holds the visits of earlier attempts: the only memory of a walk. Zero
// belongs to a first attempt.
type Journal struct {
	rows     map[string][]ports.JournalRow // by flow
	inner    map[string][]int64            // ordinals of elements with flows in them, by FlowPrefix + element
	steps    map[core.StepExecutionID]core.StepExecution
	database string
}

// Read returns journal and history since the execution that started from the
// beginning.
func Read(ctx context.Context, repository Repository, instance core.JobInstanceID, since core.JobExecutionID) (*Journal, map[string]ports.StepHistory, error) {
	history, err := repository.LastSteps(ctx, instance, since)
	var rows []ports.JournalRow
	if err == nil {
		rows, err = repository.Visits(ctx, instance, since)
	}
	var j *Journal
	if err == nil {
		j, err = newJournal(ctx, repository, rows, history)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the history of the instance: %w", err)
	}
	return j, history, nil
}

// newJournal adds to history the passed steps that are older than the journal.
func newJournal(ctx context.Context, repository Repository, rows []ports.JournalRow, history map[string]ports.StepHistory) (*Journal, error) {
	j := &Journal{
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
			if _, _, err := targetNumbers(row); err != nil {
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
		if s.Unreadable != nil {
			return nil, s.Unreadable
		}
		if _, newer := history[s.Name]; !newer && isPassedIn(rows, s.ID) {
			history[s.Name] = ports.StepHistory{Last: s, Attempts: 1}
		}
	}
	return j, nil
}

func isPassedIn(rows []ports.JournalRow, step core.StepExecutionID) bool {
	return slices.ContainsFunc(rows, func(r ports.JournalRow) bool { return r.Kind == ports.VisitPass && r.Step == step })
}

func (j *Journal) add(row ports.JournalRow) {
	if len(j.rows[row.Flow]) == 0 {
		j.addAround(row.Flow)
	}
	j.rows[row.Flow] = append(j.rows[row.Flow], row)
}

// A flow's name has the visits around it: outer#3/1/inner#2/0 is in visit 2 of
// inner, in visit 3 of outer.
func (j *Journal) addAround(flow string) {
	for at := strings.LastIndexByte(flow, '#'); at >= 0; at = strings.LastIndexByte(flow[:at], '#') {
		number, _, _ := strings.Cut(flow[at+1:], "/")
		ordinal, err := strconv.ParseInt(number, 10, 64)
		if err == nil && !slices.Contains(j.inner[flow[:at]], ordinal) {
			j.inner[flow[:at]] = append(j.inner[flow[:at]], ordinal)
		}
	}
}

// ReviseSteps replaces each step that the journal names.
func (j *Journal) ReviseSteps(revise func(core.StepExecution) core.StepExecution) {
	for id, s := range j.steps {
		j.steps[id] = revise(s)
	}
}

// Log returns a flow's journal: for each ordinal the newest attempt's row,
// without abandoned paths, and for each element the last row.
func (j *Journal) Log(flow model.Flow, id string, within Attempts) Log {
	rows, paths := j.read(flow, id, within)
	isAbandoned := func(e Entry) bool {
		return within.countingAt(paths, e.Ordinal, math.MaxInt64).From > e.Execution
	}
	rows = moveAdopted(rows, isAbandoned)
	markStopped(flow, rows)
	l := Log{Abandoned: map[string]Entry{}}
	for element, e := range newestVisits(rows) {
		if isAbandoned(e) && !e.IsOfEarlierRound(flow, abandonedWith(rows, paths, e)) {
			l.Abandoned[element] = e
		}
	}
	rows = slices.DeleteFunc(rows, isAbandoned)
	slices.SortStableFunc(rows, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Ordinal, b.Ordinal), cmp.Compare(a.Execution, b.Execution))
	})
	l.Entries, l.Ordinal = lastVisits(rows)
	return l
}

func (j *Journal) read(flow model.Flow, id string, within Attempts) (rows []Entry, paths []abandoned) {
	for _, row := range j.rows[id] {
		if !within.has(row.Execution) {
			continue
		}
		if row.Kind == ports.VisitTurn {
			from, to, _ := targetNumbers(row) //nolint:errcheck // newJournal has read it
			paths = append(paths, abandoned{row.Execution, from, to})
		}
		rows = append(rows, Entry{JournalRow: row})
	}
	rows = append(rows, j.open(flow, id, within)...)
	for i := range rows {
		e := &rows[i]
		e.Inner, e.Within = e.Visit, within.countingAt(paths, e.Ordinal, e.Execution)
		if e.Kind == ports.VisitGroup {
			e.Within.To = min(e.Within.To, e.Execution)
		}
		if record, ok := j.steps[e.Step]; ok && e.Step != 0 {
			e.Record = &record
		}
		if out, ok := e.recorded(); ok {
			e.Outcomes = []core.Outcome{out}
		}
	}
	return rows, paths
}

func newestVisits(rows []Entry) map[string]Entry {
	newest := map[string]Entry{}
	for _, e := range rows {
		before, there := newest[e.Element]
		if e.IsVisit() && (!there || cmp.Or(cmp.Compare(e.Execution, before.Execution), cmp.Compare(e.Ordinal, before.Ordinal)) > 0) {
			newest[e.Element] = e
		}
	}
	return newest
}

// open has each split and flow in which an attempt visited something without
// recording its end.
func (j *Journal) open(flow model.Flow, id string, within Attempts) []Entry {
	var found []Entry
	for _, at := range flow.Elements {
		kind, is := j.openKind(at)
		if !is {
			continue
		}
		for _, ordinal := range j.inner[core.FlowPrefix(id)+at.ElementName()] {
			v := core.Visit{Flow: id, Ordinal: ordinal, Element: at.ElementName()}
			found = j.appendOpen(found, v, kind, j.newestIn(at, v, within))
		}
	}
	for prefix, ordinals := range j.inner { // only the name of a removed element is known
		name, is := strings.CutPrefix(prefix, core.FlowPrefix(id))
		if _, there := flow.Find(name); !is || there || strings.Contains(name, "#") {
			continue
		}
		for _, ordinal := range ordinals {
			v := core.Visit{Flow: id, Ordinal: ordinal, Element: name}
			found = j.appendOpen(found, v, ports.VisitFlow, j.newestInRemoved(v, within))
		}
	}
	return found
}

func (j *Journal) appendOpen(found []Entry, v core.Visit, kind ports.VisitKind, attempt core.JobExecutionID) []Entry {
	isEnd := func(row ports.JournalRow) bool {
		return row.Ordinal == v.Ordinal && row.Execution == attempt && row.Element == v.Element
	}
	if attempt == 0 || slices.ContainsFunc(j.rows[v.Flow], isEnd) {
		return found
	}
	return append(found, Entry{Open: true, JournalRow: ports.JournalRow{Execution: attempt, FlowVisit: ports.FlowVisit{Visit: v, Kind: kind}}})
}

// openKind reports whether inner rows prove a visit. A flow with a step
// execution has its own row; a group's transaction in another database may have
// rolled back.
func (j *Journal) openKind(at model.Element) (ports.VisitKind, bool) {
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

func (j *Journal) newestIn(at model.Element, v core.Visit, within Attempts) core.JobExecutionID {
	var newest core.JobExecutionID
	for branch, flow := range model.Flows(at) {
		id := v.Inner(branch)
		newest = max(newest, newestOf(j.rows[id], within))
		for _, inner := range flow.Elements {
			for _, ordinal := range j.inner[core.FlowPrefix(id)+inner.ElementName()] {
				newest = max(newest, j.newestIn(inner, core.Visit{Flow: id, Ordinal: ordinal, Element: inner.ElementName()}, within))
			}
		}
	}
	return newest
}

func (j *Journal) newestInRemoved(v core.Visit, within Attempts) core.JobExecutionID {
	var newest core.JobExecutionID
	branches := strings.TrimSuffix(v.Inner(0), "0")
	for flow, rows := range j.rows {
		if strings.HasPrefix(flow, branches) {
			newest = max(newest, newestOf(rows, within))
		}
	}
	return newest
}

func newestOf(rows []ports.JournalRow, within Attempts) core.JobExecutionID {
	var newest core.JobExecutionID
	for _, row := range rows {
		if within.has(row.Execution) {
			newest = max(newest, row.Execution)
		}
	}
	return newest
}
