package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/job/journal"
	"github.com/surfin-batch/surfin/internal/job/walk"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// BranchRequest holds the inputs of Launcher.Branch other than the part.
type BranchRequest struct {
	// Since is the clock before the part was requested.
	Since time.Duration
	// Release gives the part back between two steps, or within one after a
	// commit; composite steps, flows and groups finish first. It may be nil.
	Release  <-chan struct{}
	Executor func(transitions ports.Transitions) model.StepExecutor
}

// Branch walks an assigned branch of a split from where an earlier process
// came, and ends the part; nil if it gave it back, on request or because the
// lease could not be renewed. The steps belong to the execution, under the
// part's guard (ports.JobRef).
func (l *Launcher) Branch(ctx context.Context, j *model.Job, a *ports.Assignment, o BranchRequest) (*core.StepExecution, error) {
	var shared sharedSplit
	if err := json.Unmarshal(a.Shared, &shared); err != nil {
		return nil, fmt.Errorf("part %s: read the data of its split: %w", a.Step.Name, err)
	}
	flow, err := branchFlow(j, a)
	if err != nil {
		return nil, err
	}
	index := ports.PartitionOf(a.Manager.Name, a.Step).Index
	if index >= len(shared.Walks) {
		return nil, fmt.Errorf("part %s: its split has only %d branches", a.Step.Name, len(shared.Walks))
	}
	r := l.branchRun(j, a, &shared, o)
	var out core.Outcome
	var end branchResult
	err = r.whileOwning(ctx, func(ctx, _ context.Context) (err error) {
		out, end, err = r.walkBranch(ctx, flow, a, &shared, shared.Walks[index])
		if r.wasStopped(ctx, err) {
			out, err = walk.Stopped("stopped on request").Outcome, nil
		}
		return err
	})
	switch {
	case errors.Is(err, core.ErrLostOwner):
		return nil, fmt.Errorf("part %s: %w", a.Step.Name, err)
	case errors.Is(err, ports.ErrParked), r.lease.Err() != nil:
		return nil, r.releasePart(ctx)
	case err != nil:
		out, end.Broken = walk.Failed(err), true
	}
	return r.endBranch(ctx, out, end)
}

func branchFlow(j *model.Job, a *ports.Assignment) (model.Flow, error) {
	at := findSplit(j.Flow, a.Manager.Name)
	if index := ports.PartitionOf(a.Manager.Name, a.Step).Index; at != nil && index < len(at.Branches) {
		return at.Branches[index], nil
	}
	return model.Flow{}, fmt.Errorf("job %s has no split %s with the branch of part %s", j.Name, a.Manager.Name, a.Step.Name)
}

func findSplit(flow model.Flow, name string) *model.SplitElement {
	for _, at := range flow.Elements {
		if split, is := at.(*model.SplitElement); is && split.Name == name {
			return split
		}
		for _, inner := range model.Flows(at) {
			if found := findSplit(inner, name); found != nil {
				return found
			}
		}
	}
	return nil
}

func (l *Launcher) branchRun(j *model.Job, a *ports.Assignment, shared *sharedSplit, o BranchRequest) *run {
	exec := a.Job.Clone()
	exec.Status = core.StatusStarted // the execution is parked, but this part of it works
	exec.Context = core.NewExecutionContext()
	if at := shared.Data.Job; at != nil && at.Context != nil { // including values that are not stored
		exec.Context = at.Context
	}
	if a.Job.Context != nil {
		exec.Context.Refresh(a.Job.Context)
	}
	r := l.With(Options{AcceptChanges: shared.Data.AcceptChanges}).newRun(j, ports.Launched{Execution: &exec}, o.Since, nil)
	r.ref = ports.JobRef{ID: exec.ID, Owner: a.Step.Owner, Epoch: a.Step.Epoch, Branch: a.Step.ID}
	r.part, r.branchLog, r.changedSteps = &a.Step, a.Step.Visit.Flow, shared.NewDefinition
	r.stop.release = o.Release
	r.config.Executor = o.Executor(&endFilter{Transitions: r.config.Repository.Transitions, lease: r.lease})
	r.sample()
	return r
}

func (r *run) partRef() ports.StepRef {
	return ports.StepRef{ID: r.ref.Branch, Owner: r.ref.Owner, Epoch: r.ref.Epoch}
}

