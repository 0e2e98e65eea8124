// Package planner plans a launch: it walks the flow through a port that writes
// nothing (rule F6). It imports core, the journal and the walk.
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

// Plan is the prediction of a launch, by the walk itself (rule F5). It holds
// while its execution is the instance's newest and has this epoch.
type Plan struct {
	Execution core.JobExecutionID // the newest of the instance; 0 means none
	Epoch     int64
	Entries   []Entry
	// Limit fails the execution before a step begins; nil: none as far as the
	// path is certain.
	Limit *walk.StartLimitError
	// Outcome is nil if it depends on the steps that run.
	Outcome *core.Outcome
}

// Entry is a launch's act at one element.
type Entry struct {
	core.Visit
	// Step is empty for other elements. Kind is the step's, or decision,
	// condition.
	Step, Kind string
	// OnWorkers: worker processes do the work.
	OnWorkers bool
	Act       Act
	Certainty Certainty
	// Text is the condition (CertainIf), or the deciding element
	// (CertainAfter).
	Text string
	// If is the condition with an unknown answer.
	If string
	// Before is the step's newest execution, or nil.
	Before *core.StepExecution
	// Via are the transitions to a CertainAfter entry; empty: it follows the
	// previous entry.
	Via []walk.Edge
	// MayRepeat: a loop may reach it again.
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

// They ignore stop requests, database failures and the like.
const (
	Certain Certainty = "certain"
	// If the condition holds.
	CertainIf Certainty = "if"
	// On another element's outcome.
	CertainAfter Certainty = "after"
)

// Oracle answers a plan's open questions for a visit: a step's end, a decision,
// a condition; ok is false if unknown. A step ends before the group around it
// does.
type Oracle interface {
	Step(v core.Visit) (out core.Outcome, ok bool)
	Decision(v core.Visit) (verdict string, ok bool, err error)
	Condition(v core.Visit) (holds, ok bool)
}

// New plans the attempt after last, or the first. It takes last's parameters,
// and calls no author's code but model.Condition.Try. oracle may be nil. The
// error is the repository's.
func New(ctx context.Context, repository journal.Repository, j *model.Job, last *core.JobExecution, oracle Oracle) (*Plan, error) {
	return NewFrom(ctx, repository, j, last, nil, oracle)
}

// NewFrom is New for an attempt that begins at from; may be nil.
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

// IsDue reports whether a walk would do more than pass complete elements.
// progress is its own copy.
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
