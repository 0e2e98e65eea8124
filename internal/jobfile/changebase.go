package jobfile

import (
	"context"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// writtenUnder returns the newest execution of the instance that may have written something under its
// definition. An execution that was refused when its steps began left the previous one's work, so a file is
// compared with the previous one.
func (f *File) writtenUnder(ctx context.Context, r Restart) (*core.JobExecution, error) {
	base := r.Last
	for base.Attempt > 1 && base.AnewSince() == 0 && base.RedriveOf == 0 {
		wrote, err := f.mayHaveWritten(ctx, r, base)
		if err != nil || wrote {
			return base, err
		}
		before, err := r.History.Records.Executions(ctx, ports.ExecutionFilter{Instance: base.InstanceID, Before: base.ID, Limit: 1})
		if err != nil {
			return nil, fmt.Errorf("read the execution before %d: %w", base.ID, err)
		}
		if len(before) == 0 || before[0].Definition.Text == "" {
			return base, nil
		}
		base = &before[0]
	}
	return base, nil
}

// mayHaveWritten reports whether an execution may have left results. It has not if it failed together with
// all its steps, and these are chunk steps without partitions that work in the repository's database and have
// counted nothing.
func (f *File) mayHaveWritten(ctx context.Context, r Restart, e *core.JobExecution) (bool, error) {
	if e.Status != core.StatusFailed {
		return true, nil
	}
	steps, err := r.History.Records.Steps(ctx, e.ID)
	if err != nil {
		return true, fmt.Errorf("read the steps of execution %d: %w", e.ID, err)
	}
	was, unread := f.Earlier(e.Definition, r.Registry)
	if unread != nil { // for example a component that no longer exists: which work ran is unknown
		return true, nil //nolint:nilerr // what compares the file says so
	}
	for _, s := range steps {
		step := was.stepNamed(s.Name)
		isChunk := step != nil && step.child == nil && step.partitioner == nil && step.tasklet == nil && step.tasks == nil
		own := s.Counters
		own.Rollback = 0
		// If a step's data is in another database, its record may be older than its checkpoint.
		isChunk = isChunk && (&compiler{file: was}).database(step) == r.History.Database
		if !isChunk || s.Status != core.StatusFailed || own != (core.Counters{}) || strings.Contains(s.Error, core.LostOwner) {
			return true, nil
		}
	}
	return false, nil
}