// A step that failed because its part's lease could not be renewed is not
// recorded: giving the part back parks it, losing the part loses it.
type endFilter struct {
	ports.Transitions
	lease model.Lease
}

func (c *endFilter) EndStep(ctx context.Context, ref ports.StepRef, change ports.StepChange) (core.Answer, error) {
	if change.To == core.StatusFailed && c.lease.Err() != nil {
		return core.Applied, nil
	}
	return c.Transitions.EndStep(ctx, ref, change)
}

func (r *run) walkBranch(ctx context.Context, flow model.Flow, a *ports.Assignment, shared *sharedSplit, from branchStart) (core.Outcome, branchResult, error) {
	past, history, err := journal.Read(ctx, r.config.Repository, r.exec.InstanceID, r.exec.AnewSince())
	if err != nil {
		return core.Outcome{}, branchResult{}, err
	}
	r.attempt.OnBranch, r.attempt.Waited = true, resumedSteps(history, a.Resumed)
	r.attempt.Journal, r.attempt.Progress = past, walk.NewProgress(history)
	for _, s := range shared.Data.Steps {
		r.attempt.Progress.RecordPassed(s)
	}
	w := walk.New(r.attempt, &live{run: r}, walk.Start{
		Flow: flow, ID: r.branchLog, Last: shared.Data.Last, Within: journal.Attempts{From: from.From, To: from.To},
		HasEnd: from.Ended, IsEarlierRound: from.History, Looped: from.Looped, OnWorkers: true,
	})
	var end walk.Result
	err = panics.Guard(func() (err error) {
		end, err = w.Run(ctx)
		return err
	})
	known := branchResult{Step: end.Outcome.Step, Ran: w.Ran}
	if w.Last != nil {
		known.Last = w.Last.ID
	}
	for name, s := range r.attempt.Progress.Steps() {
		if before, there := shared.Data.Steps[name]; !there || before.ID != s.ID {
			known.Steps = append(known.Steps, s.ID)
		}
	}
	slices.Sort(known.Steps)
	return end.Outcome, known, err
}

// Another worker may have taken them since; this process does not hold its
// guards.
func resumedSteps(history map[string]ports.StepHistory, refs []ports.StepRef) (steps []core.StepExecution) {
	for name, h := range history {
		for _, ref := range refs {
			if h.Last.ID == ref.ID {
				h.Last.Owner, h.Last.Epoch = ref.Owner, ref.Epoch
				history[name] = h
				steps = append(steps, h.Last)
			}
		}
	}
	return steps
}

func (r *run) releasePart(ctx context.Context) error {
	err := r.lease.Record(context.WithoutCancel(ctx), func(ctx context.Context) error {
		return r.config.Repository.ReleasePartition(ctx, r.partRef(), "")
	})
	if err != nil {
		return fmt.Errorf("give part %s back: %w", r.part.Name, err)
	}
	return nil
}

func (r *run) endBranch(ctx context.Context, out core.Outcome, end branchResult) (*core.StepExecution, error) {
	text, err := json.Marshal(end)
	if err != nil {
		return nil, fmt.Errorf("part %s: %w", r.part.Name, err)
	}
	change := ports.StepChange{
		To: out.Status, ExitCode: out.ExitCode, Error: out.Message, Settles: out.Settles, Out: map[string]any{branchResultKey: string(text)}, Closed: true,
		Visits: r.attempt.Progress.Unwritten(), Context: r.part.Context, Part: true,
	}
	err = r.lease.Record(context.WithoutCancel(ctx), func(ctx context.Context) error {
		_, err := r.config.Repository.EndStep(ctx, r.partRef(), change)
		return err
	})
	ended := r.part.Clone()
	ended.Status, ended.ExitCode, ended.Error, ended.Out = change.To, change.ExitCode, change.Error, change.Out
	if err != nil {
		r.config.Observer.Observe(ctx, core.EndNotRecorded{
			Execution: r.exec.ID, JobName: r.job.Name, Step: r.part.Name, StepID: r.part.ID, To: out.Status, Err: err,
		})
		return nil, fmt.Errorf("part %s: record its end: %w", r.part.Name, err)
	}
	return &ended, nil
}
