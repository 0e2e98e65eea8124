package repository

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// seriesRows implements ports.Series.
type seriesRows struct{ store *store }

// stepSeries is the row of a step execution's counters over time.
type stepSeries struct {
	StepExecutionID core.StepExecutionID `gorm:"primaryKey"`
	Epoch           int64                // of the guard
	BeganAt         instant
	Samples         []byte
}

// storeSeries stores the samples of one step execution if the guard's condition holds. It waits for no row of an
// execution: a statement of a process that lost its lease meanwhile finds a greater epoch in the row, if another one
// has begun to write.
const storeSeries = `INSERT INTO {step_series} (step_execution_id, epoch, began_at, samples)
	SELECT s.id, ?, {later}, ? FROM {step_execution} s WHERE s.id = ? AND s.job_execution_id = ? AND `

const orReplaceSeries = ` ON CONFLICT (step_execution_id) DO UPDATE SET epoch = excluded.epoch, began_at = excluded.began_at, samples = excluded.samples
	WHERE {step_series}.epoch <= excluded.epoch`

// ownJob and ownPart are the conditions of Heartbeat and HeartbeatStep, without the status: the last samples are
// stored after the end.
const (
	ownJob  = `EXISTS (SELECT 1 FROM {job_execution} j WHERE j.id = s.job_execution_id AND j.owner = ? AND j.epoch = ?)`
	ownPart = `EXISTS (SELECT 1 FROM {step_execution} p WHERE p.id = ? AND (s.id = p.id OR s.branch_id = p.id) AND ` +
		`p.owner = ? AND (p.epoch = ? OR p.last_move = '` + ports.MoveReclaim + `' AND p.last_epoch = ?))`
)

// StoreSeries implements ports.Series with a statement for each step execution.
func (r *seriesRows) StoreSeries(ctx context.Context, guard ports.JobRef, series []ports.StepSeries) error {
	owned, args := ownJob, []any{guard.Owner.String(), guard.Epoch}
	if guard.Branch != 0 {
		owned, args = ownPart, []any{guard.Branch, guard.Owner.String(), guard.Epoch, guard.Epoch}
	}
	store := func(ctx context.Context) error {
		for _, s := range series {
			values := append([]any{guard.Epoch, -s.Since.Microseconds(), s.Samples, s.Step, guard.ID}, args...)
			if err := r.store.exec(ctx, storeSeries+owned+orReplaceSeries, values...).Error; err != nil {
				return fmt.Errorf("store the samples of step execution %d: %w", s.Step, err)
			}
		}
		return nil
	}
	if len(series) == 1 {
		return store(ctx)
	}
	return r.store.transact(ctx, store)
}

// StoredSeries implements ports.Series with one statement.
func (r *seriesRows) StoredSeries(ctx context.Context, ids ...core.StepExecutionID) (map[core.StepExecutionID]ports.StepSeries, error) {
	var rows []struct {
		Row stepSeries `gorm:"embedded"`
		Now instant
	}
	err := r.store.scan(ctx, &rows, "SELECT *, {now} AS now FROM {step_series} WHERE step_execution_id {among}", listed(ids))
	if err != nil {
		return nil, fmt.Errorf("read the samples of %d step executions: %w", len(ids), err)
	}
	found := make(map[core.StepExecutionID]ports.StepSeries, len(rows))
	for _, row := range rows {
		found[row.Row.StepExecutionID] = ports.StepSeries{
			Step: row.Row.StepExecutionID, Samples: row.Row.Samples, Since: row.Now.Sub(row.Row.BeganAt.Time),
		}
	}
	return found, nil
}

// SampledSteps implements ports.Series with one statement, over the index of the execution's steps.
func (r *seriesRows) SampledSteps(ctx context.Context, req ports.SampledRequest) ([]ports.SampledStep, error) {
	var rows []struct {
		Row      stepExecution `gorm:"embedded"`
		HasParts bool
		BeganAt  instant
		Samples  []byte
	}
	columns, join := "NULL AS began_at, NULL AS samples", ""
	if !req.Brief {
		columns, join = "t.began_at, t.samples", "LEFT JOIN {step_series} t ON t.step_execution_id = s.id "
	}
	err := r.store.scan(ctx, &rows, `SELECT s.id, s.name, s.flow, s.status, s.error_text, s.manager_id, s.started_at, s.ended_at, s.in_hand_counts,
		s.read_count, s.filter_count, s.write_count, s.read_skip_count, s.process_skip_count, s.write_skip_count, s.commit_count, s.rollback_count,
		CASE WHEN s.manager_id IS NULL THEN (SELECT MIN(p.id) FROM {step_execution} p WHERE p.manager_id = s.id) END IS NOT NULL AS has_parts,
		`+columns+` FROM {step_execution} s `+join+`WHERE `+ofExecutionAfter("s")+`
		ORDER BY s.job_execution_id, s.id LIMIT ?`, req.Execution, req.After, req.Execution, req.Limit)
	if err != nil {
		return nil, fmt.Errorf("list the sampled steps of job execution %d: %w", req.Execution, err)
	}
	steps := make([]ports.SampledStep, len(rows))
	for i := range rows {
		row := &rows[i].Row
		inHand := knownCounts(row.InHandCounts)
		steps[i] = ports.SampledStep{
			ID: row.ID, Name: row.Name, Status: row.Status, Error: row.ErrorText, Manager: orZero(row.ManagerID), HasParts: rows[i].HasParts,
			IsBranch: row.ManagerID != nil && row.Flow != "", Committed: row.Counts.counters().Sub(inHand),
			StartedAt: row.StartedAt.Time, EndedAt: row.EndedAt.Time, Samples: rows[i].Samples, Since: rows[i].BeganAt.Time,
		}
	}
	return steps, nil
}
