package repository

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// ownCheckpoints implements ports.CheckpointStore for the steps that work in the repository's database.
type ownCheckpoints struct {
	store *store
	// texts are the two texts of the statement that is executed per chunk, without and with the
	// execution context.
	texts [2]string
}

func newOwnCheckpoints(s *store) *ownCheckpoints {
	c := &ownCheckpoints{store: s}
	c.texts = [2]string{c.checkpointSQL(false), c.checkpointSQL(true)}
	return c
}

// Database returns the name of the repository's database.
func (r *ownCheckpoints) Database() string { return r.store.db.Name() }

// Checkpoint implements ports.CheckpointStore with exactly one statement, in the transaction that
// ctx must carry (tx.ErrNoTransaction otherwise), and one more for every batch of skipped items. A
// position above ports.MaxPositionBytes or a context above core.MaxContextBytes is refused before
// that (core.ErrContextTooLarge).
//
// The context is written only if it changed. Only the caller knows whether the transaction
// committed, so it marks the context as stored: call Stored after the commit.
func (r *ownCheckpoints) Checkpoint(ctx context.Context, ref ports.StepRef, c ports.Checkpoint) error {
	t, ok := tx.From(ctx, r.store.db.Name())
	if !ok {
		return fmt.Errorf("checkpoint of step execution %d in database %s: %w", ref.ID, r.store.db.Name(), tx.ErrNoTransaction)
	}
	if err := checkPosition(c.Position); err != nil {
		return fmt.Errorf("checkpoint of step execution %d: %w", ref.ID, err)
	}
	text, write, err := encodeContext(c.Context)
	if err != nil {
		return fmt.Errorf("checkpoint of step execution %d: %w", ref.ID, err)
	}
	nonce, err := t.Fence()
	if err != nil {
		return fmt.Errorf("checkpoint of step execution %d: %w", ref.ID, err)
	}
	args := append(counterValues(c.Counters), string(c.Position), int64(ref.ID), ref.Owner.String(), ref.Epoch, string(core.StatusStarted))
	statement := r.texts[0]
	if write {
		statement, args = r.texts[1], append(args, r.store.mask(text))
	}
	args = r.store.fenced(args, nonce)
	var stop bool
	err = t.Conn().QueryRowContext(ctx, statement, args...).Scan(&stop)
	if errors.Is(err, sql.ErrNoRows) {
		err = r.store.noRow(ctx, t, nonce)
	}
	if err != nil {
		return fmt.Errorf("checkpoint of step execution %d: %w", ref.ID, err)
	}
	if stop && c.OnStop != nil {
		c.OnStop()
	}
	if len(c.Skipped) == 0 {
		return nil
	}
	if err := r.store.storeSkips(ctx, t.Conn(), ref.ID, c.Skipped); err != nil {
		return fmt.Errorf("checkpoint of step execution %d: %w", ref.ID, err)
	}
	return nil
}

// checkpointSQL is written without gorm, because every chunk pays for this statement. It also
// returns whether a stop of the job was requested. That flag comes from another row of the
// statement's snapshot: it is a hint, not part of the guard (rule L5).
func (r *ownCheckpoints) checkpointSQL(withContext bool) string {
	n := 0
	bind := func(column string) string {
		n++
		return column + " = " + r.store.db.Dialect().Placeholder(n)
	}
	var sets, guards []string
	for _, column := range append(counterColumns(), "position") {
		sets = append(sets, bind(column))
	}
	for _, column := range []string{"id", "owner", "epoch", "status"} {
		guards = append(guards, bind(column))
	}
	if withContext {
		sets = append(sets, bind("context"))
	}
	return r.store.sql("UPDATE {step_execution} SET " + strings.Join(sets, ", ") + " WHERE " + strings.Join(guards, " AND ") + r.store.fence(n+1) +
		" RETURNING " + r.store.stopRequested())
}

