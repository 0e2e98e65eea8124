package batchtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Fault makes a component of a chunk step fail. Without Match, Calls and Times it strikes at every call of
// its phase.
type Fault struct {
	// Step is empty for every step.
	Step string
	// Phase selects a reader's Read, a processor's Process or a writer's Write.
	Phase core.Phase
	// Component is a name in the job file, such as "table"; empty means the first one of the phase.
	Component string
	// Match selects the item that was read, the processor's input, or any of the writer's items; a row
	// arrives as item.Row. nil selects all.
	//
	// A read fault with Match consumes the item (item.ConsumedError); one without strikes before the read
	// and consumes nothing (rule C1).
	Match func(item any) bool
	// Calls are the calls that fail, from 1, counted over those that Match selects in this process; empty
	// means all.
	Calls []int
	// Times bounds the strikes; 0 means no bound.
	Times int
	// After fails the call after the component's work: a writer has then written rows that must be rolled
	// back. No effect on readers.
	After bool
	// Err is returned by the call, or it panics with Panic.
	Err   error
	Panic any
	// Do is called when the fault strikes; a fault with Do alone lets the call continue.
	Do func()
}

func (f Fault) validate() error {
	switch f.Phase {
	case core.PhaseRead, core.PhaseProcess, core.PhaseWrite:
	default:
		return fmt.Errorf("phase %q is none of read, process, write", f.Phase)
	}
	if f.Err == nil && f.Panic == nil && f.Do == nil {
		return errors.New("it has no failure: set Err, Panic or Do")
	}
	if slices.ContainsFunc(f.Calls, func(n int) bool { return n < 1 }) || f.Times < 0 {
		return errors.New("calls are numbered from 1, and times must not be negative")
	}
	return nil
}

// String names the fault in messages.
func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(string(f.Phase))
	if f.Component != "" {
		b.WriteString(" of " + f.Component)
	}
	if f.Step != "" {
		b.WriteString(" in step " + f.Step)
	}
	if len(f.Calls) > 0 {
		fmt.Fprintf(&b, ", calls %v", f.Calls)
	}
	switch {
	case f.Panic != nil:
		fmt.Fprintf(&b, ": panic %v", f.Panic)
	case f.Err != nil:
		b.WriteString(": " + f.Err.Error())
	}
	return b.String()
}

// Inject makes components fail: an option for batch.New, given once with all faults. In an [Env], use
// WithFaults.
func Inject(faults ...Fault) fx.Option { return NewFaults(faults...).Option() }

// Faults are faults with their counts, safe for concurrent use.
type Faults struct {
	mu    sync.Mutex
	armed []*armed
	wrong error
	made  map[place]int
}

type armed struct {
	Fault
	calls, fired int
}

// NewFaults starts all counts at zero.
func NewFaults(faults ...Fault) *Faults {
	f := &Faults{made: map[place]int{}}
	f.add(faults)
	return f
}

func (f *Faults) add(faults []Fault) {
	for _, fault := range faults {
		if err := fault.validate(); err != nil {
			f.wrong = errors.Join(f.wrong, fmt.Errorf("fault (%s): %w", fault, err))
		}
		f.armed = append(f.armed, &armed{Fault: fault})
	}
}

// Option returns the faults as an option for batch.New, see [Inject].
func (f *Faults) Option() fx.Option {
	if f.wrong != nil {
		return fx.Error(f.wrong)
	}
	if len(f.armed) == 0 {
		return fx.Options()
	}
	return fx.Decorate(f.registry)
}

// Parts returns parts with failing components, for steps made in Go. It panics if a fault is impossible.
func (f *Faults) Parts(step string, parts chunk.Parts) chunk.Parts {
	if f.wrong != nil {
		panic(f.wrong)
	}
	parts.Reader = f.reader(site{step: step, phase: core.PhaseRead}, parts.Reader)
	parts.Processors, parts.Writers = slices.Clone(parts.Processors), slices.Clone(parts.Writers)
	for i, p := range parts.Processors {
		parts.Processors[i] = f.processor(site{step: step, phase: core.PhaseProcess, index: i}, p)
	}
	for i, w := range parts.Writers {
		parts.Writers[i] = f.writer(site{step: step, phase: core.PhaseWrite, index: i}, w)
	}
	return parts
}

// Fired returns how often fault i has struck.
func (f *Faults) Fired(i int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.armed[i].fired
}

// Unfired names the faults that have not struck.
func (f *Faults) Unfired() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for _, a := range f.armed {
		if a.fired == 0 {
			names = append(names, a.String())
		}
	}
	return names
}

type site struct {
	step, component string
	phase           core.Phase
	index           int
}

func (a *armed) isAt(s site) bool {
	if a.Phase != s.phase || (a.Step != "" && a.Step != s.step) {
		return false
	}
	if a.Component == "" {
		return s.index == 0
	}
	return a.Component == s.component
}

func (f *Faults) at(s site) []*armed {
	var list []*armed
	for _, a := range f.armed {
		if a.isAt(s) {
			list = append(list, a)
		}
	}
	return list
}

// call counts a call for each fault that selects one of its items, and returns the first one that strikes.
func (f *Faults) call(list []*armed, has func(*armed) bool) *armed {
	f.mu.Lock()
	defer f.mu.Unlock()
	var strikes *armed
	for _, a := range list {
		if !has(a) {
			continue
		}
		a.calls++
		due := len(a.Calls) == 0 || slices.Contains(a.Calls, a.calls)
		if due && strikes == nil && (a.Times == 0 || a.fired < a.Times) {
			a.fired++
			strikes = a
		}
	}
	return strikes
}

func (f *Faults) missed(a *armed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a.fired--
}

func (a *armed) strike() error {
	if a == nil {
		return nil
	}
	if a.Do != nil {
		a.Do()
	}
	if a.Panic != nil {
		panic(a.Panic)
	}
	return a.Err
}
