package job

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// attempted is a group of steps while its transaction is open, with the steps that
// ran in it.
type attempted struct {
	model.Group
	records []core.StepExecution
	// deferred are the steps without a recorded end.
	deferred []core.StepExecutionID
	runs     []*model.StepRun
	// inside means that the starts of the steps are recorded in the transaction.
	inside bool
	// begun are the steps with a start recorded before the transaction began, by name, until they run.
	begun map[string]*core.StepExecution
	// rows are the group's journal rows; end is the row of its end.
	rows []ports.FlowVisit
	end  ports.FlowVisit
	// recorded means that the rows are in the group's transaction.
	recorded bool
}

func (g *attempted) note(step *model.StepRun) {
	g.inside = g.inside || step.StartedInGroup
	g.runs = append(g.runs, step)
	if step.Deferred != nil {
		g.deferred = append(g.deferred, step.Deferred.Ref.ID)
	}
}

// withheld returns the end of a step that observers were not notified of, or nil.
func (g *attempted) withheld(id core.StepExecutionID) *core.StepEnded {
	for _, run := range g.runs {
		if run.Withheld != nil && run.Step.ID == id {
			return run.Withheld
		}
	}
	return nil
}

// groupError rolls a group back because of how its flow ended.
type groupError struct{ out core.Outcome }

func (e *groupError) Error() string { return e.out.Message }

// group walks a flow of steps in one outer transaction (rule T6). It records the rest after that
// transaction: after a commit, the deferred ends; after a rollback, that no step is done, except steps
// with a transaction of their own.
func (l *live) group(ctx context.Context, w *walk, at *model.AtomicElement, sub *walk) (result, error) {
	group := &attempted{Group: model.Group{Name: at.Name, Database: at.Database}}
	group.end = ports.FlowVisit{Visit: w.visitOf(at), Kind: ports.VisitGroup}
	sub.group = group
	if err := l.begin(ctx, sub, at); errors.Is(err, core.ErrStopped) {
		return l.stoppedBefore(), nil
	} else if err != nil {
		return result{}, err
	}
	var r result
	var broken error
	err := at.Do(ctx, func(ctx context.Context) error {
		if r, broken = sub.walk(ctx); broken != nil {
			return broken
		}
		if r.out.Status != core.StatusCompleted {
			return &groupError{r.out}
		}
		if sub.isPassed() {
			return nil
		}
		return l.recordVisits(ctx, group, r.out)
	})
	w.join(sub)
	undone, recorded := l.record(ctx, group, at.Flow, err)
	recorded = errors.Join(recorded, l.release(ctx, group))
	if broken != nil || recorded != nil {
		return result{}, errors.Join(broken, recorded)
	}
	var rolledBack *groupError
	if !errors.As(err, &rolledBack) && undone {
		r.out.Status, r.out.ExitCode, r.out.Message = core.StatusFailed, core.ExitFailed, fmt.Sprintf("group %s: %v", at.Name, err)
		if l.unknown(group, err) {
			r.out.Status, r.out.ExitCode = core.StatusUnknown, core.ExitUnknown
		}
	}
	if !sub.isPassed() && !group.recorded || err != nil {
		group.end.Verdict = verdictOf(r.out)
		l.run.progress.note(append(group.rows, group.end)...)
	}
	return r, nil
}

// recordVisits stores the journal of the group, and other rows that wait, in the group's transaction if
// that is in the repository's database: the rows of the steps count only with it (rule F5).
func (l *live) recordVisits(ctx context.Context, group *attempted, out core.Outcome) error {
	if group.Database != l.run.config.Repository.Database() {
		return nil
	}
	group.end.Verdict = verdictOf(out)
	var err error
	group.recorded, err = l.run.config.Repository.RecordVisits(ctx, l.run.exec.ID, append(group.rows, group.end))
	return err
}

// unknown reports whether the outcome of the group cannot be known. In the repository's own database
// its records, part of the transaction, show the outcome.
func (l *live) unknown(group *attempted, failure error) bool {
	return errors.Is(failure, core.ErrUnknownOutcome) && group.Database != l.run.config.Repository.Database()
}

// record writes the ends of the group's steps that are not recorded yet. undone means that the work of
// the group is not done: a COMMIT reported as failed may still have committed the records.
func (l *live) record(ctx context.Context, group *attempted, flow model.Flow, failure error) (undone bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	gone, err := l.rolledBack(ctx, group, failure)
	if err != nil {
		return true, err
	}
	var errs []error
	undone = failure != nil && len(group.records) == 0
	for _, s := range group.records {
		change, needed := l.change(group, s, failure)
		if !needed {
			continue
		}
		ended, stands, err := l.recordOne(ctx, s, change, gone[s.ID])
		undone = undone || failure != nil && !stands
		errs = append(errs, err)
		if withheld := group.withheld(s.ID); stands && withheld != nil {
			l.run.config.Observer.Observe(ctx, *withheld)
			continue
		}
		l.observeEnd(ctx, flow, ended, failure, err)
	}
	return undone, errors.Join(errs...)
}

// rolledBack returns the records that vanished because they were started in the transaction and it
// rolled back. The failure alone does not show that: a COMMIT reported as failed may have happened. An
// ID may be another step's by now.
func (l *live) rolledBack(ctx context.Context, group *attempted, failure error) (map[core.StepExecutionID]bool, error) {
	if failure == nil || !group.inside {
		return nil, nil
	}
	ids := make([]core.StepExecutionID, len(group.records))
	for i, s := range group.records {
		ids[i] = s.ID
	}
	found, err := l.run.config.Repository.StepsByID(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("group %s: read what was committed: %w", group.Name, err)
	}
	gone := map[core.StepExecutionID]bool{}
	for _, s := range group.records {
		there := found[s.ID]
		gone[s.ID] = there.JobExecutionID != s.JobExecutionID || there.Name != s.Name || there.Visit != s.Visit
	}
	return gone, nil
}

