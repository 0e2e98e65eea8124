package job

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// visit runs one element, or passes it. repeat says that it is run again although
// it completed.
func (w *walk) visit(ctx context.Context, at core.Element, repeat bool) (core.Outcome, error) {
	w.verdicts = nil
	again := w.memory.visit(at.ElementName())
	if again {
		if err := w.beginRound(ctx, at); err != nil {
			return core.Outcome{}, err
		}
	}
	switch e := at.(type) {
	case *core.StepElement:
		return w.visitStep(ctx, e, repeat, again)
	case *core.FlowElement:
		if e.AsStep {
			return w.visitStep(ctx, w.asStep(e), repeat, again)
		}
	case *core.DecisionElement, *core.SplitElement, *core.AtomicElement:
	}
	holds, err := w.admits(ctx, at, again)
	if err != nil {
		return core.Outcome{}, err
	}
	if !holds {
		return core.Outcome{Status: core.StatusCompleted, ExitCode: core.ExitNoop}, nil
	}
	switch e := at.(type) {
	case *core.DecisionElement:
		return w.decide(ctx, e, again)
	case *core.SplitElement:
		return w.split(ctx, e)
	case *core.FlowElement:
		return w.inner(ctx, e, e.Flow)
	case *core.AtomicElement:
		return w.atomic(ctx, e)
	case *core.StepElement: // above
	}
	return core.Outcome{}, fmt.Errorf("element %s: a %T cannot be run", at.ElementName(), at)
}

// inner walks a flow inside of the element.
func (w *walk) inner(ctx context.Context, at core.Element, flow core.Flow) (core.Outcome, error) {
	sub := w.sub(at, flow, w.group)
	out, err := sub.walk(ctx)
	w.leave(at, sub)
	return out, err
}

func (w *walk) sub(at core.Element, flow core.Flow, group *attempted) *walk {
	return &walk{run: w.run, flow: flow, last: w.last, group: group, round: round{
		base: w.base(at), looped: w.round.looped || w.flow.Leads(at.ElementName(), at.ElementName()),
	}}
}

// leave takes over what the flows inside of an element have come to.
func (w *walk) leave(at core.Element, flows ...*walk) {
	since := w.round.base
	for _, sub := range flows {
		w.verdicts = append(w.verdicts, sub.verdicts...)
		if sub.last != nil && (w.last == nil || sub.last.ID > w.last.ID) {
			w.last = sub.last
		}
		since = max(since, sub.round.since, sub.round.base)
	}
	w.behind(at, since)
}

// visitStep runs a step, or passes it: what an earlier execution completed, or gave
// up. Reached again in one execution, by a loop, it runs again.
func (w *walk) visitStep(ctx context.Context, e *core.StepElement, repeat, again bool) (core.Outcome, error) {
	name := e.Step.Name()
	before, known := w.memory.of(name)
	earlier := known && w.isOver(e, before.Last) // in an earlier round of a loop
	over := known && isDone(before.Last)
	if w.passes(e, before, again || repeat) {
		w.memory.pass(before.Last)
		w.last = &before.Last
		w.behind(e, w.since(e, before.Last))
		w.config.Observer.Observe(ctx, core.StepPassed{Execution: w.exec.ID, Step: before.Last})
		return passedOutcome(before.Last), nil
	}
	holds, err := w.admitsStep(ctx, e, known && !over)
	if err != nil || !holds {
		return w.noop(ctx, e, err)
	}
	if e.StartLimit != nil && before.Attempts >= *e.StartLimit {
		return core.Outcome{}, fmt.Errorf("step %s was attempted %d times, its start_limit is %d: %w", name, before.Attempts, *e.StartLimit, core.ErrStartLimit)
	}
	if known && !over && (again || earlier) && w.group == nil {
		if err := w.noteRound(ctx, e); err != nil {
			return core.Outcome{}, err
		}
	}
	step := w.stepRun(e.Step)
	if _, composite := e.Step.(core.Composite); composite && again {
		if err := w.refresh(ctx, e.Step.Name(), step.Data.Parts); err != nil {
			return core.Outcome{}, err
		}
	}
	if known && !over {
		step.Data.Earlier = goneOnWith(before.Last, step.Data.Parts)
	}
	out, err := w.execute(ctx, e, step)
	if err == nil && known && !again && !earlier {
		w.behind(e, w.since(e, before.Last)) // still the round of the attempt before
	}
	return out, err
}

// goneOnWith is the attempt that a new one goes on with. What a step with partitions
// did is what they did: a process that died could not sum it up.
func goneOnWith(last core.StepExecution, parts map[string]core.StepExecution) *core.StepExecution {
	if len(parts) == 0 {
		return &last
	}
	last.Before, last.Counters, last.InHand = core.Counters{}, core.Counters{}, core.Counters{}
	for _, part := range parts {
		if part.ID < last.First { // of work that was completed before
			continue
		}
		last.Counters = last.Counters.Add(part.Carried())
	}
	return &last
}

