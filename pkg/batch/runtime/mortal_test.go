package runtime_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// mortal is the repository as a process sees it that dies at some write, just before or
// just after it.
type mortal struct {
	core.JobRepository
	scene  *scene
	number int
	// parked is called when the process has parked an execution, and ended when it dies
	// or finds nothing to do three times.
	parked, ended func()

	mu    sync.Mutex
	dead  bool
	looks int
}

var errDead = fmt.Errorf("the process is dead: %w", core.ErrLostOwner)

// die lets others know.
func (m *mortal) die() {
	m.scene.mu.Lock()
	defer m.scene.mu.Unlock()
	m.scene.dead[m.number] = true
}

// strikes reports whether this write is the last one.
func (s *scene) strikes(write string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes = append(s.writes, write)
	return len(s.writes) == s.left
}

func (m *mortal) live(name string, write func() error) error {
	struck := m.scene.strikes(name)
	m.mu.Lock()
	if struck && m.ended != nil {
		defer m.ended()
	}
	m.dead = m.dead || struck && !m.scene.after
	dead := m.dead
	m.mu.Unlock()
	if dead {
		return errDead
	}
	err := write()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead = m.dead || struck; m.dead {
		return errDead
	}
	return err
}

func (m *mortal) Launch(ctx context.Context, r core.LaunchRequest) (launched core.Launched, err error) {
	err = m.live("Launch", func() (err error) { launched, err = m.JobRepository.Launch(ctx, r); return err })
	return launched, err
}

func (m *mortal) PlanPartitions(ctx context.Context, ref core.JobRef, plan core.PartitionPlan) (s []core.StepExecution, err error) {
	err = m.live("PlanPartitions", func() (err error) {
		s, err = m.JobRepository.PlanPartitions(ctx, ref, plan)
		return err
	})
	return s, err
}

func (m *mortal) Park(ctx context.Context, ref core.JobRef, p core.Parking) (a core.Answer, err error) {
	err = m.live("Park", func() (err error) { a, err = m.JobRepository.Park(ctx, ref, p); return err })
	if err == nil && m.parked != nil {
		m.parked()
	}
	return a, err
}

func (m *mortal) Resume(ctx context.Context, id core.JobExecutionID, req core.ResumeRequest) (r core.Resumed, err error) {
	err = m.live("Resume", func() (err error) { r, err = m.JobRepository.Resume(ctx, id, req); return err })
	return r, err
}

func (m *mortal) AssignPartition(ctx context.Context, req core.AssignRequest) (a *core.Assignment, err error) {
	err = m.live("AssignPartition", func() (err error) { a, err = m.JobRepository.AssignPartition(ctx, req); return err })
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.looks++; a != nil {
		m.looks = 0
	}
	if m.looks > 3 {
		m.ended()
	}
	return a, err
}

func (m *mortal) Checkpoint(ctx context.Context, ref core.StepRef, c core.Checkpoint) error {
	return m.live("Checkpoint", func() error { return m.JobRepository.Checkpoint(ctx, ref, c) })
}

func (m *mortal) ReleasePartition(ctx context.Context, ref core.StepRef, refused string) error {
	return m.live("ReleasePartition", func() error { return m.JobRepository.ReleasePartition(ctx, ref, refused) })
}

func (m *mortal) ChangeJob(ctx context.Context, ref core.JobRef, c core.JobChange) (a core.Answer, err error) {
	err = m.live("ChangeJob", func() (err error) { a, err = m.JobRepository.ChangeJob(ctx, ref, c); return err })
	return a, err
}

func (m *mortal) StartStep(ctx context.Context, ref core.JobRef, start core.StepStart) (s *core.StepExecution, err error) {
	err = m.live("StartStep", func() (err error) { s, err = m.JobRepository.StartStep(ctx, ref, start); return err })
	return s, err
}

func (m *mortal) EndStep(ctx context.Context, ref core.StepRef, c core.StepChange) (a core.Answer, err error) {
	err = m.live("EndStep", func() (err error) { a, err = m.JobRepository.EndStep(ctx, ref, c); return err })
	return a, err
}

func (m *mortal) SaveJobContext(ctx context.Context, ref core.JobRef, c *core.ExecutionContext) error {
	return m.live("SaveJobContext", func() error { return m.JobRepository.SaveJobContext(ctx, ref, c) })
}

func (m *mortal) SaveStepContext(ctx context.Context, ref core.StepRef, c *core.ExecutionContext) error {
	return m.live("SaveStepContext", func() error { return m.JobRepository.SaveStepContext(ctx, ref, c) })
}
