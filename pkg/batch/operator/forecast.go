package operator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// baseline is what a job does when it completes: the mean of some past executions.
type baseline struct {
	steps map[string]baselineStep
	took  time.Duration // the whole execution
}

type baselineStep struct {
	rows int64
	took time.Duration
}

// The past that counts: of the newest completed executions a few that ran from their
// beginning, since data grows.
const (
	maxPast  = 10
	pastRuns = 3
)

// loadBaseline reads once the baseline of the job, and which steps earlier attempts of
// the execution completed.
func (m *Meter) loadBaseline(ctx context.Context, e *core.JobExecution) error {
	if _, known := m.baselines[e.JobName]; !known {
		b, err := m.service.baselineOf(ctx, e)
		if err != nil {
			return err
		}
		m.baselines[e.JobName] = b
	}
	if _, known := m.completed[e.ID]; known || e.Attempt < 2 {
		return nil
	}
	steps, err := m.service.config.Repository.LastSteps(ctx, e.InstanceID, e.AnewSince())
	if err != nil {
		return fmt.Errorf("read the steps of execution %d: %w", e.ID, err)
	}
	completed := map[string]bool{}
	for name, h := range steps {
		if h.Last.JobExecutionID < e.ID && isFinal(h.Last) {
			completed[name] = true
		}
	}
	m.completed[e.ID] = completed
	return nil
}

// baselineOf reads the newest completed executions of the job; nil if there are none.
func (s *Service) baselineOf(ctx context.Context, of *core.JobExecution) (*baseline, error) {
	completed, err := s.config.Repository.Executions(ctx, core.ExecutionFilter{
		JobName: of.JobName, Statuses: []core.Status{core.StatusCompleted}, RedriveOf: of.RedriveOf, Limit: maxPast,
	})
	if err != nil {
		return nil, fmt.Errorf("read past executions of job %s: %w", of.JobName, err)
	}
	completed = slices.DeleteFunc(completed, func(e core.JobExecution) bool { return (e.RedriveOf != 0) != (of.RedriveOf != 0) })
	slices.SortStableFunc(completed, func(a, b core.JobExecution) int { return min(a.Attempt, 2) - min(b.Attempt, 2) })
	completed = completed[:min(len(completed), pastRuns)]
	if len(completed) == 0 {
		return nil, nil
	}
	steps, err := s.stepsOf(ctx, completed)
	if err != nil {
		return nil, err
	}
	b := &baseline{steps: map[string]baselineStep{}}
	times := map[string]int{}
	for _, e := range completed {
		b.took += e.EndedAt.Sub(e.StartedAt) / time.Duration(len(completed))
		for _, step := range splitPartitions(steps[e.ID]) {
			all, _ := step.total()
			sum := b.steps[step.Name]
			sum.rows, sum.took = sum.rows+all.Rows(), sum.took+step.EndedAt.Sub(step.StartedAt)
			b.steps[step.Name] = sum
			times[step.Name]++
		}
	}
	for name, n := range times {
		sum := b.steps[name]
		b.steps[name] = baselineStep{rows: sum.rows / int64(n), took: sum.took / time.Duration(n)}
	}
	return b, nil
}

// forecast adds up what an execution has done of what the job usually does, with the
// usual time of each step as its weight.
type forecast struct {
	baseline  *baseline       // nil: there is none
	completed map[string]bool // steps that an earlier attempt completed
	over      map[string]bool
	now       map[string]bool // steps that run
	done      time.Duration
	left      time.Duration // of the running step that takes longest
}

func newForecast(b *baseline, completed map[string]bool) *forecast {
	return &forecast{baseline: b, completed: completed, over: map[string]bool{}, now: map[string]bool{}}
}

func (f *forecast) running(step string, rows int64, perSecond float64, took time.Duration) {
	if f.baseline == nil {
		return
	}
	f.now[step] = true
	b, known := f.baseline.steps[step]
	if !known || b.took <= 0 {
		return
	}
	share := float64(took) / float64(b.took)
	if b.rows > 0 {
		share = float64(rows) / float64(b.rows)
	}
	share = min(share, 1)
	f.done += time.Duration(share * float64(b.took))
	left := time.Duration((1 - share) * float64(b.took))
	if b.rows > 0 && perSecond > 0 {
		left = time.Duration(max(0, float64(b.rows-rows)) / perSecond * float64(time.Second))
	}
	f.left = max(f.left, left)
}

// maxPercent is what an execution reaches that has not ended.
const maxPercent = 99

// result is nil where there is no baseline.
func (f *forecast) result() (percent, left *float64) {
	if f.baseline == nil {
		return nil, nil
	}
	var all, waiting time.Duration
	done := f.done
	for name, b := range f.baseline.steps {
		all += b.took
		switch {
		case f.over[name] || f.completed[name] && !f.now[name]:
			done += b.took
		case !f.now[name]:
			waiting += b.took
		}
	}
	if all <= 0 {
		return nil, nil
	}
	if took := f.baseline.took; took > 0 && took < all { // some of them run side by side
		waiting = time.Duration(float64(waiting) * float64(took) / float64(all))
	}
	p := min(float64(int64(1000*float64(done)/float64(all)))/10, maxPercent)
	l := seconds(f.left + waiting)
	return &p, &l
}
