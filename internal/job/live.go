package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/job/walk"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type live struct {
	run   *run
	group *openGroup
}

// Stopping is false on the path to the parked step: that step ends first.
func (l *live) Stopping() bool { return !l.run.attempt.Resuming && l.run.stop.isRequested() }

func (l *live) Passed(ctx context.Context, w *walk.Walk, at *model.StepElement, s core.StepExecution) {
	if l.run.attempt.Resuming || l.run.part != nil && s.JobExecutionID == l.run.exec.ID { // this attempt has already passed or run it
		return
	}
	l.run.config.Observer.Observe(ctx, core.StepPassed{Execution: l.run.exec.ID, Visit: w.VisitOf(at), Step: s})
}

func (l *live) Holds(ctx context.Context, w *walk.Walk, at model.Element) (walk.Answer, error) {
	condition := at.Condition()
	if condition == nil {
		return walk.Yes, nil
	}
	held, _, err := condition.Check(ctx, w.View())
	if err != nil {
		return walk.No, fmt.Errorf("%s: when: %w", at.ElementName(), err)
	}
	if held {
		return walk.Yes, nil
	}
	l.run.config.Observer.Observe(ctx, core.ElementSkipped{
		Execution: l.run.exec.ID, JobName: l.run.job.Name, Visit: w.VisitOf(at), Element: at.ElementName(), Condition: condition.Text,
	})
	return walk.No, nil
}

// Noop records nothing in a group: it would be part of the transaction.
func (l *live) Noop(ctx context.Context, w *walk.Walk, at *model.StepElement) (walk.Result, error) {
	out := walk.Known(core.Outcome{Status: core.StatusCompleted, ExitCode: core.ExitNoop})
	if l.group != nil {
		return out, nil
	}
	rows := l.run.attempt.Progress.Unwritten()
	record, err := l.run.config.Repository.StartStep(ctx, l.run.ref, ports.StepStart{
		Name: at.Step.Name(), Visit: w.VisitOf(at), Noop: true, Before: rows,
	})
	if errors.Is(err, core.ErrStopped) {
		return l.stoppedBefore(), nil
	}
	if err != nil {
		return walk.Result{}, fmt.Errorf("step %s: %w", at.Step.Name(), err)
	}
	l.run.attempt.Progress.RecordWritten(rows)
	l.run.attempt.Progress.Record(*record)
	w.Last = record
	return out, nil
}

func (l *live) Step(ctx context.Context, w *walk.Walk, at *model.StepElement, before ports.StepHistory) (walk.Result, error) {
	run := l.stepRun(w, at)
	if l.group == nil && (run.Data.MayPark || l.run.part != nil && w.ID == l.run.branchLog) && l.run.releasing() {
		return walk.Result{}, ports.ErrParked
	}
	_, composite := at.Step.(model.Composite)
	run.Services.Stop = l.stopOf(w, run.Data.MayPark, composite)
	if composite && l.run.attempt.Progress.HasRun(at.Step.Name(), l.run.exec.ID) {
		if err := l.readParts(ctx, at.Step.Name(), run.Data.Parts); err != nil {
			return walk.Result{}, err
		}
	}
	if l.run.attempt.HasWaited(before.Last.ID) {
		l.run.attempt.ReachWaited(before.Last.ID)
		l.resumeStep(at.Step, run, before.Last)
	} else if before.Last.ID != 0 && !journal.IsDone(before.Last) {
		run.Data.Earlier = resumedAttempt(before.Last, run.Data.Parts)
		run.Data.NewDefinition = slices.Contains(l.run.changedSteps, at.Step.Name())
	}
	record, err := l.run.config.Executor.Execute(ctx, at.Step, run)
	if err == nil && walk.OnWorkers(at.Step) {
		err = l.run.readPromoted(context.WithoutCancel(ctx))
	}
	if l.group != nil {
		l.group.note(run)
	}
	if record != nil {
		l.run.attempt.Progress.RecordWritten(run.Data.Before)
	}
	if record == nil && errors.Is(err, core.ErrStopped) {
		return l.stoppedBefore(), nil
	}
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, core.ErrLostOwner) {
			err = errors.Join(cause, err)
		}
		return walk.Result{}, err
	}
	l.run.attempt.Progress.Record(*record)
	if l.group != nil {
		l.group.records = append(l.group.records, *record)
	}
	w.Last = record
	return walk.Known(journal.OutcomeOf(record)), nil
}

// Steps of the job's own flow, of a branch and of `finally` can be given back
// (rule P5); composite steps only while they wait. A stop does not end
// `finally`.
func (l *live) stopOf(w *walk.Walk, mayPark, composite bool) model.StopSignal {
	stop := stepStop{l.run}
	switch own := l.group == nil && (mayPark || l.run.part != nil && w.ID == l.run.branchLog); {
	case w.ID == ports.FlowFinally && composite:
		return leave{model.StopOn(nil), l.run.stop.release}
	case w.ID == ports.FlowFinally:
		return finallyRelease{l.run}
	case own && composite:
		return leave{stop, l.run.stop.release}
	case own:
		return stepRelease{stop}
	}
	return stop
}

