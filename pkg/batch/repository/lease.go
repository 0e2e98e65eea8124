package repository

import (
	"context"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Heartbeat is one guarded UPDATE without indexed columns or audit. An ended execution is core.ErrLostOwner.
func (r *Repository) Heartbeat(ctx context.Context, ref ports.JobRef, lease time.Duration) (bool, error) {
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
func (r *Repository) WriterHeld() time.Duration { return r.store.db.WriterHeld() }

// running are states with a lease, which can fail.
func running() []core.Status { return ports.MoveTo(core.StatusFailed).From }
