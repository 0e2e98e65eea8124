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
	// launchWord is the wait before a report.
	launchWord = 2 * time.Second
	// launchWait bounds the wait for SQLite's writer, any program.
	launchWait = 30 * time.Second
)

// On one writer: the observer is notified of a longer wait.
func (r *Repository) boundLaunch(ctx context.Context, req ports.LaunchRequest) (bounded context.Context, end func()) {
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

const ownerQueryTimeout = time.Second

// With one writer the launch has waited for that process, perhaps the writer (rule L7).
func (r *Repository) wrapOwner(ctx context.Context, req ports.LaunchRequest, failure error) error {
	if !r.store.db.SingleWriter() || ctx.Err() == nil && !dberr.IsBusy(failure) {
		return failure
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ownerQueryTimeout)
	defer cancel()
	row, err := r.active(ctx, req)
	if err != nil || row == nil {
		return fmt.Errorf("%w (another program is writing to the file of database %s: end it, or try again)", failure, r.store.db.Name())
	}
	return fmt.Errorf("%w (waited for the only writer of database %s; %w)", failure, r.store.db.Name(), alreadyRunning(row, core.OpenWork{}))
}
