package testahead

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type thing struct{ Place int }

type injected struct {
	Fault fault
	Place int // of the current item; anyPlace means none
}

func (e *injected) Error() string {
	if e.Place == anyPlace {
		return e.Fault.String()
	}
	return fmt.Sprintf("%v at place %d", e.Fault, e.Place)
}

func (e *injected) IsRetryable() bool { return e.Fault.Kind != skippable && e.Fault.Kind != fatal }
func (e *injected) IsSkippable() bool { return e.Fault.Kind != retryable && e.Fault.Kind != fatal }

var (
	errCancelled = errors.New("cancelled by the test")
	errLease     = errors.New("the lease is over")
)

type world struct {
	s      *scenario
	faults []fault
	db     tx.Database
	target *target
	stop   func()
	use    registry.BuildContext
	cancel context.CancelCauseFunc

	mu        sync.Mutex
	calls     map[series]int
	fired     []int
	trace     []string
	unordered []string
	lease     error
}

type series struct {
	at point
	of int
}

func newWorld(s *scenario, faults []fault, db tx.Database, to *target) *world {
	return &world{s: s, faults: faults, db: db, target: to, calls: map[series]int{}, fired: make([]int, len(faults))}
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

func (w *world) noteProcess(format string, args ...any) {
	if w.s.Workers == 1 {
		w.note(format, args...)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unordered = append(w.unordered, fmt.Sprintf(format, args...))
}

func (w *world) meet(at point) error { return w.happen(series{at: at}, anyPlace, 0) }

func (w *world) meetItem(at point, place int) error { return w.happen(series{at, place}, place, 0) }

func (w *world) meetWrite(writer, place, batch int) error {
	return w.happen(series{atWrite, writer}, place, batch)
}

func (w *world) happen(c series, place, batch int) error {
	f, found := w.next(c, place, batch)
	if !found {
		return nil
	}
	e := &injected{f, place}
	switch f.Kind {
	case panics:
		panic(e)
	case leaves:
		runtime.Goexit()
	case stops:
		w.stop()
	case cancels:
		w.cancel(errCancelled)
	case expires:
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lease = errLease
	default:
		return e
	}
	return nil
}

func (w *world) next(c series, place, batch int) (f fault, found bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[c]++
	for i, f := range w.faults {
		switch {
		case f.At != c.at, f.Place != anyPlace && f.Place != place,
			f.Call > 0 && f.Call != w.calls[c],
			f.Times > 0 && w.fired[i] >= f.Times,
			batch < f.MinBatch:
			continue
		}
		w.fired[i]++
		return f, true
	}
	return fault{}, false
}

func (w *world) leaseErr() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lease
}

func mustMeet(err error) {
	if err != nil {
		panic(err)
	}
}
