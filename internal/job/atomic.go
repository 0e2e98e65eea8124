package job

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/job/walk"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type openGroup struct {
	model.Group
	records []core.StepExecution
	// deferred are the steps without a recorded end.
	deferred []core.StepExecutionID
	runs     []*model.StepRun
	// startsInside: the starts are recorded in the transaction.
	startsInside bool
	// begun have a start recorded before the transaction.
	begun map[string]*core.StepExecution
	// end is the row of its end.
	rows     []ports.FlowVisit
	end      ports.FlowVisit
	recorded bool
}

func (g *openGroup) note(step *model.StepRun) {
	g.startsInside = g.startsInside || step.StartedInGroup
	g.runs = append(g.runs, step)
	if step.Deferred != nil {
		g.deferred = append(g.deferred, step.Deferred.Ref.ID)
	}
}

func (g *openGroup) withheld(id core.StepExecutionID) *core.StepEnded {
	for _, run := range g.runs {
		if run.Withheld != nil && run.Step.ID == id {
			return run.Withheld
		}
	}
	return nil
}

type groupError struct{ out core.Outcome }

func (e *groupError) Error() string { return e.out.Message }

// Group walks a flow in one outer transaction (rule T6), and afterwards records
// the deferred ends, or after a rollback that no step is done.
func (l *live) Group(ctx context.Context, w *walk.Walk, at *model.AtomicElement, inner *walk.Walk) (walk.Result, error) {
	group := &openGroup{Group: model.Group{Name: at.Name, Database: at.Database}}
	group.end = ports.FlowVisit{Visit: w.VisitOf(at), Kind: ports.VisitGroup}
	inner.Port = &live{run: l.run, group: group}
	if err := l.beginSteps(ctx, inner, at, group); errors.Is(err, core.ErrStopped) {
		return l.stoppedBefore(), nil
	} else if err != nil {
		return walk.Result{}, err
	}
	var r walk.Result
	var broken error
	err := at.Do(ctx, func(ctx context.Context) error {
		if r, broken = inner.Run(ctx); broken != nil {
			return broken
		}
		if r.Outcome.Status != core.StatusCompleted {
			return &groupError{r.Outcome}
		}
		if inner.IsPassed() {
			return nil
		}
		return l.recordVisits(ctx, group, r.Outcome)
	})
	isUndone, recorded := l.recordEnds(ctx, group, at.Flow, err)
	recorded = errors.Join(recorded, l.endBegun(ctx, group))
	if broken != nil || recorded != nil {
		return walk.Result{}, errors.Join(broken, recorded)
	}
	var rolledBack *groupError
	if !errors.As(err, &rolledBack) && isUndone {
		r.Outcome.Status, r.Outcome.ExitCode, r.Outcome.Message = core.StatusFailed, core.ExitFailed, fmt.Sprintf("group %s: %v", at.Name, err)
		if l.isOutcomeUnknown(group, err) {
			r.Outcome.Status, r.Outcome.ExitCode = core.StatusUnknown, core.ExitUnknown
		}
	}
	if !inner.IsPassed() && !group.recorded || err != nil {
		group.end.Verdict = journal.VerdictOf(r.Outcome)
		l.run.attempt.Progress.Note(append(group.rows, group.end)...)
	}
	return r, nil
}

// The journal is stored in the group's transaction if that is in the
// repository's database: the steps' rows count only with it (rule F5).
func (l *live) recordVisits(ctx context.Context, group *openGroup, out core.Outcome) error {
	if group.Database != l.run.config.Repository.Database() {
		return nil
	}
	group.end.Verdict = journal.VerdictOf(out)
	var err error
	group.recorded, err = l.run.config.Repository.RecordVisits(ctx, l.run.exec.ID, append(group.rows, group.end))
	return err
}

// isOutcomeUnknown is false in the repository's own database: the records show
// the outcome.
func (l *live) isOutcomeUnknown(group *openGroup, failure error) bool {
	return errors.Is(failure, ports.ErrUnknownOutcome) && group.Database != l.run.config.Repository.Database()
}

