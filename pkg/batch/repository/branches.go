package repository

import (
	"context"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// takeBranch gives the unfinished steps of a branch to the worker that was assigned the branch's
// partition. A step of a lost worker ends and runs again from its last commit. A step that was
// given back continues in the same attempt, as the steps of a resumed execution do, under the
// guards that takeBranch returns.
func (r *assignments) takeBranch(ctx context.Context, part core.StepExecutionID, owner core.Owner, l *ledger) ([]ports.StepRef, error) {
	lost, err := r.failOpen(ctx, ofBranch, int64(part), openStep+" AND status <> 'PARKED'", lostOwner)
	if err != nil {
		return nil, err
	}
	l.noteSteps(lost, actAssign, ports.Executions().Move(ports.MoveEndWithJob))
	return r.resumeSteps(ctx, walkOf{ofBranch, int64(part)}, owner, l)
}

// branchIsOver is the reason shown by a step that was unfinished when its branch ended.
const branchIsOver = "the branch ended before the step did"

// endBranches ends the unfinished steps of the branches that this transaction ended: no step
// outlives its branch, and a process that still runs one commits nothing more.
func (r *endings) endBranches(ctx context.Context, ended []stepExecution) error {
	for _, part := range ended {
		if part.ManagerID == nil || part.Flow == "" {
			continue
		}
		_, err := r.recorded(ctx, "", func(ctx context.Context, l *ledger) error {
			steps, err := r.failOpen(ctx, ofBranch, int64(part.ID), openStep, branchIsOver)
			l.noteSteps(steps, actEndStep, ports.Executions().Move(ports.MoveEndWithJob))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
