package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/job/planner"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type baseline struct {
	steps map[string]baselineStep
	took  time.Duration // the whole execution
}

type baselineStep struct {
	visits float64 // in one execution
	rows   int64
	took   time.Duration
}

type earlier struct {
	visits map[string]int
	// passed are steps the restart only passes, left those it may run.
	passed, left map[string]bool
}

// For a step that is left, at least one visit is to come.
func (e *earlier) of(step string, usual float64) float64 {
	switch {
	case e.passed[step] && !e.left[step]:
		return usual
	case e.left[step]:
		return min(float64(e.visits[step]), max(0, usual-1))
	}
	return float64(e.visits[step])
}

// Only the newest completed executions from the beginning: data grows.
const (
	maxPast     = 10
	pastRuns    = 3
	maxAttempts = 100
)

func (m *Meter) loadBaseline(ctx context.Context, e *core.JobExecution) error {
	if _, known := m.baselines[e.JobName]; !known {
		b, err := m.baselineOf(ctx, e)
		if err != nil {
			return err
		}
		m.baselines[e.JobName] = b
	}
	if _, known := m.earlier[e.ID]; known || m.baselines[e.JobName] == nil {
		return nil
	}
	done, err := m.earlierOf(ctx, e)
	if errors.Is(err, ports.ErrUnreadable) { // its share of the work is not known
		done, err = nil, nil
	}
	if err != nil {
		return fmt.Errorf("read the work of earlier attempts of execution %d: %w", e.ID, err)
	}
	m.earlier[e.ID] = done
	return nil
}

func (s *progress) earlierOf(ctx context.Context, e *core.JobExecution) (*earlier, error) {
	done := &earlier{visits: map[string]int{}, passed: map[string]bool{}, left: map[string]bool{}}
	if e.Attempt < 2 || e.RedriveOf != 0 { // a redrive walks no flow
		return done, nil
	}
	j := s.jobs.jobOf(ctx, e)
	if j == nil {
		return nil, nil
	}
	plan, err := planner.New(ctx, s.records, j, e, nil)
	if err != nil {
		return nil, err
	}
	again := map[core.Visit]bool{}
	for _, entry := range plan.Entries {
		if entry.Act == planner.ActPass {
			done.passed[entry.Step] = true
		} else {
			done.left[entry.Step], again[entry.Visit] = true, true
		}
	}
	attempts, err := s.records.Executions(ctx, ports.ExecutionFilter{Instance: e.InstanceID, Before: e.ID, Brief: true, Limit: maxAttempts})
	if err != nil {
		return nil, err
	}
	attempts = slices.DeleteFunc(attempts, func(a core.JobExecution) bool { return a.RedriveOf != 0 || a.ID < e.AnewSince() })
	steps, err := s.stepsOf(ctx, attempts)
	if err != nil {
		return nil, err
	}
	for _, of := range steps {
		for _, step := range of {
			if v := step.Visit; v.Ordinal > 0 && v.Flow != ports.FlowFinally && isFinal(step) && !again[v] {
				done.visits[step.Name]++
				again[v] = true
			}
		}
	}
	return done, nil
}

func (s *progress) baselineOf(ctx context.Context, of *core.JobExecution) (*baseline, error) {
	completed, err := s.records.Executions(ctx, ports.ExecutionFilter{
		JobName: of.JobName, Statuses: []core.Status{core.StatusCompleted}, RedriveOf: of.RedriveOf, Brief: true, Limit: maxPast,
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
	executions, visits := map[string]int{}, map[string]int{}
	for _, e := range completed {
		b.took += e.EndedAt.Sub(e.StartedAt) / time.Duration(len(completed))
		comes := map[string]bool{}
		for _, step := range splitPartitions(steps[e.ID]) {
			all, _ := step.total()
			sum := b.steps[step.Name]
			sum.rows, sum.took = sum.rows+all.Rows(), sum.took+step.EndedAt.Sub(step.StartedAt)
			b.steps[step.Name] = sum
			visits[step.Name]++
			comes[step.Name] = true
		}
		for name := range comes {
			executions[name]++
		}
	}
	for name, n := range visits {
		sum := b.steps[name]
		b.steps[name] = baselineStep{
			visits: float64(n) / float64(executions[name]), rows: sum.rows / int64(n), took: sum.took / time.Duration(n),
		}
	}
	return b, nil
}

// forecast adds up the done part of the job's usual work, weighted by each
// step's usual time.
type forecast struct {
	baseline *baseline          // may be nil
	earlier  *earlier           // nil if unknown
	visited  map[string]float64 // visits in this attempt; a running one counts in part
	running  map[string]float64 // the remaining part of a running visit
	left     time.Duration      // of the running step that takes longest
}

func newForecast(b *baseline, before *earlier) *forecast {
	return &forecast{baseline: b, earlier: before, visited: map[string]float64{}, running: map[string]float64{}}
}

func (f *forecast) ended(step string) { f.visited[step]++ }

func (f *forecast) runs(step string, rows int64, perSecond float64, took time.Duration) {
	if f.baseline == nil {
		return
	}
	b, known := f.baseline.steps[step]
	if !known || b.took <= 0 {
		return
	}
	share := float64(took) / float64(b.took)
	if b.rows > 0 {
		share = float64(rows) / float64(b.rows)
	}
	share = min(share, 1)
	f.visited[step] += share
	f.running[step] += 1 - share
	left := time.Duration((1 - share) * float64(b.took))
	if b.rows > 0 && perSecond > 0 {
		left = time.Duration(max(0, float64(b.rows-rows)) / perSecond * float64(time.Second))
	}
	f.left = max(f.left, left)
}

const maxPercent = 99

func (f *forecast) result() (percent, left *float64) {
	if f.baseline == nil || f.earlier == nil {
		return nil, nil
	}
	var all, done, waiting float64
	for name, b := range f.baseline.steps {
		visited := min(f.earlier.of(name, b.visits)+f.visited[name], b.visits)
		all += b.visits * float64(b.took)
		done += visited * float64(b.took)
		waiting += max(0, b.visits-visited-f.running[name]) * float64(b.took)
	}
	if all <= 0 {
		return nil, nil
	}
	if took := float64(f.baseline.took); took > 0 && took < all { // some of them run concurrently
		waiting *= took / all
	}
	p := min(float64(int64(1000*done/all))/10, maxPercent)
	l := seconds(f.left + time.Duration(waiting))
	return &p, &l
}
