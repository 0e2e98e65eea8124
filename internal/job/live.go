package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type live struct{ run *run }

// stopping is false on the path to the step that was parked: the execution's visits stand, and that
// step ends first.
func (l *live) stopping() bool { return !l.run.resuming && l.run.stop.requested() }

func (l *live) passed(ctx context.Context, w *walk, at *model.StepElement, s core.StepExecution) {
	if l.run.resuming || l.run.part != nil && s.JobExecutionID == l.run.exec.ID { // this attempt has already passed or run it
		return
	}
	l.run.config.Observer.Observe(ctx, core.StepPassed{Execution: l.run.exec.ID, Visit: w.visitOf(at), Step: s})
}

func (l *live) holds(ctx context.Context, w *walk, at model.Element) (answer, error) {
	condition := at.Condition()
	if condition == nil {
		return yes, nil
	}
	held, _, err := condition.Check(ctx, w.view())
	if err != nil {
		return no, fmt.Errorf("%s: when: %w", at.ElementName(), err)
	}
	if held {
		return yes, nil
	}
	l.run.config.Observer.Observe(ctx, core.ElementSkipped{
		Execution: l.run.exec.ID, JobName: l.run.job.Name, Visit: w.visitOf(at), Element: at.ElementName(), Condition: condition.Text,
	})
	return no, nil
}

// noop records a step with a false condition: it completes without running, and a restart passes it. In
// a group it records nothing, because the record would be part of the group's transaction: the
// condition is asked again.
func (l *live) noop(ctx context.Context, w *walk, at *model.StepElement) (result, error) {
	out := known(core.Outcome{Status: core.StatusCompleted, ExitCode: core.ExitNoop})
	if w.group != nil {
		return out, nil
	}
	rows := l.run.progress.unwrittenVisits()
	record, err := l.run.config.Repository.StartStep(ctx, l.run.ref, ports.StepStart{
		Name: at.Step.Name(), Visit: w.visitOf(at), Noop: true, Before: rows,
	})
	if errors.Is(err, core.ErrStopped) {
		return l.stoppedBefore(), nil
	}
	if err != nil {
		return result{}, fmt.Errorf("step %s: %w", at.Step.Name(), err)
	}
	l.run.progress.recordWritten(rows)
	l.run.progress.record(*record)
	w.last = record
	return out, nil
}

func (l *live) step(ctx context.Context, w *walk, at *model.StepElement, before ports.StepHistory) (result, error) {
	run := l.stepRun(w, at)
	if w.group == nil && (run.Data.MayPark || l.run.part != nil && w.id == l.run.root) && l.run.releasing() {
		return result{}, core.ErrParked
	}
	_, composite := at.Step.(model.Composite)
	run.Services.Stop = l.stopOf(w, run.Data.MayPark, composite)
	if composite && l.run.progress.hasRun(at.Step.Name(), l.run.exec.ID) {
		if err := l.readParts(ctx, at.Step.Name(), run.Data.Parts); err != nil {
			return result{}, err
		}
	}
	if l.run.waitedFor(before.Last.ID) {
		l.run.came(before.Last.ID)
		l.resumeStep(at.Step, run, before.Last)
	} else if before.Last.ID != 0 && !isDone(before.Last) {
		run.Data.Earlier = resumed(before.Last, run.Data.Parts)
		run.Data.NewDefinition = slices.Contains(l.run.newDefinition, at.Step.Name())
	}
	record, err := l.run.config.Executor.Execute(ctx, at.Step, run)
	if err == nil && onWorkers(at.Step) {
		err = l.run.refresh(context.WithoutCancel(ctx))
	}
	if w.group != nil {
		w.group.note(run)
	}
	if record != nil {
		l.run.progress.recordWritten(run.Data.Before)
	}
	if record == nil && errors.Is(err, core.ErrStopped) {
		return l.stoppedBefore(), nil
	}
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, core.ErrLostOwner) {
			err = errors.Join(cause, err)
		}
		return result{}, err
	}
	l.run.progress.record(*record)
	if w.group != nil {
		w.group.records = append(w.group.records, *record)
	}
	w.last = record
	return known(outcomeOf(record)), nil
}

// stopOf returns the stop signal of a step. Steps of the job's own flow, of a branch and of `finally`
// can be given back (rule P5); a step made of other steps or jobs only while it waits. A stop does not
// end clean-up steps.
func (l *live) stopOf(w *walk, mayPark, composite bool) model.StopSignal {
	stop := stepStop{l.run}
	switch own := w.group == nil && (mayPark || l.run.part != nil && w.id == l.run.root); {
	case w.id == ports.FlowFinally && composite:
		return finallyLeave{model.StopOn(nil), l.run}
	case w.id == ports.FlowFinally:
		return finallyRelease{l.run}
	case own && composite:
		return stepLeave{stop}
	case own:
		return stepRelease{stop}
	}
	return stop
}

// stoppedBefore returns the result of a step that the database did not let start because a stop was
// requested (rule L13).
func (l *live) stoppedBefore() result {
	l.run.askStop()
	return known(stopped("stopped on request"))
}

// resumeStep makes run the run of a parked step, in the same attempt. A step made of other steps, in a
// branch with a lost lease, continues with the steps of this attempt.
func (l *live) resumeStep(s model.Step, run *model.StepRun, record core.StepExecution) {
	run.Data.Planned, run.Data.Resumed, run.Data.Before = &record, true, nil
	_, composite := s.(model.Composite)
	if record.First != record.ID || composite && l.run.part != nil {
		run.Data.Earlier = &record
	}
}