// Reclaim implements ports.CheckpointStore with one guarded UPDATE, which touches no indexed column.
// It waits for the row as long as ctx allows. Then the transaction with the failed COMMIT has
// ended, and because of the new epoch nothing of it can commit later (rule C10). If the reply is
// lost it can be repeated: the row records that this very transition raised the epoch.
func (r *ownCheckpoints) Reclaim(ctx context.Context, ref ports.StepRef) (ports.StepRef, ports.Checkpoint, error) {
	return r.store.raiseEpoch(ctx, ref, ports.MoveReclaim)
}

func (s *store) raiseEpoch(ctx context.Context, ref ports.StepRef, move string) (ports.StepRef, ports.Checkpoint, error) {
	var rows []stepExecution
	err := s.transact(ctx, func(ctx context.Context) error {
		return s.scan(ctx, &rows, "UPDATE {step_execution} SET epoch = epoch + 1, last_move = ?, last_epoch = ? WHERE id = ? AND "+
			"owner = ? AND (epoch = ? OR last_move IN ? AND last_epoch = ?) AND status IN ? RETURNING "+
			strings.Join(counterColumns(), ", ")+", position, context, epoch",
			move, ref.Epoch, ref.ID, ref.Owner.String(), ref.Epoch, repeatable(move), ref.Epoch, ports.Executions().Move(move).From)
	})
	if err == nil && len(rows) == 0 {
		err = core.ErrLostOwner
	}
	var found *core.StepExecution
	if err == nil {
		found, err = rows[0].record()
	}
	if err != nil {
		return ref, ports.Checkpoint{}, fmt.Errorf("%s step execution %d: %w", move, ref.ID, err)
	}
	ref.Epoch = found.Epoch
	return ref, ports.Checkpoint{Counters: found.Counters, Position: found.Position, Context: found.Context}, nil
}

// repeatable returns the transitions after which one that raises the epoch may be made from the
// older epoch: itself, if its reply was lost, and for a fence also a reclaim.
func repeatable(move string) []string {
	if move == ports.MoveFence {
		return []string{ports.MoveFence, ports.MoveReclaim}
	}
	return []string{move}
}

// fence is the condition that an UPDATE runs in the transaction that was begun, identified by the
// nonce in bind variable n (rule T8a): after a ROLLBACK in a script, the UPDATE would commit by
// itself. SQLite needs none.
func (s *store) fence(n int) string {
	if s.db.Dialect() != tx.Postgres {
		return ""
	}
	return " AND current_setting('surfin.tx', true) = " + s.db.Dialect().Placeholder(n)
}

func (s *store) fenced(args []any, nonce string) []any {
	if s.db.Dialect() != tx.Postgres {
		return args
	}
	return append(args, nonce)
}

// noRow returns why a checkpoint found no row: tx.ErrForeignEnd if the transaction is not the one
// that was begun, else core.ErrLostOwner.
func (s *store) noRow(ctx context.Context, t tx.Tx, nonce string) error {
	if s.db.Dialect() != tx.Postgres {
		return core.ErrLostOwner
	}
	var now, begun sql.NullString
	err := t.Conn().QueryRowContext(ctx, "SELECT current_setting('surfin.tx', true), current_setting('surfin.begun', true)").Scan(&now, &begun)
	switch {
	case err != nil:
		return fmt.Errorf("%w, or: %w", core.ErrLostOwner, err)
	case now.String == nonce:
		return core.ErrLostOwner
	case begun.String == nonce:
		return fmt.Errorf("earlier rows are committed: %w", tx.ErrForeignEnd)
	}
	return fmt.Errorf("rolled back, or by a RESET ALL no longer told from others: rows that were written before may be committed: %w", tx.ErrForeignEnd)
}

// stopRequested is the stop flag of the job, for the RETURNING clause of an UPDATE of a step.
func (s *store) stopRequested() string {
	return s.sql("(SELECT j.stop_requested FROM {job_execution} j WHERE j.id = {step_execution}.job_execution_id)")
}

func checkPosition(p item.Position) error {
	if len(p) > ports.MaxPositionBytes {
		return fmt.Errorf("position: %w: %d bytes, allowed %d", core.ErrContextTooLarge, len(p), ports.MaxPositionBytes)
	}
	return nil
}
