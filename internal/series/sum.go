package series

import (
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Sum adds lines up at the same times: the first is the begin, the last the end.
type Sum struct {
	from  time.Time
	every time.Duration
	at    []core.Counters
	// ended[i] has the final counters of the lines that ended before time i, and not before time i-1.
	ended []core.Counters
}

// NewSum returns a sum with at most Most times from a begin to an end. They are at least a second apart, or a
// tenth of a shorter time.
func NewSum(from, to time.Time) *Sum {
	took := max(to.Sub(from), 0)
	every := max(took/(Most-1)+1, min(time.Second, took/10), time.Millisecond)
	n := int((took + every - 1) / every) // the last step may be shorter
	return &Sum{from: from, every: every, at: make([]core.Counters, n+1), ended: make([]core.Counters, n+2)}
}

// Every is the time between two times.
func (s *Sum) Every() time.Duration { return s.every }

// Add adds a line that begins at a time. Between two samples its counters grow evenly, after the last one they
// stay.
func (s *Sum) Add(begin time.Time, line []Sample) {
	if len(line) == 0 {
		return
	}
	shift := begin.Sub(s.from)
	i, next := s.after(shift+line[0].At), 0
	for ; i < len(s.at); i++ {
		at := time.Duration(i)*s.every - shift
		for next < len(line) && line[next].At <= at {
			next++
		}
		if next == len(line) {
			break
		}
		s.at[i] = s.at[i].Add(between(line[next-1], line[next], at))
	}
	if i < len(s.ended) {
		s.ended[i] = s.ended[i].Add(line[len(line)-1].Counters)
	}
}

// after is the first time that is not before d.
func (s *Sum) after(d time.Duration) int {
	if d <= 0 {
		return 0
	}
	return int((d + s.every - 1) / s.every)
}

func between(a, b Sample, at time.Duration) core.Counters {
	if at <= a.At {
		return a.Counters
	}
	share := float64(at-a.At) / float64(b.At-a.At)
	from, to := valuesOf(a.Counters), valuesOf(b.Counters)
	for i := range from {
		if by := to[i] - from[i]; by != 0 {
			from[i] += int64(share * float64(by))
		}
	}
	return countersOf(from)
}

// Samples returns the sums at each of the times.
func (s *Sum) Samples(to time.Time) []Sample {
	list := make([]Sample, len(s.at))
	var over core.Counters
	for i := range s.at {
		over = over.Add(s.ended[i])
		list[i] = Sample{min(time.Duration(i)*s.every, to.Sub(s.from)), s.at[i].Add(over)}
	}
	return list
}