// stepRun builds the input of a step from copies, so that it shares nothing with the flow and with
// steps that run in parallel.
func (l *live) stepRun(w *walk, at *model.StepElement) *model.StepRun {
	r := l.run
	run := &model.StepRun{
		Data: model.StepContext{
			Job: r.jobNow(), JobRef: r.ref, Steps: r.progress.seen(), Last: w.last, Outcome: r.ended,
			Parts: r.progress.parts(at.Step.Name()), Visit: w.visitOf(at), MayPark: w.id == "" && (r.exec.Parent == 0 || r.resumed != nil),
			AcceptChanges: r.launcher.options.AcceptChanges,
		},
		Services: model.StepServices{
			Checkpoints: r.config.Repository, Stores: r.config.Stores, Plans: r.config.Repository, Executor: r.config.Executor,
			Jobs: r.launcher, Attempts: r.config.Repository, Owners: model.OwnersFunc(r.config.Dead), Observer: r.config.Observer,
			Stop: stepStop{r}, Spawner: model.SpawnerFunc(r.config.Spawn), Promoter: model.PromoterFunc(r.promote), Lease: r.lease,
		},
	}
	if w.group == nil {
		run.Data.Before = r.progress.unwrittenVisits()
		return run
	}
	run.Data.Group, run.Data.Planned = &w.group.Group, w.group.begun[at.Step.Name()]
	if run.Data.Planned != nil {
		w.ordinal = max(w.ordinal, run.Data.Planned.Visit.Ordinal)
	}
	delete(w.group.begun, at.Step.Name())
	return run
}

// resumed returns the attempt that a new one resumes. For a step with partitions, its figures are the
// sum of theirs: a process that died could not add them up.
func resumed(last core.StepExecution, parts map[string]core.StepExecution) *core.StepExecution {
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

// readParts reads the state of the partitions that the step ran in this same execution, in an earlier
// round of a loop.
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

func (l *live) limited(_ *walk, _ *model.StepElement, refusal *StartLimitError) (result, error) {
	return result{}, refusal
}

func (l *live) decide(ctx context.Context, w *walk, at *model.DecisionElement) (verdict string, answered bool, err error) {
	view, answer := w.view(), ""
	err = l.run.callWithGrace(ctx, func() (err error) {
		answer, err = at.Decide(ctx, view)
		return err
	})
	if err == nil {
		err = core.CheckExitCode(answer)
	}
	return answer, true, err
}

func (l *live) decided(ctx context.Context, w *walk, at *model.DecisionElement, verdict string, kept bool) {
	if l.run.resuming {
		return
	}
	l.run.config.Observer.Observe(ctx, core.Decided{
		Execution: l.run.exec.ID, JobName: l.run.job.Name, Visit: w.visitOf(at), Element: at.Name, Verdict: verdict, Kept: kept,
	})
}

func (l *live) stopped(ctx context.Context, _ *walk, at model.Element, giveUp bool) error {
	name, ok := recordOf(at)
	if !ok || !giveUp {
		return nil
	}
	h, some := l.run.progress.historyOf(name)
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
	l.run.progress.record(s)
	return nil
}

// recordOf returns the name of an element's step execution.
func recordOf(at model.Element) (string, bool) {
	switch e := at.(type) {
	case *model.StepElement:
		return e.Step.Name(), true
	case *model.FlowElement:
		return e.Name, e.AsStep
	case *model.DecisionElement, *model.SplitElement, *model.AtomicElement:
	}
	return "", false
}

func (l *live) note(w *walk, row ports.FlowVisit) {
	if w.group != nil {
		w.group.rows = append(w.group.rows, row)
		return
	}
	l.run.progress.note(row)
}

func (l *live) listed(*walk, model.Element) {}

func (w *walk) view() *core.View {
	return &core.View{Job: w.run.jobNow(), Steps: w.run.progress.seen(), Last: w.last, Outcome: w.run.ended}
}

func explain(record *core.StepExecution) string {
	if record.Error == "" || record.Status == core.StatusStopped {
		return record.Error
	}
	return fmt.Sprintf("step %s: %s", record.Name, record.Error)
}

type flowStep struct {
	name string
	walk func(ctx context.Context) (result, error)
}

func (s *flowStep) Name() string { return s.name }
func (s *flowStep) Kind() string { return "flow" }

// Composite marks that the steps inside are bounded by themselves.
func (s *flowStep) Composite() {}

func (s *flowStep) Execute(ctx context.Context, run *model.StepRun) error {
	r, err := s.walk(ctx)
	if err != nil {
		return err
	}
	return endOf(run, r.out)
}

// endOf ends a step as the flows in it did.
func endOf(run *model.StepRun, out core.Outcome) error {
	run.Step.ExitCode = out.ExitCode
	switch out.Status {
	case core.StatusCompleted:
		return nil
	case core.StatusStopped:
		return core.ErrStopped
	case core.StatusUnknown:
		if out.Settles {
			return fmt.Errorf("%w: %s", core.ErrLostCommit, out.Message)
		}
		return fmt.Errorf("%w: %s", core.ErrUnknownOutcome, out.Message)
	case core.StatusFailed, core.StatusAbandoned, core.StatusStarting, core.StatusStarted, core.StatusParked, core.StatusStopping:
	}
	return errors.New(out.Message)
}
