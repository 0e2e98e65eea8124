package repository

import (
	"context"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Reclaim implements ports.CheckpointStore with one guarded UPDATE, which touches no indexed column.
// It waits for the row as long as ctx allows. Then the transaction with the failed COMMIT has
// ended, and because of the new epoch nothing of it can commit later (rule C10). If the reply is
// lost it can be repeated: the row records that this very transition raised the epoch.
func (r *ownCheckpoints) Reclaim(ctx context.Context, ref ports.StepRef) (ports.StepRef, ports.Checkpoint, error) {
	return r.store.raiseEpoch(ctx, ref, ports.MoveReclaim)
}

// Fence implements ports.Transitions. Reclaim protects an attempt that continues; Fence does the
// same against one that was abandoned: no write with an older epoch is accepted any more (rule L8).
func (r *transitions) Fence(ctx context.Context, ref ports.StepRef) (ports.StepRef, ports.Checkpoint, error) {
	return r.store.raiseEpoch(ctx, ref, ports.MoveFence)
}

func (s *store) raiseEpoch(ctx context.Context, ref ports.StepRef, move string) (raised ports.StepRef, found ports.Checkpoint, err error) {
	raised, found, err = s.tryRaiseEpoch(ctx, ref, move)
	if err != nil {
		return ref, ports.Checkpoint{}, fmt.Errorf("%s step execution %d: %w", move, ref.ID, err)
	}
	return raised, found, nil
}

func (s *store) tryRaiseEpoch(ctx context.Context, ref ports.StepRef, move string) (ports.StepRef, ports.Checkpoint, error) {
	m := ports.Executions().Move(move)
	var rows []stepExecution
	err := s.transact(ctx, func(ctx context.Context) error {
		return s.scan(ctx, &rows, "UPDATE {step_execution} SET epoch = epoch + 1, last_move = ?, last_epoch = ? WHERE id = ? AND "+
			"owner = ? AND (epoch = ? OR last_move IN ? AND last_epoch = ?) AND status IN ? RETURNING "+
			strings.Join(counterColumns(), ", ")+", position, context, epoch",
			move, ref.Epoch, ref.ID, ref.Owner.String(), ref.Epoch, repeatable(move), ref.Epoch, m.From)
	})
	if err == nil && len(rows) == 0 {
		err = core.ErrLostOwner
	}
	if err != nil {
		return ref, ports.Checkpoint{}, err
	}
	record, err := rows[0].record()
	if err != nil {
		return ref, ports.Checkpoint{}, err
	}
	ref.Epoch = record.Epoch
	return ref, ports.Checkpoint{Counters: record.Counters, Position: record.Position, Context: record.Context}, nil
}

// repeatable returns the transitions after which one that raises the epoch may be made from the
// older epoch: itself, if its reply was lost, and for a fence also a reclaim.
func repeatable(move string) []string {
	if move == ports.MoveFence {
		return []string{ports.MoveFence, ports.MoveReclaim}
	}
	return []string{move}
}
