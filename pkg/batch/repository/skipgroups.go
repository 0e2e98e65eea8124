package repository

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const (
	newestSkips = "(SELECT * FROM {skipped_item} WHERE id < ? ORDER BY id DESC LIMIT ?) AS k"
	// errors may be long, and differ in what was wrong with a row
	groupedSkips = `SELECT k.step_execution_id, k.phase, k.error_class, substr(k.error_text, 1, 300) AS error_text, count(*) AS n,
		sum(CASE WHEN k.redriven_by IS NULL THEN 1 ELSE 0 END) AS unsettled, max(k.id) AS last, min(k.created_at) AS first, max(k.created_at) AS ends
		FROM ` + newestSkips + ` WHERE k.created_at >= ? GROUP BY k.step_execution_id, k.phase, k.error_class, substr(k.error_text, 1, 300)`
	reachedSkip = "SELECT k.id, k.created_at FROM {skipped_item} k WHERE k.id < ? ORDER BY k.id DESC LIMIT 1 OFFSET ?"
)

type skipGroupRow struct {
	StepExecutionID core.StepExecutionID
	Phase           core.Phase
	ErrorClass      string
	ErrorText       string
	N, Unsettled    int64
	Last            int64
	First, Ends     instant
}

// SkipGroups implements ports.JobHistory with three statements over primary keys.
func (r *jobHistory) SkipGroups(ctx context.Context, filter ports.SkipGroupFilter) (found ports.SkipGroups, err error) {
	before := cmp.Or(filter.Before, math.MaxInt64)
	if filter.Since.IsZero() {
		filter.Since = time.Unix(0, 0)
	}
	var rows []skipGroupRow
	if err := r.store.scan(ctx, &rows, groupedSkips, before, filter.Limit, instant{Time: filter.Since}); err != nil {
		return found, fmt.Errorf("group the skipped items: %w", err)
	}
	ids := map[core.StepExecutionID]bool{}
	var list []core.StepExecutionID
	for _, row := range rows {
		found.Read += int(row.N)
		if !ids[row.StepExecutionID] {
			ids[row.StepExecutionID], list = true, append(list, row.StepExecutionID)
		}
	}
	if found.Read >= filter.Limit {
		var last []struct {
			ID        int64
			CreatedAt instant
		}
		if err := r.store.scan(ctx, &last, reachedSkip, before, filter.Limit-1); err != nil {
			return found, fmt.Errorf("group the skipped items: %w", err)
		}
		for _, l := range last {
			found.Reached, found.ReachedAt = l.ID, l.CreatedAt.Time
		}
	}
	found.Groups, err = r.namedGroups(ctx, rows, list)
	return found, err
}

func (r *jobHistory) namedGroups(ctx context.Context, rows []skipGroupRow, ids []core.StepExecutionID) ([]ports.SkipGroup, error) {
	var steps []struct {
		ID             core.StepExecutionID
		JobExecutionID core.JobExecutionID
		JobName, Name  string
	}
	if err := r.store.scan(ctx, &steps, "SELECT id, job_execution_id, job_name, name FROM {step_execution} WHERE id {among}", listed(ids)); err != nil {
		return nil, fmt.Errorf("read the steps of skipped items: %w", err)
	}
	at := make(map[core.StepExecutionID]int, len(steps))
	for i, s := range steps {
		at[s.ID] = i
	}
	var groups []ports.SkipGroup
	for _, row := range rows {
		i, known := at[row.StepExecutionID]
		if !known { // purged just now
			continue
		}
		groups = append(groups, ports.SkipGroup{
			Execution: steps[i].JobExecutionID, JobName: steps[i].JobName, Step: steps[i].Name, Phase: row.Phase, Class: row.ErrorClass, Error: row.ErrorText,
			Count: row.N, Left: row.Unsettled, Last: row.Last, First: row.First.Time, Ends: row.Ends.Time,
		})
	}
	return groups, nil
}
