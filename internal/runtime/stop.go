package runtime

import (
	"context"
	"sync"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type stop struct {
	once   sync.Once
	done   chan struct{}
	ended  chan struct{}
	mu     sync.Mutex
	ofJob  bool
	worker <-chan struct{}
}

func newStop(worker <-chan struct{}) *stop {
	s := &stop{done: make(chan struct{}), ended: make(chan struct{}), worker: worker}
	go func() {
		select {
		case <-worker:
			s.once.Do(func() { close(s.done) })
		case <-s.done:
		case <-s.ended:
		}
	}()
	return s
}

func (s *stop) close() { close(s.ended) }

// Requested implements model.StopSignal.
func (s *stop) Requested() bool {
	select {
	case <-s.done:
		return true
	case <-s.worker:
		return true
	default:
		return false
	}
}

// Done implements model.StopSignal.
func (s *stop) Done() <-chan struct{} { return s.done }

// Request stops the job.
func (s *stop) Request() {
	s.mu.Lock()
	s.ofJob = true
	s.mu.Unlock()
	s.once.Do(func() { close(s.done) })
}

func (s *stop) isOfJob() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ofJob
}

// leaving gives back a partition that stopped with the worker, or with a lease
// that could not be renewed.
type leaving struct {
	ports.Transitions
	parts    ports.Assignments
	stop     *stop
	lease    model.Lease
	released bool
}

// EndStep implements ports.Transitions.
func (l *leaving) EndStep(ctx context.Context, ref ports.StepRef, change ports.StepChange) (core.Answer, error) {
	stopped := change.To == core.StatusStopped && !l.stop.isOfJob()
	cut := change.To == core.StatusFailed && l.lease.Err() != nil
	if !stopped && !cut {
		return l.Transitions.EndStep(ctx, ref, change)
	}
	if err := l.parts.ReleasePartition(ctx, ref, ""); err != nil {
		return core.Rejected, err
	}
	l.released = true
	return core.Applied, nil
}
