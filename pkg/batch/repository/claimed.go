package repository

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// claimed is a ports.ClaimedStore: the checkpoints of one attempt in the database that it works in.
// It is used by one goroutine at a time.
type claimed struct {
	store       *store
	history     *store // of the repository
	run         *model.StepRun
	key         checkpointKey
	identity    string        // of the instance
	instanceKey string        // of its parameters
	ref         ports.StepRef // with the epoch of this database's row, not of the repository's
	start       ports.Checkpoint
	adopts      bool // start comes from a row that the operator accepted (rule C18a)
	updates     [2]string
	every       time.Duration
	notifiedAt  time.Time // when the repository was last notified
	hasNewSkips bool      // skips were committed since then
	onStop      func()    // of the last checkpoint
}

// checkpointKey identifies a step of an instance of one repository. All attempts of the
// step share it.
type checkpointKey struct {
	repository string
	instance   core.JobInstanceID
	step       string
}

func (k checkpointKey) values() []any { return []any{k.repository, int64(k.instance), k.step} }

type checkpoint struct {
	StepExecutionID core.StepExecutionID
	Owner           string
	Epoch           int64
	CountedID       core.StepExecutionID
	Counts          counterRow `gorm:"embedded"`
	Position        string
	Context         string
	Instance        string // its identity; empty if written by an older version
}

func checkpointColumns() []string {
	return append([]string{"step_execution_id", "owner", "epoch", "counted_id", "position", "context", "instance"}, counterColumns()...)
}

// record returns the committed state of the attempt that claimed the row. The counters are zero if
// an earlier attempt counted them.
func (c *checkpoint) record() (ports.Checkpoint, error) {
	context, err := core.ParseExecutionContext([]byte(c.Context))
	if err != nil {
		return ports.Checkpoint{}, fmt.Errorf("stored context: %w", err)
	}
	r := ports.Checkpoint{Context: context}
	if c.Position != "" {
		r.Position = item.Position(c.Position)
	}
	if c.CountedID == c.StepExecutionID {
		r.Counters = c.Counts.counters()
	}
	return r, nil
}

// Database implements ports.CheckpointStore.
func (s *claimed) Database() string { return s.store.db.Name() }

// Start implements ports.ClaimedStore.
func (s *claimed) Start() ports.Checkpoint { return s.start }

// Checkpoint implements ports.CheckpointStore as Repository.Checkpoint does, in the transaction of
// the data: one statement, and one more for every batch of skips. It does not see a stop of the
// job: the next notification of the repository does.
func (s *claimed) Checkpoint(ctx context.Context, ref ports.StepRef, c ports.Checkpoint) error {
	if err := s.checkpoint(ctx, ref, c); err != nil {
		return fmt.Errorf("checkpoint of step execution %d in database %s: %w", ref.ID, s.store.db.Name(), err)
	}
	return nil
}

func (s *claimed) checkpoint(ctx context.Context, ref ports.StepRef, c ports.Checkpoint) error {
	t, ok := tx.From(ctx, s.store.db.Name())
	switch {
	case !ok:
		return tx.ErrNoTransaction
	case ref.ID != s.ref.ID:
		return fmt.Errorf("step execution %d has claimed it", s.ref.ID)
	}
	if err := checkPosition(c.Position); err != nil {
		return err
	}
	text, write, err := encodeContext(c.Context)
	if err != nil {
		return err
	}
	nonce, err := t.Fence()
	if err != nil {
		return err
	}
	s.onStop = c.OnStop
	args := append(counterValues(c.Counters), string(c.Position), int64(s.ref.ID))
	args = append(append(args, s.key.values()...), int64(s.ref.ID), s.ref.Owner.String(), s.ref.Epoch)
	statement := s.updates[0]
	if write {
		statement, args = s.updates[1], append(args, s.store.mask(text))
	}
	args = s.store.fenced(args, nonce)
	result, err := t.Conn().ExecContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	rows, err := result.RowsAffected()
	if err != nil {
		return err
	}
	if rows != 1 {
		return s.store.noRow(ctx, t, nonce)
	}
	if len(c.Skipped) == 0 {
		return nil
	}
	s.hasNewSkips = true
	return s.stageSkips(ctx, t.Conn(), c)
}

