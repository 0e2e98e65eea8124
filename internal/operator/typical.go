package operator

import (
	"context"
	"math"
	"slices"
	"sync"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Typical are the usual values of the last completed executions of a job.
type Typical struct {
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
	Runs   int     `json:"runs"`
}

// Within returns the 95th percentile, and whether there are enough executions to say it.
func (t *Typical) Within() (p95 float64, enough bool) {
	return t.P95, t.Runs >= listedRuns
}

const p95 = .95

func typicalOf(values []float64) *Typical {
	if len(values) == 0 {
		return nil
	}
	return &Typical{Median: median(values), P95: percentile(values, p95), Runs: len(values)}
}

func median(values []float64) float64 { return percentile(values, .5) }

// percentile interpolates between the two nearest values. It sorts them.
func percentile(values []float64, part float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	at := part * float64(len(values)-1)
	low := int(math.Floor(at))
	high := min(low+1, len(values)-1)
	return values[low] + (at-float64(low))*(values[high]-values[low])
}

// The executions of a summary.
const (
	listedRuns    = 20
	completedRuns = 30
)

// recent reads the last executions of jobs. It keeps the numbers of those that are over, since they stay
// as they are: a second call reads only new ones.
type recent struct {
	records ports.JobHistory // may be nil

	mu sync.Mutex
	// Numbers that no call has needed since kept was new are forgotten.
	kept, before map[core.JobExecutionID]ports.Run
}

// mostKept is the number of executions after which earlier ones are forgotten: enough for 400 jobs.
const mostKept = 20_000

// of returns the last executions of the jobs, and their numbers.
func (s *recent) of(ctx context.Context, jobs ...string) ([]ports.JobRuns, map[core.JobExecutionID]ports.Run, error) {
	return s.last(ctx, listedRuns, completedRuns, jobs...)
}

// last is of for other numbers of executions.
func (s *recent) last(ctx context.Context, newest, completed int, jobs ...string) ([]ports.JobRuns, map[core.JobExecutionID]ports.Run, error) {
	if s.records == nil || len(jobs) == 0 {
		return nil, nil, nil
	}
	list, err := patiently(ctx, func(ctx context.Context) ([]ports.JobRuns, error) {
		return s.records.JobRuns(ctx, newest, completed, jobs...)
	})
	if err != nil {
		return nil, nil, err
	}
	runs := map[core.JobExecutionID]ports.Run{}
	var missing []core.JobExecutionID
	s.mu.Lock()
	for _, job := range list {
		for _, ref := range job.Newest {
			missing = s.take(ref, runs, missing)
		}
		for _, id := range job.Completed {
			missing = s.take(ports.RunRef{ID: id, Status: core.StatusCompleted}, runs, missing)
		}
	}
	s.mu.Unlock()
	if len(missing) == 0 {
		return list, runs, nil
	}
	read, err := patiently(ctx, func(ctx context.Context) (map[core.JobExecutionID]ports.Run, error) {
		return s.records.Runs(ctx, missing...)
	})
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, run := range read {
		runs[id] = run
		if run.Status.IsOver() && run.Rows != nil {
			s.keep(run)
		}
	}
	return list, runs, nil
}

// take moves a known execution to runs, and adds others to missing.
func (s *recent) take(ref ports.RunRef, runs map[core.JobExecutionID]ports.Run, missing []core.JobExecutionID) []core.JobExecutionID {
	if _, taken := runs[ref.ID]; taken {
		return missing
	}
	run, known := s.kept[ref.ID]
	if !known {
		if run, known = s.before[ref.ID]; known {
			s.keep(run)
		}
	}
	runs[ref.ID] = run
	if !known || run.Status != ref.Status {
		return append(missing, ref.ID)
	}
	return missing
}

func (s *recent) keep(run ports.Run) {
	if s.kept == nil || len(s.kept) >= mostKept {
		s.kept, s.before = map[core.JobExecutionID]ports.Run{}, s.kept
	}
	s.kept[run.ID] = run
}

// durations are the seconds that completed executions took.
func durations(ids []core.JobExecutionID, runs map[core.JobExecutionID]ports.Run) []float64 {
	var values []float64
	for _, id := range ids {
		if run := runs[id]; !run.StartedAt.IsZero() && !run.EndedAt.IsZero() {
			values = append(values, seconds(run.EndedAt.Sub(run.StartedAt)))
		}
	}
	return values
}

func rowsOf(ids []core.JobExecutionID, runs map[core.JobExecutionID]ports.Run) []float64 {
	var values []float64
	for _, id := range ids {
		if run := runs[id]; run.Rows != nil {
			values = append(values, float64(*run.Rows))
		}
	}
	return values
}
