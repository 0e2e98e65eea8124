package repository

import (
	"context"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// takeBranch gives a worker what is not over of the branch whose part it was assigned. What a
// worker was at that is lost ends, and is run again from its last commit; what one gave back
// continues in the same attempt, as the steps of a resumed execution do, under the guards that
// takeBranch returns.
func (r *Repository) takeBranch(ctx context.Context, part core.StepExecutionID, owner core.Owner, l *ledger) ([]core.StepRef, error) {
	lost, err := r.failOpen(ctx, ofBranch, int64(part), openStep+" AND status <> 'PARKED'", lostOwner)
	if err != nil {
		return nil, err
	}
	l.noteSteps(lost, actAssign, core.Executions().Move(core.MoveEndWithJob))
	return r.resumeSteps(ctx, walkOf{ofBranch, int64(part)}, owner, l)
}

// branchIsOver is the reason that a step shows that was unfinished when its branch ended.
const branchIsOver = "the branch ended before the step did"

// endBranches ends what is not over of branches, of steps that this transaction ended: no step
// outlives its branch, and a process that still runs one commits nothing more.
func (r *Repository) endBranches(ctx context.Context, ended []stepExecution) error {
	for _, part := range ended {
		if part.ManagerID == nil || part.Flow == "" {
			continue
		}
		_, err := r.recorded(ctx, "", func(ctx context.Context, l *ledger) error {
			steps, err := r.failOpen(ctx, ofBranch, int64(part.ID), openStep, branchIsOver)
			l.noteSteps(steps, actEndStep, core.Executions().Move(core.MoveEndWithJob))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
