package repository

import (
	"context"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// takeBranch gives a branch's unfinished steps to the assigned worker. A lost worker's step ends and runs
// again from its last commit; one given back continues in the same attempt.
func (r *Repository) takeBranch(ctx context.Context, part core.StepExecutionID, owner core.Owner, l *ledger) ([]ports.StepRef, error) {
	lost, err := r.failOpen(ctx, ofBranch, int64(part), openStep+" AND status <> 'PARKED'", lostOwner)
	if err != nil {
		return nil, err
	}
	l.noteSteps(lost, actAssign, ports.Executions().Move(ports.MoveEndWithJob))
	return r.resumeSteps(ctx, walkOf{ofBranch, int64(part)}, owner, l)
}

const branchIsOver = "the branch ended before the step did"

// No step outlives its branch; a process that still runs one commits nothing.
func (r *Repository) endBranches(ctx context.Context, ended []stepExecution) error {
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