func (l *live) stoppedBefore() walk.Result {
	l.run.askStop()
	return walk.Stopped("stopped on request")
}

// A composite step in a branch that lost its lease continues with the steps of
// this attempt.
func (l *live) resumeStep(s model.Step, run *model.StepRun, record core.StepExecution) {
	run.Data.Planned, run.Data.Resumed, run.Data.Before = &record, true, nil
	_, composite := s.(model.Composite)
	if record.First != record.ID || composite && l.run.part != nil {
		run.Data.Earlier = &record
	}
}

// stepRun copies: the run shares nothing with parallel steps.
func (l *live) stepRun(w *walk.Walk, at *model.StepElement) *model.StepRun {
	r := l.run
	run := &model.StepRun{
		Data: model.StepContext{
			Job: r.snapshot(), JobRef: r.ref, Steps: r.attempt.Progress.Steps(), Last: w.Last, Outcome: r.attempt.Outcome,
			Parts: r.attempt.Progress.Parts(at.Step.Name()), Visit: w.VisitOf(at), MayPark: w.ID == "" && (r.exec.Parent == 0 || r.resumed != nil),
			AcceptChanges: r.acceptChanges,
		},
		Services: model.StepServices{
			Checkpoints: r.config.Repository.CheckpointStore, Stores: r.config.Stores, Plans: r.config.Repository, Executor: r.config.Executor,
			Jobs: r.children, Attempts: r.config.Repository, Owners: model.OwnersFunc(r.config.Dead), Observer: r.config.Observer,
			Stop: stepStop{r}, Spawner: model.SpawnerFunc(r.config.Spawn), Promoter: model.PromoterFunc(r.promote), Lease: r.lease,
		},
	}
	if l.group == nil {
		run.Data.Before = r.attempt.Progress.Unwritten()
		return run
	}
	run.Data.Group, run.Data.Planned = &l.group.Group, l.group.begun[at.Step.Name()]
	if run.Data.Planned != nil {
		w.Ordinal = max(w.Ordinal, run.Data.Planned.Visit.Ordinal)
	}
	delete(l.group.begun, at.Step.Name())
	return run
}

// A process that died could not add up the figures of its partitions.
func resumedAttempt(last core.StepExecution, parts map[string]core.StepExecution) *core.StepExecution {
	if len(parts) == 0 {
		return &last
	}
	last.Before, last.Counters, last.InHand = core.Counters{}, core.Counters{}, core.Counters{}
	for _, part := range parts {
		if part.ID < last.First { // of work completed earlier
			continue
		}
		last.Counters = last.Counters.Add(part.Carried())
	}
	return &last
}

func (l *live) readParts(ctx context.Context, step string, parts map[string]core.StepExecution) error {
	records, err := l.run.config.Repository.Steps(ctx, l.run.exec.ID)
	if err != nil {
		return fmt.Errorf("step %s: read its partitions: %w", step, err)
	}
	for _, record := range records {
		if part, is := strings.CutPrefix(record.Name, core.PartName(step, "")); is {
			parts[part] = record
		}
	}
	return nil
}

func (l *live) Limited(_ *walk.Walk, _ *model.StepElement, refusal *walk.StartLimitError) (walk.Result, error) {
	return walk.Result{}, refusal
}

func (l *live) Decide(ctx context.Context, w *walk.Walk, at *model.DecisionElement) (verdict string, answered bool, err error) {
	view, answer := w.View(), ""
	err = l.run.callWithGrace(ctx, func() (err error) {
		answer, err = at.Decide(ctx, view)
		return err
	})
	if err == nil {
		err = core.CheckExitCode(answer)
	}
	return answer, true, err
}

func (l *live) Decided(ctx context.Context, w *walk.Walk, at *model.DecisionElement, verdict string, kept bool) {
	if l.run.attempt.Resuming {
		return
	}
	l.run.config.Observer.Observe(ctx, core.Decided{
		Execution: l.run.exec.ID, JobName: l.run.job.Name, Visit: w.VisitOf(at), Element: at.Name, Verdict: verdict, Kept: kept,
	})
}

func (l *live) StoppedAt(ctx context.Context, _ *walk.Walk, at model.Element, giveUp bool) error {
	name, ok := journal.StepName(at)
	if !ok || !giveUp {
		return nil
	}
	h, some := l.run.attempt.Progress.HistoryOf(name)
	s := h.Last
	if !some || s.Status != core.StatusFailed || s.JobExecutionID != l.run.exec.ID {
		return nil
	}
	ref := ports.StepRef{ID: s.ID, Owner: s.Owner, Epoch: s.Epoch}
	_, err := l.run.config.Repository.EndStep(ctx, ref, ports.StepChange{
		To: core.StatusAbandoned, ExitCode: s.ExitCode, Error: s.Error, Counters: s.Counters, Out: s.Out,
	})
	if err != nil {
		return fmt.Errorf("give up step %s: %w", name, err)
	}
	s.Status = core.StatusAbandoned
	l.run.attempt.Progress.Record(s)
	return nil
}

func (l *live) Note(w *walk.Walk, row ports.FlowVisit) {
	if l.group != nil {
		l.group.rows = append(l.group.rows, row)
		return
	}
	l.run.attempt.Progress.Note(row)
}
