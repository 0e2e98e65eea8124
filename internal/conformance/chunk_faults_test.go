package conformance_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

type injected struct {
	fault fault
	where string // the phase or callback
	value string // the item, if there is one
}

// Error names the item last, where it is found again in the store of skipped items.
func (e *injected) Error() string { return fmt.Sprintf("fault in %s, item=%s", e.where, e.value) }

func (e *injected) IsRetryable() bool {
	return e.fault.ErrorClass == "retryable" || e.fault.ErrorClass == "both"
}

func (e *injected) IsSkippable() bool {
	return e.fault.ErrorClass == "skippable" || e.fault.ErrorClass == "both"
}

type typed struct {
	name string
	of   *injected
}

func (t *typed) Error() string { return t.name + ": " + t.of.Error() }

type wrapping struct{ err error }

func (w *wrapping) Error() string { return "while working: " + w.err.Error() }
func (w *wrapping) Unwrap() error { return w.err }

func injectedIn(err error) (*injected, bool) {
	var t *typed
	if errors.As(err, &t) {
		return t.of, true
	}
	var i *injected
	ok := errors.As(err, &i)
	return i, ok
}

type occasion struct {
	where   string // a phase, or a callback
	call    int    // of the phase or callback, from 1
	value   string // of the item; empty if there is none
	attempt int    // at the item, from 1
	batch   int    // number of items written together
}

type faults struct {
	mu     sync.Mutex
	list   []fault
	fired  []int
	visits map[string]int
}

func newFaults(list []fault) *faults {
	return &faults{list: list, fired: make([]int, len(list)), visits: map[string]int{}}
}

func (f *faults) visit(where string, at any) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := fmt.Sprint(where, " ", at)
	f.visits[key]++
	return f.visits[key]
}

func (f *faults) forget(where string, at any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.visits, fmt.Sprint(where, " ", at))
}

// raise returns the error of the first fault that is due, or nil.
func (f *faults) raise(at occasion) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, x := range f.list {
		if !x.due(at, f.fired[i]) {
			continue
		}
		f.fired[i]++
		return newError(x, at)
	}
	return nil
}

func (f fault) due(at occasion, fired int) bool {
	where := f.Phase
	if f.Callback != "" {
		where = f.Callback
	}
	return where == at.where &&
		(f.Item == "" || f.Item == anyItem || f.Item == at.value) &&
		(f.Times == 0 || fired < int(f.Times)) &&
		(f.OnCall == nil || slices.Contains(f.OnCall, at.call)) &&
		(f.Attempts == nil || slices.Contains(f.Attempts, at.attempt)) &&
		(f.MinBatch == 0 || at.batch >= f.MinBatch)
}

func newError(x fault, at occasion) error {
	i := &injected{fault: x, where: at.where, value: at.value}
	var err error = i
	if x.Error != "" {
		err = &typed{name: x.Error, of: i}
	}
	if x.Wrapped {
		err = &wrapping{err}
	}
	return err
}

func TestAFaultHappensWhenAllThatItSaysHolds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault fault
		at    occasion
		want  bool
	}{
		{fault{Phase: phaseRead, Item: "2"}, occasion{where: phaseRead, value: "2"}, true},
		{fault{Phase: phaseRead, Item: "2"}, occasion{where: phaseRead, value: "3"}, false},
		{fault{Phase: phaseRead, Item: "2"}, occasion{where: phaseProcess, value: "2"}, false},
		{fault{Phase: phaseWrite, Item: anyItem, OnCall: []int{2, 3}}, occasion{where: phaseWrite, call: 3, value: "9"}, true},
		{fault{Phase: phaseWrite, Item: anyItem, OnCall: []int{2, 3}}, occasion{where: phaseWrite, call: 4, value: "9"}, false},
		{fault{Phase: phaseProcess, Item: "a", Attempts: []int{2}}, occasion{where: phaseProcess, value: "a", attempt: 1}, false},
		{fault{Phase: phaseProcess, Item: "a", Attempts: []int{2}}, occasion{where: phaseProcess, value: "a", attempt: 2}, true},
		{fault{Phase: phaseWrite, Item: anyItem, MinBatch: 3}, occasion{where: phaseWrite, batch: 2}, false},
		{fault{Phase: phaseWrite, Item: anyItem, MinBatch: 3}, occasion{where: phaseWrite, batch: 3}, true},
		{fault{Phase: phaseListener, Callback: "before_write", Item: "x"}, occasion{where: "before_write", value: "x"}, true},
		{fault{Phase: phaseListener, Callback: "before_chunk"}, occasion{where: "before_chunk"}, true},
		{fault{Phase: phaseListener, Callback: "before_chunk"}, occasion{where: "after_chunk"}, false},
	} {
		got := newFaults([]fault{c.fault}).raise(c.at)
		require.Equal(t, c.want, got != nil, "%+v at %+v", c.fault, c.at)
	}

	twice := newFaults([]fault{{Phase: phaseRead, Item: anyItem, Times: 2}})
	for i, want := range []bool{true, true, false} {
		require.Equal(t, want, twice.raise(occasion{where: phaseRead, value: "1"}) != nil, "call %d", i+1)
	}
}

func TestAFaultSpeaksForItselfUnlessItsTypeIsClassified(t *testing.T) {
	t.Parallel()
	both := newError(fault{Phase: phaseRead, ErrorClass: "both", Wrapped: true}, occasion{where: phaseRead, value: "7"})
	require.True(t, exception.IsRetryable(both))
	require.True(t, exception.IsSkippable(both))
	found, ok := injectedIn(both)
	require.True(t, ok)
	require.Equal(t, "7", found.value)

	of := newError(fault{Phase: phaseRead, ErrorClass: "both", Error: "Parent"}, occasion{where: phaseRead, value: "7"})
	require.False(t, exception.IsRetryable(of))
	require.False(t, exception.IsSkippable(of))
	found, ok = injectedIn(of)
	require.True(t, ok)
	require.Equal(t, "7", found.value)
}
