package job_test

import (
	"fmt"
	"sync"

	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// mortal is the repository of a process that dies at some write, just before or just after it.
type mortal struct {
	testengine.Around
	weather *weather
	stop    func()
	cancel  func()
	mu      sync.Mutex
	dead    bool
	cut     bool // stopped or cancelled
}

var errDead = fmt.Errorf("the process is dead: %w", core.ErrLostOwner)

func newMortal(w *weather) *mortal {
	m := &mortal{weather: w}
	m.Around = testengine.Around{Repository: w.Repository.Ports(), Do: func(name string, write func() error) error {
		if name == "Checkpoint" { // tasklets have none
			return write()
		}
		return m.live(write)
	}}
	return m
}

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
