package repository

import (
	"context"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Heartbeat implements ports.Launches with one guarded UPDATE, which touches no indexed column and
// leaves no audit row. An execution that has ended has no lease to extend: that is
// core.ErrLostOwner as well.
func (r *launches) Heartbeat(ctx context.Context, ref ports.JobRef, lease time.Duration) (bool, error) {
	if lease <= 0 {
		return false, fmt.Errorf("heartbeat of job execution %d: a lease of %v is not positive", ref.ID, lease)
	}
	var rows []jobExecution
	err := r.store.scan(ctx, &rows, `UPDATE {job_execution} SET lease_until = {later}
		WHERE id = ? AND owner = ? AND epoch = ? AND status IN ? RETURNING stop_requested`,
		lease.Microseconds(), ref.ID, ref.Owner.String(), ref.Epoch, running())
	if err != nil {
		return false, fmt.Errorf("heartbeat of job execution %d: %w", ref.ID, err)
	}
	if len(rows) == 0 {
		return false, fmt.Errorf("heartbeat of job execution %d: %w", ref.ID, core.ErrLostOwner)
	}
	return rows[0].StopRequested, nil
}

// WriterHeld implements ports.Launches.
func (r *launches) WriterHeld() time.Duration { return r.store.db.WriterHeld() }

// running are the states in which an owner holds a lease: the states that can fail.
func running() []core.Status { return ports.MoveTo(core.StatusFailed).From }
