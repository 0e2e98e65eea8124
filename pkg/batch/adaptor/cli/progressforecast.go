package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// usual is what a job does when it completes: the mean of the newest times.
type usual struct {
	steps map[string]usualStep
	took  time.Duration // the whole execution
}

type usualStep struct {
	rows int64
	took time.Duration
}

// The past that counts: of the newest completed executions those that ran from
// their beginning, few of them, since data grows.
const (
	mostPast = 10
	pastRuns = 3
)

// recall asks once what the job usually does, and what earlier attempts of the
// execution completed.
func (m *meter) recall(ctx context.Context, e core.JobExecution) error {
	if _, known := m.usual[e.JobName]; !known {
		u, err := usually(ctx, m.history, e)
		if err != nil {
			return err
		}
		m.usual[e.JobName] = u
	}
	if _, known := m.before[e.ID]; known || e.Attempt < 2 {
		return nil
	}
	steps, err := m.history.LastSteps(ctx, e.InstanceID, sinceOf(e))
	if err != nil {
		return fmt.Errorf("read the steps of execution %d: %w", e.ID, err)
	}
	passed := map[string]bool{}
	for name, h := range steps {
		if h.Last.JobExecutionID < e.ID && isOver(h.Last) {
			passed[name] = true
		}
	}
	m.before[e.ID] = passed
	return nil
}

// sinceOf is the execution from which on the history of the instance counts.
func sinceOf(e core.JobExecution) core.JobExecutionID {
	if e.Context == nil {
		return 0
	}
	anew, _ := e.Context.Get(core.FromStartKey)
	since, _ := anew.(int64)
	return core.JobExecutionID(since)
}

// usually reads the newest completed executions of the job; nil if there are none.
func usually(ctx context.Context, history core.JobRepository, of core.JobExecution) (*usual, error) {
	completed, err := history.Executions(ctx, core.ExecutionFilter{
		JobName: of.JobName, Statuses: []core.Status{core.StatusCompleted}, RedriveOf: of.RedriveOf, Limit: mostPast,
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
	steps, err := stepsOf(ctx, history, completed)
	if err != nil {
		return nil, err
	}
	u := &usual{steps: map[string]usualStep{}}
	times := map[string]int{}
	for _, e := range completed {
		u.took += e.EndedAt.Sub(e.StartedAt) / time.Duration(len(completed))
		for _, s := range whole(steps[e.ID]) {
			sum := u.steps[s.Name]
			sum.rows, sum.took = sum.rows+rowsOf(s.counters), sum.took+s.EndedAt.Sub(s.StartedAt)
			u.steps[s.Name] = sum
			times[s.Name]++
		}
	}
	for name, n := range times {
		sum := u.steps[name]
		u.steps[name] = usualStep{rows: sum.rows / int64(n), took: sum.took / time.Duration(n)}
	}
	return u, nil
}

// forecast adds up what an execution has done of what the job usually does, with
// the usual time of each step as its weight.
type forecast struct {
	usual  *usual
	passed map[string]bool // steps that an earlier attempt completed
	over   map[string]bool
	done   time.Duration
	left   time.Duration // of the running step that takes longest
	now    map[string]bool
}

func (f *forecast) ended(s core.StepExecution) {
	if f.over == nil {
		f.over = map[string]bool{}
	}
	f.over[s.Name] = true
}

func (f *forecast) running(step string, rows int64, perSecond float64, took time.Duration) {
	if f.usual == nil {
		return
	}
	if f.now == nil {
		f.now = map[string]bool{}
	}
	f.now[step] = true
	u, known := f.usual.steps[step]
	if !known || u.took <= 0 {
		return
	}
	share := float64(took) / float64(u.took)
	if u.rows > 0 {
		share = float64(rows) / float64(u.rows)
	}
	share = min(share, 1)
	f.done += time.Duration(share * float64(u.took))
	left := time.Duration((1 - share) * float64(u.took))
	if u.rows > 0 && perSecond > 0 {
		left = time.Duration(max(0, float64(u.rows-rows)) / perSecond * float64(time.Second))
	}
	f.left = max(f.left, left)
}

// mostPercent is what an execution reaches that has not ended.
const mostPercent = 99

// result is nil where the past says nothing.
func (f *forecast) result() (percent, left *float64) {
	if f.usual == nil {
		return nil, nil
	}
	var all, waiting time.Duration
	done := f.done
	for name, u := range f.usual.steps {
		all += u.took
		switch {
		case f.over[name] || f.passed[name] && !f.now[name]:
			done += u.took
		case !f.now[name]:
			waiting += u.took
		}
	}
	if all <= 0 {
		return nil, nil
	}
	if f.usual.took > 0 && f.usual.took < all { // some of them run side by side
		waiting = time.Duration(float64(waiting) * float64(f.usual.took) / float64(all))
	}
	p := min(float64(int64(1000*float64(done)/float64(all)))/10, mostPercent)
	l := seconds(f.left + waiting)
	return &p, &l
}
