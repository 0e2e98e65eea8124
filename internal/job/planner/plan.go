// Package planner plans a launch: it walks the flow through a port that writes nothing, and returns what
// each element would do (rule F6).
//
// It imports core, the journal and the walk.
package planner

import (
	"context"
	"slices"

	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/job/walk"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Plan is the prediction of a launch: the walk itself, through a port that acts on nothing (rule F5).
// It holds while the execution that it read is the newest of its instance and has this epoch.
type Plan struct {
	Execution core.JobExecutionID // the newest of the instance; 0 means none
	Epoch     int64
	Entries   []Entry
	// Limit is the start limit that fails the execution before a step begins; nil means that no limit
	// is reached as far as the path is certain.
	Limit *walk.StartLimitError
	// Outcome is the outcome of the flow; nil means that it depends on the steps that run.
	Outcome *core.Outcome
}

// Entry is the act of a launch at one element of the flow.
type Entry struct {
	core.Visit
	// Step is the name of the step; empty for other elements. Kind is the kind of the step, or of the
	// question: decision, condition.
	Step, Kind string
	// OnWorkers means that worker processes do the work of the step.
	OnWorkers bool
	Act       Act
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
	Via []walk.Edge
	// MayRepeat means that the flow may reach the element again.
	MayRepeat bool
}

// Act is the act of a launch at an element.
type Act string

// The acts of a plan.
const (
	ActPass    Act = "pass"    // complete or given up: it does not run
	ActResume  Act = "resume"  // run from where its last attempt ended
	ActRun     Act = "run"     // run for the first time, or once more in the attempt
	ActRepeat  Act = "repeat"  // run from its beginning though it ran before
	ActSkip    Act = "skip"    // not run, or not entered: its condition does not hold
	ActAsk     Act = "ask"     // a decision, or the condition of an element without a step, is asked
	ActStop    Act = "stop"    // the flow stops here
	ActLimit   Act = "limit"   // its start_limit is reached, which fails the execution
	ActFinally Act = "finally" // run at the end, whatever the outcome
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

// Oracle answers the open questions of a plan: for a visit, how a step ended, the answer or error of a
// decision, whether a condition held. ok is false if it does not know either. A step ends before the
// group around it does.
type Oracle interface {
	Step(v core.Visit) (out core.Outcome, ok bool)
	Decision(v core.Visit) (verdict string, ok bool, err error)
	Condition(v core.Visit) (holds, ok bool)
}

// New plans the next attempt of an instance with last as its newest execution; without one, or an ID,
// it plans the first. It takes last's parameters, reads the repository, and calls no author's code but
// model.Condition.Try. oracle may be nil. The error is one of the repository.
func New(ctx context.Context, repository journal.Repository, j *model.Job, last *core.JobExecution, oracle Oracle) (*Plan, error) {
	return NewFrom(ctx, repository, j, last, nil, oracle)
}

// NewFrom is New for an attempt that begins at from; nil means a plain restart.
func NewFrom(ctx context.Context, repository journal.Repository, j *model.Job, last *core.JobExecution, from *journal.From, oracle Oracle) (*Plan, error) {
	exec := &core.JobExecution{ID: planned, JobName: j.Name, Attempt: 1, Context: core.NewExecutionContext()}
	attempt := &walk.Attempt{Journal: &journal.Journal{}, Progress: walk.NewProgress(nil)}
	d := newDry(j, exec, attempt, oracle)
	if last != nil {
		exec.Params = last.Params
	}
	if last != nil && last.ID != 0 {
		d.plan.Execution, d.plan.Epoch = last.ID, last.Epoch
		exec.InstanceID, exec.Attempt = last.InstanceID, last.Attempt+1
		if last.Context != nil {
			exec.Context = last.Context.Clone()
		}
		if err := readHistory(ctx, repository, attempt, last, from); err != nil {
			return nil, err
		}
	}
	d.walk(ctx, walk.New(attempt, d, walk.Start{Flow: j.Flow, Within: journal.AllAttempts()}))
	d.addFinally()
	return d.plan, nil
}

// IsDue reports whether a walk that has not begun would do more than pass complete elements. exec is
// its execution, and progress its own copy.
func IsDue(ctx context.Context, w *walk.Walk, j *model.Job, exec *core.JobExecution, past *journal.Journal, progress *walk.Progress) bool {
	attempt := &walk.Attempt{Journal: past, Progress: progress}
	d := newDry(j, exec, attempt, nil)
	_, err := w.Probe(attempt, d).Run(ctx)
	return err != nil || slices.ContainsFunc(d.plan.Entries, func(e Entry) bool { return e.Act != ActPass })
}

func readHistory(ctx context.Context, repository journal.Repository, attempt *walk.Attempt, last *core.JobExecution, from *journal.From) (err error) {
	var history map[string]ports.StepHistory
	if from != nil {
		attempt.Journal, history, err = from.Read(ctx, repository)
	} else {
		attempt.Journal, history, err = journal.Read(ctx, repository, last.InstanceID, last.AnewSince())
	}
	if err != nil {
		return err
	}
	for name, h := range history {
		h.Last = takenOver(h.Last)
		history[name] = h
	}
	attempt.Journal.ReviseSteps(takenOver)
	attempt.Progress = walk.NewProgress(history)
	return nil
}

func takenOver(s core.StepExecution) core.StepExecution {
	if s.Status.IsRunning() {
		s.Status, s.ExitCode = core.StatusFailed, core.ExitFailed
	}
	return s
}
