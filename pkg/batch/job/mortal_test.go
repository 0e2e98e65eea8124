package job_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// mortal is the repository as a process sees it that dies at some write, just
// before or just after it.
type mortal struct {
	core.JobRepository
	weather *weather
	stop    func()
	cancel  func()
	mu      sync.Mutex
	dead    bool
	cut     bool // stopped or cancelled
}

var errDead = fmt.Errorf("the process is dead: %w", core.ErrLostOwner)

func (m *mortal) live(write func() error) error {
	before, after := m.strikes()
	m.mu.Lock()
	m.dead = m.dead || before
	dead := m.dead
	m.mu.Unlock()
	if dead {
		return errDead
	}
	err := write()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead = m.dead || after; m.dead {
		return errDead
	}
	return err
}

func (m *mortal) strikes() (before, after bool) {
	if m.weather.killAt != nil {
		return m.weather.killAt.strikes()
	}
	if m.weather.lightning(60) {
		m.noteCut()
		m.stop()
	}
	if m.weather.lightning(60) {
		m.noteCut()
		m.cancel()
	}
	return m.weather.lightning(40), m.weather.lightning(40)
}

func (m *mortal) Launch(ctx context.Context, r core.LaunchRequest) (launched core.Launched, err error) {
	err = m.live(func() (err error) { launched, err = m.JobRepository.Launch(ctx, r); return err })
	return launched, err
}

func (m *mortal) PlanPartitions(ctx context.Context, ref core.JobRef, plan core.PartitionPlan) (s []core.StepExecution, err error) {
	err = m.live(func() (err error) {
		s, err = m.JobRepository.PlanPartitions(ctx, ref, plan)
		return err
	})
	return s, err
}

func (m *mortal) BeginStep(ctx context.Context, ref core.StepRef) error {
	return m.live(func() error { return m.JobRepository.BeginStep(ctx, ref) })
}

func (m *mortal) ChangeJob(ctx context.Context, ref core.JobRef, c core.JobChange) (a core.Answer, err error) {
	err = m.live(func() (err error) { a, err = m.JobRepository.ChangeJob(ctx, ref, c); return err })
	return a, err
}

func (m *mortal) StartStep(ctx context.Context, ref core.JobRef, start core.StepStart) (s *core.StepExecution, err error) {
	err = m.live(func() (err error) { s, err = m.JobRepository.StartStep(ctx, ref, start); return err })
	return s, err
}

func (m *mortal) EndStep(ctx context.Context, ref core.StepRef, c core.StepChange) (a core.Answer, err error) {
	err = m.live(func() (err error) { a, err = m.JobRepository.EndStep(ctx, ref, c); return err })
	return a, err
}

func (m *mortal) SaveJobContext(ctx context.Context, ref core.JobRef, c *core.ExecutionContext) error {
	return m.live(func() error { return m.JobRepository.SaveJobContext(ctx, ref, c) })
}

func (m *mortal) SaveStepContext(ctx context.Context, ref core.StepRef, c *core.ExecutionContext) error {
	return m.live(func() error { return m.JobRepository.SaveStepContext(ctx, ref, c) })
}