// refresh reads what became of the partitions that the step ran in this very
// execution, in an earlier round of a loop.
func (w *walk) refresh(ctx context.Context, step string, parts map[string]core.StepExecution) error {
	records, err := w.config.Repository.Steps(ctx, w.exec.ID)
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

// passedOutcome is what a passed step ended with; a step that was given up had
// failed.
func passedOutcome(s core.StepExecution) core.Outcome {
	out := core.Outcome{Status: core.StatusCompleted, ExitCode: s.ExitCode}
	if s.Status == core.StatusAbandoned {
		out.Status, out.Step, out.Message = core.StatusFailed, s.Name, explain(&s)
	}
	return out
}

// isDone reports whether a step is not gone on with.
func isDone(s core.StepExecution) bool {
	return s.Status == core.StatusCompleted || s.Status == core.StatusAbandoned
}

// passes reports whether the step is passed.
func (w *walk) passes(e *core.StepElement, before core.StepHistory, repeat bool) bool {
	last := before.Last
	if last.ID == 0 || !isDone(last) || repeat || w.isOver(e, last) {
		return false
	}
	return w.memory.isReplayed(last) || !e.AllowStartIfComplete && last.JobExecutionID != w.exec.ID
}

// execute runs the step and notes how it ended.
func (w *walk) execute(ctx context.Context, e *core.StepElement, step *core.StepRun) (core.Outcome, error) {
	record, err := w.config.Executor.Execute(ctx, e.Step, step)
	if w.group != nil {
		w.group.note(step)
	}
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, core.ErrLostOwner) {
			err = errors.Join(cause, err)
		}
		return core.Outcome{}, err
	}
	w.memory.ran(*record)
	if w.group != nil {
		w.group.records = append(w.group.records, *record)
	}
	w.last = record
	w.behind(e, w.since(e, *record))
	out := core.Outcome{Status: record.Status, ExitCode: record.ExitCode, Message: explain(record)}
	if record.Status != core.StatusCompleted {
		out.Step = record.Name
	}
	return out, nil
}

func explain(record *core.StepExecution) string {
	if record.Error == "" || record.Status == core.StatusStopped {
		return record.Error
	}
	return fmt.Sprintf("step %s: %s", record.Name, record.Error)
}

// noop records a step whose condition does not hold: it completes without having
// been run, and a restart passes it. In a group nothing is recorded, because its
// record would be the group's transaction's: the condition is asked again.
func (w *walk) noop(ctx context.Context, e *core.StepElement, failure error) (core.Outcome, error) {
	out := core.Outcome{Status: core.StatusCompleted, ExitCode: core.ExitNoop}
	if failure != nil {
		return core.Outcome{}, failure
	}
	if w.group != nil {
		return out, nil
	}
	record, err := w.config.Repository.StartStep(ctx, w.ref, core.StepStart{Name: e.Step.Name()})
	if err != nil {
		return core.Outcome{}, fmt.Errorf("step %s: %w", e.Step.Name(), err)
	}
	ref := core.StepRef{ID: record.ID, Owner: record.Owner, Epoch: record.Epoch}
	if _, err := w.config.Repository.EndStep(ctx, ref, core.StepChange{To: core.StatusCompleted, ExitCode: core.ExitNoop}); err != nil {
		return core.Outcome{}, fmt.Errorf("step %s: %w", e.Step.Name(), err)
	}
	record.Status, record.ExitCode = core.StatusCompleted, core.ExitNoop
	w.memory.ran(*record)
	w.last = record
	w.behind(e, record.ID)
	return out, nil
}

// stepRun is what a step is told: copies, so that it shares nothing with the flow
// and with steps beside it.
func (w *walk) stepRun(s core.Step) *core.StepRun {
	step := &core.StepRun{
		Data: core.StepContext{
			Job: w.jobNow(), JobRef: w.ref, Steps: w.memory.seen(), Last: w.last, Outcome: w.ended, Parts: w.memory.parts(s.Name()),
		},
		Services: core.StepServices{
			Checkpoints: w.config.Repository, Stores: w.config.Stores, Plans: w.config.Repository, Executor: w.config.Executor,
			Jobs: w.launcher, Attempts: w.config.Repository, Owners: core.OwnersFunc(w.config.Dead), Observer: w.config.Observer,
			Stop: stepStop{w.run}, Spawner: core.SpawnerFunc(w.config.Spawn), Promoter: core.PromoterFunc(w.promote),
		},
	}
	if w.group != nil {
		step.Data.Group, step.Data.Planned = &w.group.Group, w.group.begun[s.Name()]
		delete(w.group.begun, s.Name())
	}
	return step
}

// view is what conditions and deciders see.
func (w *walk) view() *core.View {
	return &core.View{Job: w.jobNow(), Steps: w.memory.seen(), Last: w.last, Outcome: w.ended}
}

// asStep makes a step of a flow, with a record of its own.
func (w *walk) asStep(e *core.FlowElement) *core.StepElement {
	s := &flowStep{name: e.Name, walk: func(ctx context.Context) (core.Outcome, error) { return w.inner(ctx, e, e.Flow) }}
	return &core.StepElement{Step: s, When: e.When, Next: e.Next, AllowStartIfComplete: e.AllowStartIfComplete, StartLimit: e.StartLimit}
}

// flowStep is a flow as a step.
type flowStep struct {
	name string
	walk func(ctx context.Context) (core.Outcome, error)
}

func (s *flowStep) Name() string { return s.name }
func (s *flowStep) Kind() string { return "flow" }

// Composite says that the steps inside are bounded by themselves.
func (s *flowStep) Composite() {}

func (s *flowStep) Execute(ctx context.Context, run *core.StepRun) error {
	out, err := s.walk(ctx)
	if err != nil {
		return err
	}
	run.Step.ExitCode = out.ExitCode
	switch out.Status {
	case core.StatusCompleted:
		return nil
	case core.StatusStopped:
		return core.ErrStopped
	case core.StatusUnknown:
		return fmt.Errorf("%w: %s", core.ErrUnknownOutcome, out.Message)
	case core.StatusFailed, core.StatusAbandoned, core.StatusStarting, core.StatusStarted, core.StatusParked, core.StatusStopping:
	}
	return errors.New(out.Message)
}
