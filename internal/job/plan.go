package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Plan is the prediction of a launch: the walk itself, through a port that acts on nothing (rule F5).
// It holds while the execution that it read is the newest of its instance and has this epoch.
type Plan struct {
	Execution core.JobExecutionID // the newest of the instance; 0 means none
	Epoch     int64
	Entries   []PlanEntry
	// Limit is the start limit that fails the execution before a step begins; nil means that no limit
	// is reached as far as the path is certain.
	Limit *StartLimitError
	// Outcome is the outcome of the flow; nil means that it depends on the steps that run.
	Outcome *core.Outcome
}

// PlanEntry is the act of a launch at one element of the flow.
type PlanEntry struct {
	core.Visit
	// Step is the name of the step; empty for other elements. Kind is the kind of the step, or of the
	// question: decision, condition.
	Step, Kind string
	// OnWorkers means that worker processes do the work of the step.
	OnWorkers bool
	Act       PlanAct
	Certainty Certainty
	// Text is the condition of an entry that is CertainIf, or the element that decides one that is
	// CertainAfter.
	Text string
	// If is the condition with an unknown answer, also of an entry that is CertainAfter.
	If string
	// Before is the newest execution of the step, or nil.
	Before *core.StepExecution
	// Via are the transitions that may lead to an entry that is CertainAfter; empty means that it
	// follows the previous entry.
	Via []PlanEdge
	// MayRepeat means that the flow may reach the element again.
	MayRepeat bool
}

// PlanEdge is a transition after an outcome that a plan does not know.
type PlanEdge struct {
	From string
	// On is the pattern of the exit code of From; core.ExitCompleted stands for every success; empty
	// means that the outcome of From is known.
	On string
	// OtherSuccess means that On stands for each success except COMPLETED, which leads elsewhere.
	OtherSuccess bool
}

// PlanAct is the act of a launch at an element.
type PlanAct string

// The acts of a plan.
const (
	PlanPass    PlanAct = "pass"    // complete or given up: it does not run
	PlanResume  PlanAct = "resume"  // run from where its last attempt ended
	PlanRun     PlanAct = "run"     // run for the first time, or once more in the attempt
	PlanRepeat  PlanAct = "repeat"  // run from its beginning though it ran before
	PlanSkip    PlanAct = "skip"    // not run, or not entered: its condition does not hold
	PlanAsk     PlanAct = "ask"     // a decision, or the condition of an element without a step, is asked
	PlanStop    PlanAct = "stop"    // the flow stops here
	PlanLimit   PlanAct = "limit"   // its start_limit is reached, which fails the execution
	PlanFinally PlanAct = "finally" // run at the end, whatever the outcome
)

// Certainty says how sure an entry of a plan is.
type Certainty string

// The degrees of certainty. They ignore stop requests, database failures and the like.
const (
	Certain Certainty = "certain"
	// CertainIf: if the condition holds.
	CertainIf Certainty = "if"
	// CertainAfter: it depends on the outcome of another element.
	CertainAfter Certainty = "after"
)

// StartLimitError refuses a step that was attempted as often as its start limit allows;
// core.ErrStartLimit is in its chain.
type StartLimitError struct {
	Step            string
	Attempts, Limit int
}

// Error names the step, its attempts and its limit.
func (e *StartLimitError) Error() string {
	return fmt.Sprintf("step %s was attempted %d times, its start_limit is %d: %v", e.Step, e.Attempts, e.Limit, core.ErrStartLimit)
}

// Unwrap returns core.ErrStartLimit.
func (e *StartLimitError) Unwrap() error { return core.ErrStartLimit }

// Oracle answers the open questions of a plan: for a visit, how a step ended, the answer or error of a
// decision, whether a condition held. ok is false if it does not know either. A step ends before the
// group around it does.
type Oracle interface {
	Step(v core.Visit) (out core.Outcome, ok bool)
	Decision(v core.Visit) (verdict string, ok bool, err error)
	Condition(v core.Visit) (holds, ok bool)
}

// NewPlan plans the next attempt of an instance with last as its newest execution. If last is nil or
// has no ID, it plans the first one. The parameters are last's. It reads the repository, and calls no
// author's code but model.Condition.Try. oracle may be nil. The error is one of the repository.
func NewPlan(ctx context.Context, repository ports.JobRepository, j *model.Job, last *core.JobExecution, oracle Oracle) (*Plan, error) {
	return NewPlanFrom(ctx, repository, j, last, nil, oracle)
}

// NewPlanFrom is NewPlan for an attempt that begins at from; nil means a plain restart.
func NewPlanFrom(ctx context.Context, repository ports.JobRepository, j *model.Job, last *core.JobExecution, from *From, oracle Oracle) (*Plan, error) {
	d := newDry(oracle)
	r := &run{
		job: j, exec: &core.JobExecution{ID: planned, JobName: j.Name, Attempt: 1, Context: core.NewExecutionContext()},
		progress: newProgress(nil), journal: &journal{},
	}
	if last != nil {
		r.exec.Params = last.Params
	}
	if last != nil && last.ID != 0 {
		d.plan.Execution, d.plan.Epoch = last.ID, last.Epoch
		r.exec.InstanceID, r.exec.Attempt = last.InstanceID, last.Attempt+1
		if last.Context != nil {
			r.exec.Context = last.Context.Clone()
		}
		history, err := r.history(ctx, repository, last, from)
		if err != nil {
			return nil, fmt.Errorf("read the history of the instance: %w", err)
		}
		for name, h := range history {
			h.Last = takenOver(h.Last)
			history[name] = h
		}
		for id, s := range r.journal.steps {
			r.journal.steps[id] = takenOver(s)
		}
		r.progress = newProgress(history)
	}
	w := &walk{run: r, port: d, flow: j.Flow, log: r.journal.log(j.Flow, "", allAttempts())}
	d.end(ctx, w)
	d.planFinally(r)
	return d.plan, nil
}

// history reads the history that an attempt has of earlier ones.
func (r *run) history(ctx context.Context, repository ports.JobRepository, last *core.JobExecution, from *From) (history map[string]ports.StepHistory, err error) {
	if from != nil {
		history = map[string]ports.StepHistory{}
		r.journal, err = from.journalOf(ctx, repository, history)
		return history, err
	}
	if history, err = repository.LastSteps(ctx, last.InstanceID, last.AnewSince()); err != nil {
		return nil, err
	}
	r.journal, err = newJournal(ctx, repository, r.exec, history)
	return history, err
}

// end walks the flow. An error that ends the walk fails the execution.
func (d *dry) end(ctx context.Context, w *walk) {
	end, err := w.walk(ctx)
	if err != nil {
		end = known(failed(err))
	}
	isLimited := errors.As(err, new(*StartLimitError)) // regardless of the other branches of a split
	if !isLimited && (end.unknown != "" || w.after != "") {
		return
	}
	d.plan.Outcome = &end.out
	if end.out.Status == core.StatusFailed {
		d.plan.Limit = d.limit
	}
}

// takenOver returns the step as a launch finds it that takes over a lost execution.
func takenOver(s core.StepExecution) core.StepExecution {
	if s.Status.IsRunning() {
		s.Status, s.ExitCode = core.StatusFailed, core.ExitFailed
	}
	return s
}
