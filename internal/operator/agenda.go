package operator

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/schedule"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// agenda puts executions and scheduled times on one time line.
type agenda struct {
	judge      *judge
	registered taskports.Definitions // may be nil
	history    ports.JobHistory      // may be nil
	recent     *recent

	mu sync.Mutex
	// usual are the medians of jobs with enough completed executions, which change slowly.
	usual map[string]usualDuration
}

type usualDuration struct {
	seconds float64
	read    time.Time
}

// usualFor is how long a median is kept.
const usualFor = time.Minute

func (s *agenda) ready(ctx context.Context) error {
	if s.history == nil {
		return core.ErrNotFound
	}
	return s.judge.schema.Prepare(ctx)
}

// scheduled returns the definitions with a schedule, by name.
func (s *agenda) scheduled(ctx context.Context, onlyEnabled bool) ([]taskports.Definition, error) {
	if s.registered == nil {
		return nil, nil
	}
	list, err := patiently(ctx, func(ctx context.Context) ([]taskports.Definition, error) {
		return s.registered.Definitions(ctx, taskports.DefinitionFilter{Scheduled: onlyEnabled})
	})
	return slices.DeleteFunc(list, func(d taskports.Definition) bool { return d.Schedule == nil }), err
}

// usualOf returns the median duration in seconds of the last completed executions of jobs. A job without one is
// missing.
func (s *agenda) usualOf(ctx context.Context, jobs ...string) (map[string]float64, error) {
	found := make(map[string]float64, len(jobs))
	var missing []string
	now := s.judge.now()
	s.mu.Lock()
	for _, name := range jobs {
		if u, known := s.usual[name]; known && now.Sub(u.read) < usualFor {
			found[name] = u.seconds
		} else {
			missing = append(missing, name)
		}
	}
	s.mu.Unlock()
	list, runs, err := s.recent.of(ctx, missing...)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.usual == nil || len(s.usual) > maxNames {
		s.usual = map[string]usualDuration{}
	}
	for _, job := range list {
		took := durations(job.Completed, runs)
		if len(took) == 0 {
			continue
		}
		found[job.JobName] = median(took)
		if len(took) >= usualRuns {
			s.usual[job.JobName] = usualDuration{found[job.JobName], now}
		}
	}
	return found, nil
}

// timesBetween returns the times of a schedule in [from, to), at most limit; more reports whether there are others.
func timesBetween(c *schedule.Cron, from, to time.Time, limit int) (times []schedule.Time, more bool) {
	for t := range c.All(from.Add(-time.Nanosecond)) {
		if !t.At.Before(to) {
			break
		}
		if len(times) == limit {
			return times, true
		}
		times = append(times, t)
	}
	return times, false
}
