package operator

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const (
	defaultTrend = 50
	mostTrend    = 100
)

// TrendRequest selects the last executions of a job.
type TrendRequest struct {
	Job string
	// Limit is at most 100; 0 means 50.
	Limit int
}

// JobTrend are the last executions of a job in numbers, without redrives.
type JobTrend struct {
	Job  string       `json:"job"`
	Runs []RunSummary `json:"runs" doc:"Newest first"`
	// Completed is the number of those in Runs that the typical values are of.
	Completed int      `json:"completed" doc:"Number of the completed executions in runs: the following are of these"`
	Duration  *Typical `json:"duration,omitempty" doc:"Median and 95th percentile, in seconds"`
	Rows      *Typical `json:"rows,omitempty" doc:"Of the rows that the steps read or, if they read none, wrote"`
	Skips     *Typical `json:"skipped,omitempty" doc:"Of the skipped items"`
}

// trends are the views of one job over its executions.
type trends struct {
	judge   *judge
	recent  *recent
	records interface {
		Executions(ctx context.Context, filter ports.ExecutionFilter) ([]core.JobExecution, error)
	}
}

// Trend returns the last executions of a job; none if the history has none.
func (s *trends) Trend(ctx context.Context, req TrendRequest) (*JobTrend, error) {
	if err := s.judge.schema.Prepare(ctx); err != nil {
		return nil, err
	}
	switch {
	case req.Limit < 0 || req.Limit > mostTrend:
		return nil, &RequestError{Field: "limit", Value: fmt.Sprint(req.Limit), Reason: fmt.Sprintf("must be from 1 to %d", mostTrend)}
	case req.Limit == 0:
		req.Limit = defaultTrend
	}
	t := &JobTrend{Job: req.Job, Runs: []RunSummary{}}
	list, runs, err := s.recent.last(ctx, req.Limit, 0, req.Job)
	if err != nil {
		return nil, fmt.Errorf("the trend of job %s: %w", req.Job, err)
	}
	var completed []core.JobExecutionID
	for _, job := range list {
		for _, ref := range job.Newest {
			t.Runs = append(t.Runs, runSummary(ref, runs[ref.ID], s.judge.now()))
			if ref.Status == core.StatusCompleted {
				completed = append(completed, ref.ID)
			}
		}
	}
	var skips []float64
	for _, id := range completed {
		if run := runs[id]; run.Rows != nil {
			skips = append(skips, float64(run.Skips))
		}
	}
	t.Completed, t.Duration, t.Rows, t.Skips = len(completed), typicalOf(durations(completed, runs)), typicalOf(rowsOf(completed, runs)), typicalOf(skips)
	return t, nil
}
