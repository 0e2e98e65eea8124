package runtime_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// mortal is the repository as seen by a process that dies at some write, just before or just after
// it.
type mortal struct {
	testengine.Around
	scene  *scene
	number int
	// parked is called when the process has parked an execution, ended when it dies or finds
	// nothing to do three times.
	parked, ended func()

	mu    sync.Mutex
	dead  bool
	looks int
}

var errDead = fmt.Errorf("the process is dead: %w", core.ErrLostOwner)

func (m *mortal) die() {
	m.scene.mu.Lock()
	defer m.scene.mu.Unlock()
	m.scene.dead[m.number] = true
}

func (s *scene) strikes(write string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes = append(s.writes, write)
	return len(s.writes) == s.left
}

func newMortal(s *scene) *mortal {
	m := &mortal{scene: s, number: s.processes}
	m.Around = testengine.Around{Repository: s.Repository.Ports(), Do: m.live}
	return m
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

func (m *mortal) Ports() ports.Repository {
	all := m.Around.Ports()
	all.Parks, all.Assignments = m, m
	return all
}

func (m *mortal) Park(ctx context.Context, ref ports.JobRef, p ports.Parking) (core.Answer, error) {
	a, err := m.Around.Park(ctx, ref, p)
	if err == nil && m.parked != nil {
		m.parked()
	}
	return a, err
}

func (m *mortal) AssignPartition(ctx context.Context, req ports.AssignRequest) (*ports.Assignment, error) {
	a, err := m.Around.AssignPartition(ctx, req)
	m.looked(a != nil)
	return a, err
}

func (m *mortal) Work(ctx context.Context, req ports.AssignRequest) (ports.FoundWork, error) {
	found, err := m.Around.Work(ctx, req)
	if !found.Parts {
		m.looked(false)
	}
	return found, err
}

func (m *mortal) looked(found bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.looks++; found {
		m.looks = 0
	}
	if m.looks > 3 {
		m.ended()
	}
}
