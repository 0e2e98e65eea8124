package sampling

import (
	"context"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/series"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type executor struct {
	recorder *Recorder
	inner    model.StepExecutor
}

// Execute implements model.StepExecutor: the step's observer samples its chunks.
func (e *executor) Execute(ctx context.Context, s model.Step, run *model.StepRun) (*core.StepExecution, error) {
	own := &sampled{recorder: e.recorder, began: time.Now(), next: run.Services.Observer}
	if of, is := own.next.(*sampled); is { // of the step that this one is a part of
		own.next = of.next
	}
	if own.next == nil {
		own.next = core.Observers()
	}
	if p := run.Data.Planned; p != nil {
		own.continues = run.Data.Resumed || p.Assigned > 1 || p.Counters != (core.Counters{})
	}
	run.Services.Observer = own
	record, err := e.inner.Execute(ctx, s, run)
	own.end()
	return record, err
}

// sampled is the observer of one step execution.
type sampled struct {
	recorder *Recorder
	next     core.Observer
	began    time.Time // the series begins, unless continued
	// continues means that an earlier process may have stored samples of the same record; only the storing
	// goroutine uses it after the first sample.
	continues bool
	id        core.StepExecutionID

	mu      sync.Mutex
	sampler series.Sampler
	since   time.Time // the begin of the series, by this process's clock
	last    mark      // of the last chunk
	written mark      // of the last chunk that is stored
	ended   bool
}

// mark counts the chunks that were sampled.
type mark int64

// Observe samples a chunk without a statement, an allocation or a lock that is held for long.
func (s *sampled) Observe(ctx context.Context, e core.Event) {
	if c, is := e.(core.ChunkCommitted); is {
		s.chunk(c)
	}
	s.next.Observe(ctx, e)
}

// Enter implements core.Scope.
func (s *sampled) Enter(ctx context.Context, e core.Event) context.Context {
	return core.Enter(ctx, s.next, e)
}

func (s *sampled) chunk(c core.ChunkCommitted) {
	if s.sample(c) {
		s.recorder.add(s)
	}
}

// sample reports whether it is the first one.
func (s *sampled) sample(c core.ChunkCommitted) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false // of an attempt that was abandoned
	}
	if first = s.last == 0; first {
		every := s.recorder.config.Heartbeat / samplesPerHeartbeat
		s.id, s.since, s.sampler = c.StepID, s.began, series.NewSampler(min(max(every, mostOften), leastOften))
	}
	s.sampler.Add(time.Since(s.since), c.Counters)
	s.last++
	return first
}

// end has the last samples of the step stored, without waiting; of a step that was shorter than a heartbeat it drops
// them.
func (s *sampled) end() {
	s.mu.Lock()
	s.ended = true
	some, needed := s.last > 0, s.isLong() && s.written < s.last
	s.mu.Unlock()
	switch {
	case !some:
	case !needed:
		s.recorder.forget(s)
	default:
		s.recorder.Beat()
	}
}

func (s *sampled) isLong() bool { return time.Since(s.began) >= s.recorder.config.Heartbeat }

func (s *sampled) isDue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isLong() && s.written < s.last
}

func (s *sampled) row() (ports.StepSeries, mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ports.StepSeries{Step: s.id, Samples: series.Encode(s.sampler.Samples()), Since: time.Since(s.since)}, s.last
}

// stored reports whether all samples of the ended step are stored.
func (s *sampled) stored(upTo mark) (over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written = upTo
	return s.ended && s.written == s.last
}

// precede puts stored samples first; the series began so long ago.
func (s *sampled) precede(samples []series.Sample, ago time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := time.Now().Add(-ago)
	s.sampler.Precede(samples, s.since.Sub(since))
	s.since = since
}
