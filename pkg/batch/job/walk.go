package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// stoppedAt begins the keys of the job context that remember at which elements
// earlier executions of the instance took a `stop` transition, so that a restart
// goes on at its restart point instead of stopping there again.
const stoppedAt = "surfin.stopped_at."

// outcome is how a flow, or an element of it, ended.
type outcome struct {
	status  core.Status
	exit    string
	message string
}

// walk visits elements from the first one on, along the transitions that their
// exit codes choose (rule F1). On a restart it passes steps that completed, and
// resumes the one that did not (rule F3).
func (r *run) walk(ctx context.Context) (outcome, error) {
	at := r.job.Flow.Elements[0]
	for {
		target, repeat := r.leaveStop(at)
		if target != nil {
			at = target
			continue
		}
		out, err := r.visit(ctx, at, repeat)
		if err != nil {
			return outcome{}, err
		}
		if out.status == core.StatusStopped || out.status == core.StatusUnknown {
			return out, nil
		}
		next, ok := core.Next(at.Edges(), out.exit)
		if !ok {
			return out, nil
		}
		if next.Kind != core.TargetElement {
			return r.arrive(at, next, out)
		}
		if r.stop.requested() {
			return outcome{status: core.StatusStopped, exit: core.ExitStopped, message: "stopped on request"}, nil
		}
		if at, ok = r.job.Flow.Find(next.Name); !ok {
			return outcome{}, fmt.Errorf("next %q: no such element", next.Name)
		}
	}
}

// leaveStop answers where a restart goes on if an earlier execution stopped at
// this element: at the restart point of that transition; where it names none, or
// the element itself, the element is run again. It happens once per execution: a
// restart point before the element comes back to it.
func (r *run) leaveStop(at core.Element) (target core.Element, repeat bool) {
	key := stoppedAt + at.ElementName()
	if _, stopped := r.exec.Context.Get(key); !stopped || r.left[key] {
		return nil, false
	}
	r.left[key] = true
	t, ok := core.Next(at.Edges(), r.history[at.ElementName()].Last.ExitCode)
	if ok && t.Kind == core.TargetStop && t.Restart != "" && t.Restart != at.ElementName() {
		if target, ok = r.job.Flow.Find(t.Restart); ok {
			return target, false
		}
	}
	r.exec.Context.Delete(key)
	return nil, true
}

// arrive ends the flow at an end, fail or stop target.
func (r *run) arrive(at core.Element, target core.Target, last outcome) (outcome, error) {
	exit := func(otherwise string) string {
		if target.Exit != "" {
			return target.Exit
		}
		return otherwise
	}
	switch target.Kind {
	case core.TargetEnd:
		return outcome{status: core.StatusCompleted, exit: exit(core.ExitCompleted)}, nil
	case core.TargetFail:
		message := last.message
		if message == "" {
			message = fmt.Sprintf("step %s ended with exit code %s", at.ElementName(), last.exit)
		}
		return outcome{status: core.StatusFailed, exit: exit(core.ExitFailed), message: message}, nil
	case core.TargetStop:
		if err := r.exec.Context.Put(stoppedAt+at.ElementName(), true); err != nil {
			return outcome{}, err
		}
		return outcome{status: core.StatusStopped, exit: core.ExitStopped, message: target.Message}, nil
	case core.TargetElement:
	}
	return outcome{}, fmt.Errorf("element %s: a transition leads to %q", at.ElementName(), target.Kind)
}

// visit runs one element, or passes it.
func (r *run) visit(ctx context.Context, at core.Element, repeat bool) (outcome, error) {
	switch e := at.(type) {
	case *core.StepElement:
		return r.visitStep(ctx, e, repeat)
	}
	return outcome{}, fmt.Errorf("element %s: a %T cannot be run", at.ElementName(), at)
}

func (r *run) visitStep(ctx context.Context, e *core.StepElement, repeat bool) (outcome, error) {
	name := e.Step.Name()
	before, known := r.history[name]
	completed := known && before.Last.Status == core.StatusCompleted
	if completed && !repeat && !e.AllowStartIfComplete {
		r.steps[name] = before.Last
		r.config.Observer.Observe(ctx, core.StepPassed{Step: before.Last})
		return outcome{status: core.StatusCompleted, exit: before.Last.ExitCode}, nil
	}
	if e.StartLimit > 0 && before.Attempts >= e.StartLimit {
		return outcome{}, fmt.Errorf("step %s was attempted %d times, its start_limit is %d: %w", name, before.Attempts, e.StartLimit, core.ErrStartLimit)
	}
	step := &core.StepRun{
		Job: r.exec, JobRef: r.ref, Checkpoints: r.config.Repository, Stores: r.config.Stores, Observer: r.config.Observer,
		Stop: r.stop.channel, Asked: r.stop.asked, Steps: r.steps,
	}
	if known && !completed {
		step.Earlier = &before.Last
	}
	record, err := r.config.Executor.Execute(ctx, e.Step, step)
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, core.ErrLostOwner) {
			err = errors.Join(cause, err)
		}
		return outcome{}, err
	}
	before.Last, before.Attempts = *record, before.Attempts+1
	if r.history == nil {
		r.history = map[string]core.StepHistory{}
	}
	r.history[name], r.steps[name] = before, *record
	return outcome{status: record.Status, exit: record.ExitCode, message: r.explain(record)}, nil
}

func (r *run) explain(record *core.StepExecution) string {
	if record.Error == "" || record.Status == core.StatusStopped {
		return record.Error
	}
	return fmt.Sprintf("step %s: %s", record.Name, record.Error)
}