// isUndone: the group's work is not done. A COMMIT reported as failed may still
// have committed the records.
func (l *live) recordEnds(ctx context.Context, group *openGroup, flow model.Flow, failure error) (isUndone bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	gone, err := l.vanished(ctx, group, failure)
	if err != nil {
		return true, err
	}
	var errs []error
	isUndone = failure != nil && len(group.records) == 0
	for _, s := range group.records {
		change, needed := l.unrecordedEnd(group, s, failure)
		if !needed {
			continue
		}
		ended, isKept, err := l.recordEnd(ctx, s, change, gone[s.ID])
		isUndone = isUndone || failure != nil && !isKept
		errs = append(errs, err)
		if withheld := group.withheld(s.ID); isKept && withheld != nil {
			l.run.config.Observer.Observe(ctx, *withheld)
			continue
		}
		l.observeEnd(ctx, flow, ended, failure, err)
	}
	return isUndone, errors.Join(errs...)
}

// vanished returns the records that rolled back. The failure alone does not
// show that: a COMMIT reported as failed may have happened. An ID may be
// another step's by now.
func (l *live) vanished(ctx context.Context, group *openGroup, failure error) (map[core.StepExecutionID]bool, error) {
	if failure == nil || !group.startsInside {
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

func (l *live) unrecordedEnd(group *openGroup, s core.StepExecution, failure error) (ports.StepChange, bool) {
	change := ports.StepChange{
		To: s.Status, ExitCode: s.ExitCode, Error: s.Error, Counters: s.Counters, InHand: s.InHand, Gate: s.Gate, Context: s.Context, Out: s.Out,
	}
	switch {
	case failure == nil:
		put := slices.Contains(group.deferred, s.ID)
		return change, put // otherwise recorded in the transaction, and committed with it
	case s.Status != core.StatusCompleted:
	case l.isOutcomeUnknown(group, failure):
		change = ports.StepChange{To: core.StatusUnknown, ExitCode: core.ExitUnknown, Error: failure.Error()}
	default:
		change = ports.StepChange{
			To: core.StatusFailed, ExitCode: core.ExitFailed, Error: "rolled back with group " + group.Name, Counters: core.Counters{Rollback: 1},
		}
	}
	return change, true
}

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

// recordEnd returns nil if the end was recorded before. isKept: a committed
// transaction has it. recreate: the rollback removed it.
func (l *live) recordEnd(ctx context.Context, s core.StepExecution, change ports.StepChange, recreate bool) (ended *core.StepExecution, isKept bool, err error) {
	if recreate {
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
	if found, mine := ports.FoundIn(err); mine && found.IsOver() {
		return nil, true, nil
	}
	s.Status, s.ExitCode, s.Error, s.Counters = change.To, change.ExitCode, change.Error, change.Counters
	if err != nil {
		return &s, false, fmt.Errorf("step %s: record its end: %w", s.Name, err)
	}
	if answer == core.Duplicate {
		return nil, true, nil
	}
	l.run.attempt.Progress.RecordEnd(s)
	return &s, false, nil
}

func (l *live) beginSteps(ctx context.Context, w *walk.Walk, e *model.AtomicElement, group *openGroup) error {
	if !e.Snapshot {
		return nil
	}
	group.begun = map[string]*core.StepExecution{}
	visited, ordinal := journal.ByElement(w.Log.Entries), w.Log.Ordinal
	for _, at := range e.Flow.Elements {
		step, ok := at.(*model.StepElement)
		if !ok {
			continue
		}
		before, again := visited[at.ElementName()]
		if again && before.Record != nil && journal.IsDone(*before.Record) && !step.AllowStartIfComplete {
			continue
		}
		v := core.Visit{Flow: w.ID, Ordinal: before.Ordinal, Element: at.ElementName()}
		if !again {
			ordinal++
			v.Ordinal = ordinal
		}
		start := ports.StepStart{Name: step.Step.Name(), Visit: v}
		if h, known := l.run.attempt.Progress.HistoryOf(step.Step.Name()); known && !journal.IsDone(h.Last) {
			start.Earlier = &h.Last
		}
		record, err := l.run.config.Repository.StartStep(ctx, l.run.ref, start)
		if err != nil {
			return errors.Join(fmt.Errorf("step %s: start: %w", step.Step.Name(), err), l.endBegun(ctx, group))
		}
		group.begun[record.Name] = record
	}
	return nil
}

func (l *live) endBegun(ctx context.Context, group *openGroup) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	var errs []error
	for _, s := range group.begun {
		_, _, err := l.recordEnd(ctx, *s, ports.StepChange{
			To: core.StatusStopped, ExitCode: core.ExitStopped, Error: "group " + group.Name + " ended before it",
		}, false)
		errs = append(errs, err)
	}
	group.begun = nil
	return errors.Join(errs...)
}
