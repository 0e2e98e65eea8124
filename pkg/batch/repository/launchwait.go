package repository

import (
	"context"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const (
	// launchWord is how long a launch waits before it reports that it waits.
	launchWord = 2 * time.Second
	// launchWait bounds the wait of a launch for the writer of a SQLite file, which may be any program.
	launchWait = 30 * time.Second
)

// boundLaunch bounds a launch on a database with one writer. Until end is called, it notifies the
// observer of a launch that waits for a while.
func (r *launches) boundLaunch(ctx context.Context, req ports.LaunchRequest) (bounded context.Context, end func()) {
	event := core.LaunchWaits{Execution: req.Parent, JobName: req.JobName, Reason: "another session has locked rows of the history"}
	cancel := func() {}
	if r.store.db.SingleWriter() {
		ctx, cancel = context.WithTimeout(ctx, launchWait)
		event.Reason = fmt.Sprintf("another process is writing to the file of database %s; the launch waits for it at most %v", r.store.db.Name(), launchWait)
	}
	word := time.AfterFunc(launchWord, func() { r.observer.Observe(context.WithoutCancel(ctx), event) })
	return ctx, func() {
		word.Stop()
		cancel()
	}
}

// ownerQueryTimeout bounds the query for the owner that a failed launch waited for.
const ownerQueryTimeout = time.Second

// wrapOwner adds the owner of the running execution to the failure of a launch. On a database with
// one writer the launch has waited for that process, which may be the writer (rule L7). It returns
// failure unchanged if no owner is known.
func (r *launches) wrapOwner(ctx context.Context, req ports.LaunchRequest, failure error) error {
	if !r.store.db.SingleWriter() || ctx.Err() == nil && !dberr.IsBusy(failure) {
		return failure
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ownerQueryTimeout)
	defer cancel()
	row, err := r.reads.active(ctx, req)
	if err != nil || row == nil { // no owner is known
		return fmt.Errorf("%w (another program is writing to the file of database %s: end it, or try again)", failure, r.store.db.Name())
	}
	return fmt.Errorf("%w (waited for the only writer of database %s; %w)", failure, r.store.db.Name(), alreadyRunning(row, ports.OpenWork{}))
}

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
