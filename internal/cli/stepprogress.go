package cli

import (
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const (
	logInterval  = 5 * time.Second
	rateInterval = 500 * time.Millisecond
)

// Its partitions count as the step.
type stepProgress struct {
	name     string
	rate     rateMeter
	loggedAt time.Time
	parts    *partsProgress // nil if it has none so far
}

// Since the start at first, then over half a second or more.
type rateMeter struct {
	at     time.Time
	rows   int64
	last   float64
	moving bool
}

func (s *rateMeter) measure(now time.Time, rows int64) float64 {
	took := now.Sub(s.at)
	if took <= 0 || s.moving && took < rateInterval {
		return s.last
	}
	s.last = float64(rows-s.rows) / took.Seconds()
	if took >= rateInterval {
		s.at, s.rows, s.moving = now, rows, true
	}
	return s.last
}

// There may be thousands of them.
type partsProgress struct {
	step     core.StepExecutionID // of the partitioned step
	counters map[core.StepExecutionID]core.Counters
	total    core.Counters
	ended    map[core.Status]int
	warned   int
}

const maxPartWarnings = 5

// The caller holds l.mu.
func (l *eventLog) partOf(s core.StepExecution) *partsProgress {
	for id, running := range l.running {
		if part, ok := strings.CutPrefix(s.Name, running.name+":"); !ok || part == "" {
			continue
		}
		if running.parts == nil {
			running.parts = &partsProgress{
				step: id, counters: map[core.StepExecutionID]core.Counters{}, ended: map[core.Status]int{},
			}
		}
		return running.parts
	}
	return nil
}

func (l *eventLog) partStarted(s core.StepExecution) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	parts := l.partOf(s)
	if parts != nil {
		l.parts[s.ID] = parts
	}
	return parts != nil
}

// The log warns of the first failures; the partitioned step counts them all.
func (l *eventLog) partEnded(s core.StepExecution) (is, warns bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	parts, ok := l.parts[s.ID]
	if !ok {
		return false, false
	}
	delete(l.parts, s.ID)
	parts.add(s.ID, s.Counters)
	parts.ended[s.Status]++
	delete(parts.counters, s.ID)
	if s.Status == core.StatusFailed || s.Status == core.StatusUnknown {
		parts.warned++
		warns = parts.warned <= maxPartWarnings
	}
	return true, warns
}

func (p *partsProgress) add(id core.StepExecutionID, c core.Counters) {
	p.total = p.total.Add(c).Add(negative(p.counters[id]))
	p.counters[id] = c
}

func negative(c core.Counters) core.Counters {
	return core.Counters{
		Read: -c.Read, Filter: -c.Filter, Write: -c.Write,
		ReadSkip: -c.ReadSkip, ProcessSkip: -c.ProcessSkip, WriteSkip: -c.WriteSkip,
		Commit: -c.Commit, Rollback: -c.Rollback,
	}
}