// change returns the end of a step of the group that is still to be recorded, and whether there is one.
func (l *live) change(group *attempted, s core.StepExecution, failure error) (ports.StepChange, bool) {
	change := ports.StepChange{
		To: s.Status, ExitCode: s.ExitCode, Error: s.Error, Counters: s.Counters, InHand: s.InHand, Gate: s.Gate, Context: s.Context, Out: s.Out,
	}
	switch {
	case failure == nil:
		put := slices.Contains(group.deferred, s.ID)
		return change, put // otherwise recorded in the transaction, and committed with it
	case s.Status != core.StatusCompleted:
	case l.unknown(group, failure):
		change = ports.StepChange{To: core.StatusUnknown, ExitCode: core.ExitUnknown, Error: failure.Error()}
	default:
		change = ports.StepChange{
			To: core.StatusFailed, ExitCode: core.ExitFailed, Error: "rolled back with group " + group.Name, Counters: core.Counters{Rollback: 1},
		}
	}
	return change, true
}

// observeEnd notifies the observers of the end that the group recorded for a step; nil means it
// recorded none.
func (l *live) observeEnd(ctx context.Context, flow model.Flow, ended *core.StepExecution, failure, unrecorded error) {
	switch {
	case ended == nil:
	case unrecorded != nil:
		l.run.config.Observer.Observe(ctx, core.EndNotRecorded{
			Execution: ended.JobExecutionID, JobName: ended.JobName, Step: ended.Name, StepID: ended.ID, To: ended.Status, Err: unrecorded,
		})
	default:
		kind := ""
		for _, s := range flow.Steps() {
			if s.Name() == ended.Name {
				kind = s.Kind()
			}
		}
		if failure == nil && ended.Error != "" {
			failure = errors.New(ended.Error)
		}
		l.run.config.Observer.Observe(ctx, core.StepEnded{Step: *ended, Kind: kind, Err: failure})
	}
}

// recordOne writes one end and returns it, or nil if it was recorded before. stands means that the step
// recorded its end in a committed transaction, its own or the group's. anew means that the rollback
// removed the record: recordOne creates it again.
func (l *live) recordOne(ctx context.Context, s core.StepExecution, change ports.StepChange, anew bool) (ended *core.StepExecution, stands bool, err error) {
	if anew {
		again, err := l.run.config.Repository.StartStep(ctx, l.run.ref, ports.StepStart{Name: s.Name, Visit: s.Visit, Always: true})
		if err != nil {
			return &s, false, fmt.Errorf("step %s: record it again: %w", s.Name, err)
		}
		s.ID, s.Owner, s.Epoch, s.StartedAt = again.ID, again.Owner, again.Epoch, again.StartedAt
	}
	ref := ports.StepRef{ID: s.ID, Owner: s.Owner, Epoch: s.Epoch}
	var answer core.Answer
	err = l.run.lease.Record(ctx, func(ctx context.Context) (err error) {
		answer, err = l.run.config.Repository.EndStep(ctx, ref, change)
		return err
	})
	if found, mine := core.FoundIn(err); mine && found.IsOver() {
		return nil, true, nil
	}
	s.Status, s.ExitCode, s.Error, s.Counters = change.To, change.ExitCode, change.Error, change.Counters
	if err != nil {
		return &s, false, fmt.Errorf("step %s: record its end: %w", s.Name, err)
	}
	if answer == core.Duplicate {
		return nil, true, nil
	}
	l.run.progress.recordEnd(s)
	return &s, false, nil
}

// begin records the starts of the group's steps if its transaction could not see them later.
func (l *live) begin(ctx context.Context, w *walk, e *model.AtomicElement) error {
	if !e.Snapshot {
		return nil
	}
	w.group.begun = map[string]*core.StepExecution{}
	visited, ordinal := w.log.byElement(), w.log.ordinal
	for _, at := range e.Flow.Elements {
		step, ok := at.(*model.StepElement)
		if !ok {
			continue
		}
		before, again := visited[at.ElementName()]
		if again && before.record != nil && isDone(*before.record) && !step.AllowStartIfComplete {
			continue
		}
		v := core.Visit{Flow: w.id, Ordinal: before.Ordinal, Element: at.ElementName()}
		if !again {
			ordinal++
			v.Ordinal = ordinal
		}
		start := ports.StepStart{Name: step.Step.Name(), Visit: v}
		if h, known := l.run.progress.historyOf(step.Step.Name()); known && !isDone(h.Last) {
			start.Earlier = &h.Last
		}
		record, err := l.run.config.Repository.StartStep(ctx, l.run.ref, start)
		if err != nil {
			return errors.Join(fmt.Errorf("step %s: start: %w", step.Step.Name(), err), l.release(ctx, w.group))
		}
		w.group.begun[record.Name] = record
	}
	return nil
}

// release ends the steps that the group did not reach.
func (l *live) release(ctx context.Context, group *attempted) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	var errs []error
	for _, s := range group.begun {
		_, _, err := l.recordOne(ctx, *s, ports.StepChange{
			To: core.StatusStopped, ExitCode: core.ExitStopped, Error: "group " + group.Name + " did not come to it",
		}, false)
		errs = append(errs, err)
	}
	group.begun = nil
	return errors.Join(errs...)
}
