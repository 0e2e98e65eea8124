package testmodel

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type pair struct{ Place, Value int }

type injected struct {
	Fault fault
	Place int
}

func (e *injected) Error() string     { return fmt.Sprintf("%v at place %d", e.Fault, e.Place) }
func (e *injected) IsRetryable() bool { return e.Fault.Class != skippable && e.Fault.Class != fatal }
func (e *injected) IsSkippable() bool { return e.Fault.Class != retryable && e.Fault.Class != fatal }

func raise(err error) error {
	e, ok := err.(*injected)
	switch {
	case !ok:
		return err
	case e.Fault.Class == panics:
		panic(e)
	case e.Fault.Wrapped:
		return fmt.Errorf("while working: %w", errors.Join(errBeside, e))
	}
	return e
}

var errBeside = errors.New("another error")

// world is the environment of a launch. It keeps the trace of its calls.
type world struct {
	s      *scenario
	faults []fault

	mu        sync.Mutex
	fired     []int
	calls     map[core.Phase]int
	attempts  map[core.Phase]map[int]int // by place
	trace     []string
	processed []string // where workers trace the items that they process
	dead      bool
}

// kill ends the trace, except for items: none may be read, processed or
// written any more.
func (w *world) kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = true
}

func newWorld(s *scenario, faults []fault) *world {
	faults = slices.Concat(s.Faults, faults)
	return &world{
		s: s, faults: faults, fired: make([]int, len(faults)), calls: map[core.Phase]int{},
		attempts: map[core.Phase]map[int]int{core.PhaseRead: {}, core.PhaseProcess: {}, core.PhaseWrite: {}},
	}
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return
	}
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

// read returns the item at the place, which is in the source.
func (w *world) read(place int) (pair, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	it := pair{place, w.s.Values[place]}
	w.calls[core.PhaseRead]++
	err := w.fault(core.PhaseRead, it, 1)
	w.trace = append(w.trace, mark(fmt.Sprintf("r%d", place), err))
	return it, err
}

func (w *world) process(it pair) (filtered bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[core.PhaseProcess]++
	err = w.fault(core.PhaseProcess, it, 1)
	text := mark(fmt.Sprintf("p%d", it.Place), err)
	if w.s.Workers > 1 {
		w.processed = append(w.processed, text)
	} else {
		w.trace = append(w.trace, text)
	}
	filtered = w.attempts[core.PhaseProcess][it.Place] >= w.s.FilterFrom && slices.Contains(w.s.Filters, it.Value)
	return err == nil && filtered, err
}

// write returns how many items were reached before one of them failed.
func (w *world) write(items []pair) (reached int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[core.PhaseWrite]++
	var places []string
	for i, it := range items {
		err = w.fault(core.PhaseWrite, it, len(items))
		places = append(places, mark(fmt.Sprint(it.Place), err))
		if err != nil {
			break
		}
		reached = i + 1
	}
	w.trace = append(w.trace, fmt.Sprintf("w[%s]/%d", strings.Join(places, " "), len(items)))
	return reached, err
}

func mark(text string, err error) string {
	if err != nil {
		return text + "!"
	}
	return text
}

func (w *world) fault(phase core.Phase, it pair, batch int) error {
	w.attempts[phase][it.Place]++
	for i, f := range w.faults {
		switch {
		case f.Phase != phase, f.Value != anyValue && f.Value != it.Value,
			f.Call > 0 && f.Call != w.calls[phase],
			f.Attempt > 0 && f.Attempt != w.attempts[phase][it.Place],
			f.Times > 0 && w.fired[i] >= f.Times,
			batch < f.MinBatch:
			continue
		}
		w.fired[i]++
		return &injected{f, it.Place}
	}
	return nil
}
