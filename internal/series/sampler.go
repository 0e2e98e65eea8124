package series

import (
	"slices"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Most is the maximum number of samples of a step execution.
const Most = 240

// Sample has the committed counters of a step execution at a time.
type Sample struct {
	At       time.Duration // since the series began
	Counters core.Counters
}

// Sampler keeps at most Most samples of a step: when it is full it drops every second one and doubles its
// interval. The newest sample is always kept. It is not safe for concurrent use.
type Sampler struct {
	every   time.Duration
	samples []Sample
	// newest is the last sample; the next one replaces it if they are closer than the interval.
	newest Sample
	some   bool
}

// NewSampler returns a sampler with the interval that it begins with.
func NewSampler(every time.Duration) Sampler {
	return Sampler{every: max(every, time.Millisecond)}
}

// Add adds a sample, in the order of time. It allocates only while the list grows.
func (s *Sampler) Add(at time.Duration, c core.Counters) {
	if s.some && (len(s.samples) == 0 || s.newest.At-s.samples[len(s.samples)-1].At >= s.every) {
		s.keep(s.newest)
	}
	if s.some {
		at = max(at, s.newest.At)
	}
	s.newest, s.some = Sample{at, c}, true
}

func (s *Sampler) keep(sample Sample) {
	s.samples = append(s.samples, sample)
	if len(s.samples) < Most { // one place is the newest sample's
		return
	}
	half := s.samples[:0]
	for i := 1; i < len(s.samples); i += 2 {
		half = append(half, s.samples[i])
	}
	s.samples, s.every = half, 2*s.every
}

// Precede puts the stored samples of an earlier process before the first own one; at is the time, by the
// stored series, at which the own series began. The series begins when the stored one did.
func (s *Sampler) Precede(stored []Sample, at time.Duration) {
	own, newest, some := s.samples, s.newest, s.some
	if len(stored) > 0 {
		at = max(at, stored[len(stored)-1].At)
	}
	s.samples, s.some = make([]Sample, 0, Most), false
	for _, sample := range stored {
		s.Add(sample.At, sample.Counters)
	}
	for _, sample := range own {
		s.Add(at+sample.At, sample.Counters)
	}
	if some {
		s.Add(at+newest.At, newest.Counters)
	}
}

// Samples returns at most Most samples, the newest one last.
func (s *Sampler) Samples() []Sample {
	if !s.some {
		return nil
	}
	return append(slices.Clone(s.samples), s.newest)
}