func (s *claimed) checkpointSQL(withContext bool) string {
	n := 0
	bind := func(columns []string, between string) string {
		var list []string
		for _, column := range columns {
			n++
			list = append(list, column+" = "+s.store.db.Dialect().Placeholder(n))
		}
		return strings.Join(list, between)
	}
	sets := bind(append(counterColumns(), "position", "counted_id"), ", ")
	guards := bind([]string{"repository", "instance_id", "step", "step_execution_id", "owner", "epoch"}, " AND ")
	if withContext {
		sets += ", " + bind([]string{"context"}, "")
	}
	return s.store.sql("UPDATE {checkpoint} SET " + sets + " WHERE " + guards + s.store.fence(n+1))
}

// Reclaim implements ports.CheckpointStore, on the row in this database (rule C10). It
// returns ref itself: the guard of the repository's row does not change.
func (s *claimed) Reclaim(ctx context.Context, ref ports.StepRef) (ports.StepRef, ports.Checkpoint, error) {
	found, err := s.reclaim(ctx)
	if err != nil {
		return ref, ports.Checkpoint{}, fmt.Errorf("reclaim step execution %d in database %s: %w", ref.ID, s.store.db.Name(), err)
	}
	return ref, found, nil
}

// reclaim raises the epoch of the row. It can be repeated if the reply is lost: no other process
// raises the epoch of this attempt's row, so a greater one is its own.
func (s *claimed) reclaim(ctx context.Context) (ports.Checkpoint, error) {
	var rows []checkpoint
	err := s.store.transact(ctx, func(ctx context.Context) (err error) {
		rows, err = s.change(ctx, `UPDATE {checkpoint} SET epoch = epoch + 1
			WHERE repository = ? AND instance_id = ? AND step = ? AND step_execution_id = ? AND owner = ? AND epoch >= ?`,
			append(s.key.values(), s.ref.ID, s.ref.Owner.String(), s.ref.Epoch)...)
		return err
	})
	if err == nil && len(rows) == 0 {
		err = core.ErrLostOwner
	}
	if err != nil {
		return ports.Checkpoint{}, err
	}
	s.ref.Epoch = rows[0].Epoch
	return rows[0].record()
}

// Committed implements ports.ClaimedStore. It notifies the repository of skips at once, and of
// counters at intervals. A failed notification is repeated, at the latest by SyncHistory.
func (s *claimed) Committed(ctx context.Context) error {
	if !s.hasNewSkips && time.Since(s.notifiedAt) < s.every {
		return nil
	}
	err := s.notifyRepository(ctx)
	if err == nil || errors.Is(err, core.ErrLostOwner) {
		return err
	}
	s.notifiedAt, s.hasNewSkips = time.Now(), false // not again for every chunk
	s.run.Services.Observer.Observe(ctx, core.HeartbeatFailed{Execution: s.run.Data.Job.ID, Err: err})
	return nil
}

// SyncHistory implements ports.ClaimedStore. If the repository cannot be reached it tries again, as
// long as the lease lasts (rule L9).
func (s *claimed) SyncHistory(ctx context.Context) error {
	return s.run.Services.Lease.Record(context.WithoutCancel(ctx), s.notifyRepository)
}

func (s *claimed) notifyRepository(ctx context.Context) error {
	row, err := s.read(ctx)
	switch {
	case err != nil:
	case row == nil || row.StepExecutionID != s.ref.ID || row.Epoch != s.ref.Epoch:
		err = core.ErrLostOwner
	case row.CountedID == s.ref.ID:
		err = s.syncRecord(ctx, row, s.updateRunning)
	}
	if err != nil {
		return fmt.Errorf("copy the commit of step execution %d in database %s to the repository: %w", s.ref.ID, s.store.db.Name(), err)
	}
	s.notifiedAt, s.hasNewSkips = time.Now(), false
	return nil
}

func (s *claimed) read(ctx context.Context) (*checkpoint, error) {
	var rows []checkpoint
	err := s.store.scan(ctx, &rows, "SELECT "+strings.Join(checkpointColumns(), ", ")+
		" FROM {checkpoint} WHERE repository = ? AND instance_id = ? AND step = ?", s.key.values()...)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}
