package testmodel

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type result struct {
	Status    string // of the step; lost: it was killed
	Counters  core.Counters
	Skips     []string // stored by this launch, in their order
	Rows      []pair   // of the table, by all launches, in their order
	Trace     []string // the calls of components, listeners and transactions
	Processed []string // by workers, sorted; nil where it is not determined
	says      []string // the texts that the model expects in the step's error
}

const lost = "LOST"

func (r result) String() string {
	return fmt.Sprintf("%s %+v\n  trace %s\n  skips %q\n  rows %v\n  processed by workers %v",
		r.Status, r.Counters, strings.Join(r.Trace, " "), r.Skips, r.Rows, r.Processed)
}

type historyModel struct {
	s    *scenario
	rows []pair
	// A restart opens the reader before the place from, and skips as many outcomes (rule C15a).
	from, passed int
}

type slot struct {
	item     pair
	skip     core.Phase // the phase of the error that cost the item
	told     bool       // the skip listener
	filtered bool
	ready    bool // processed
	failures int  // one after the other to process it, inside of the transaction
	written  bool
}

func (s *slot) live() bool { return s.skip == "" && !s.filtered && !s.written }

var errKilled = errors.New("killed")

type failure struct{ says []string }

func (f *failure) Error() string { return strings.Join(f.says, ", ") }

func failed(cause error, says ...string) error { return &failure{append(says, cause.Error())} }

// attempt is one launch as the rules have it.
type attempt struct {
	*historyModel
	w    *world
	plan launch

	next     int           // the reader's
	chunk    []*slot       // the current chunk
	done     int           // slots of the chunk that are committed
	counters core.Counters // committed
	rolled   int64         // rollbacks
	skipped  int           // skips admitted (rule C3)
	commits  int
	stored   []string
	// Where the current chunk began.
	base struct{ from, passed int }
}

func (m *historyModel) launch(l launch) result {
	a := &attempt{historyModel: m, w: newWorld(m.s, l.Faults), plan: l}
	a.base.from, a.base.passed = m.from, m.passed
	err := a.run()
	r := result{Status: string(core.StatusCompleted), Counters: a.counters}
	r.Counters.Rollback = a.rolled
	var end *failure
	switch {
	case errors.Is(err, errKilled):
		r.Status, r.Counters = lost, a.counters
	case errors.As(err, &end):
		r.Status, r.says = string(core.StatusFailed), end.says
		a.tell(a.chunk[a.done:])
		r.Counters = r.Counters.Add(count(a.chunk[a.done:])) // rule C11
	}
	r.Skips, r.Trace, r.Rows = a.stored, a.w.trace, slices.Clone(m.rows)
	if r.Processed = a.w.processed; end != nil {
		r.Processed = nil // the work of other workers during the failure is not determined
	}
	slices.Sort(r.Processed)
	return r
}

// run is rules C1 and C5.
func (a *attempt) run() error {
	if err := a.pass(); err != nil {
		return err
	}
	for {
		a.chunk, a.done = nil, 0
		end, err := a.read()
		if err != nil {
			return a.roll(err)
		}
		if len(a.chunk) > 0 {
			if err := a.settle(); err != nil {
				return err
			}
		}
		if end {
			return nil
		}
		a.base.from, a.base.passed = a.from, a.passed
	}
}

func (a *attempt) roll(err error) error {
	a.rolled++
	return err
}

// pass reads again the items that have a verdict (rule C15a): none of them counts. A read that fails now is
// tried again like any other, and skipped if its error may be the skip of an earlier launch.
func (a *attempt) pass() error {
	a.next = a.from
	for range a.passed {
		var err error
		for n := 1; ; n++ {
			if _, err = a.w.read(a.next); err == nil || a.s.Reading == consumes || !a.again(err, n) {
				break
			}
		}
		switch {
		case err == nil:
		case !a.skippable(err) || a.s.Reading == stuck:
			return failed(err)
		case a.s.Reading == stepsOver:
			a.w.note("s%d", a.next)
		}
		a.next++
	}
	return nil
}

// read fills the chunk; end means that there are no more items (rules C1, C1a, C2).
func (a *attempt) read() (end bool, err error) {
	for items := 0; items < a.s.Size && len(a.chunk)-items < a.s.MaxSkips; {
		if a.next == len(a.s.Values) {
			return true, nil
		}
		s := &slot{}
		for n := 1; ; n++ {
			if s.item, err = a.w.read(a.next); err == nil {
				items++
				break
			}
			if a.s.Reading != consumes && a.again(err, n) {
				continue
			}
			if a.s.Reading == stuck {
				return false, failed(err)
			}
			if err := a.admit(s, core.PhaseRead, err); err != nil {
				return false, err
			}
			if a.s.Reading == stepsOver {
				a.w.note("s%d", a.next)
			}
			break
		}
		a.next++
		a.chunk = append(a.chunk, s)
	}
	return false, nil
}

// again and skippable are the classes; a panic has neither (rule C13).
func (a *attempt) again(err error, n int) bool {
	c := err.(*injected).Fault.Class
	return (c == retryable || c == both) && n <= a.s.RetryLimit
}

func (a *attempt) skippable(err error) bool {
	c := err.(*injected).Fault.Class
	return (c == skippable || c == both) && a.s.SkipLimit >= 0
}

// admit is rule C3: one limit over all phases.
func (a *attempt) admit(s *slot, phase core.Phase, err error) error {
	if !a.skippable(err) {
		return failed(err)
	}
	if a.skipped >= a.s.SkipLimit {
		return failed(err, fmt.Sprintf("skip limit of %d exceeded", a.s.SkipLimit))
	}
	a.skipped++
	s.skip = phase
	return nil
}

// refusal is the reason why a transaction did not commit although the step may
// continue.
type refusal struct {
	err  error
	slot *slot // that could not be processed; nil means that the writer failed
}

// settle is rules C6 and C7.
func (a *attempt) settle() error {
	for writes := 0; ; {
		refused, err := a.try(a.chunk, true)
		if err != nil || refused == nil {
			return err
		}
		if s := refused.slot; s != nil { // inside the transaction: rule C2 after a rollback
			if s.failures++; a.again(refused.err, s.failures) {
				continue
			}
			if err := a.admit(s, core.PhaseProcess, refused.err); err != nil {
				return err
			}
			continue
		}
		writes++
		switch {
		case a.again(refused.err, writes):
		case a.skippable(refused.err):
			return a.split(live(a.chunk))
		default:
			return failed(refused.err)
		}
	}
}

func live(group []*slot) []*slot {
	return slices.DeleteFunc(slices.Clone(group), func(s *slot) bool { return !s.live() })
}

// split is rule C7, and commits the outcomes after the last item.
func (a *attempt) split(list []*slot) error {
	isolate := a.halves
	if a.s.Isolate == chunk.IsolateEach {
		isolate = a.oneByOne
	}
	if err := isolate(list); err != nil || a.done == len(a.chunk) {
		return err
	}
	a.w.note("begin")
	return a.commit(len(a.chunk), false)
}

func (a *attempt) oneByOne(list []*slot) error {
	for _, s := range list {
		if err := a.isolate([]*slot{s}); err != nil {
			return err
		}
	}
	return nil
}

func (a *attempt) halves(list []*slot) error {
	if len(list) < 2 {
		return a.isolate(list)
	}
	middle := (len(list) + 1) / 2
	if err := a.isolate(list[:middle]); err != nil {
		return err
	}
	return a.isolate(list[middle:])
}

// isolate gives a group its verdict. The error of a larger group decides nothing: its halves decide, so that
// the outcome equals the outcome of one by one.
func (a *attempt) isolate(group []*slot) error {
	if len(group) == 0 {
		return nil
	}
	var refused *refusal
	for n := 1; ; n++ {
		var err error
		if refused, err = a.try(group, false); err != nil || refused == nil {
			return err
		}
		if !a.againInSplit(refused, n) {
			break
		}
	}
	if len(group) > 1 {
		return a.halves(group)
	}
	phase := core.PhaseWrite
	if refused.slot != nil {
		phase = core.PhaseProcess
	}
	if err := a.admit(group[0], phase, refused.err); err != nil {
		if phase == core.PhaseProcess && !a.s.InTx {
			return a.roll(err)
		}
		return err
	}
	a.w.note("begin")
	return a.commit(slices.Index(a.chunk, group[0])+1, false) // rule C8a
}

// againInSplit is rule C7: a write error that is not transient is the verdict of its item.
func (a *attempt) againInSplit(refused *refusal, n int) bool {
	return refused.slot != nil && a.s.InTx && a.again(refused.err, n)
}

func (a *attempt) try(group []*slot, whole bool) (*refusal, error) {
	if !a.s.InTx {
		if refused, err := a.process(group, whole); refused != nil || err != nil {
			return refused, err
		}
	}
	if !a.s.InTx && !whole && len(live(group)) == 0 {
		return nil, nil // all filtered by now: they commit with the following ones
	}
	a.w.note("begin")
	if a.s.InTx {
		if refused, _ := a.process(group, whole); refused != nil {
			a.w.note("rollback")
			return refused, a.roll(nil)
		}
	}
	out := live(group)
	if len(out) > 0 {
		items := make([]pair, len(out))
		for i, s := range out {
			items[i] = s.item
		}
		if _, err := a.w.write(items); err != nil {
			a.w.note("rollback")
			return &refusal{err: err}, a.roll(nil)
		}
	}
	for _, s := range out {
		s.written = true
	}
	if whole {
		isItem := func(s *slot) bool { return s.skip != core.PhaseRead }
		return nil, a.commit(len(a.chunk), slices.ContainsFunc(group, isItem))
	}
	return nil, a.commit(slices.Index(a.chunk, group[len(group)-1])+1, true)
}

// process is rules C2 and C4. An error is handled in place unless it may have broken a transaction. In a
// split the error is the verdict of a single item (rule C7).
func (a *attempt) process(group []*slot, whole bool) (*refusal, error) {
	for _, s := range live(group) {
		if a.s.Plain || s.ready && a.s.Keep {
			continue
		}
		for n := 1; ; n++ {
			filtered, err := a.w.process(s.item)
			if err == nil {
				s.filtered, s.ready, s.failures = filtered, true, 0
				break
			}
			if a.s.InTx {
				return &refusal{err, s}, nil
			}
			if a.again(err, n) {
				continue
			}
			if !whole {
				return &refusal{err, s}, nil
			}
			if err := a.admit(s, core.PhaseProcess, err); err != nil {
				return nil, a.roll(err)
			}
			break
		}
	}
	return nil, nil
}

// commit commits the slots before upTo (rules C5, C8, C11, C12).
func (a *attempt) commit(upTo int, counted bool) error {
	facts := a.chunk[a.done:upTo]
	a.tell(facts)
	a.w.note("commit")
	a.commits++
	end := ending("")
	if a.commits == a.plan.Commit {
		end = a.plan.End
	}
	switch end {
	case "", killAfter, deniedAfter: // it takes effect
	case killBefore:
		return errKilled
	case deniedBefore:
		for _, s := range facts {
			s.written = false
		}
		return a.roll(failed(errDenied))
	}
	a.counters = a.counters.Add(count(facts))
	if counted {
		a.counters.Commit++
	}
	a.counters.Rollback = a.rolled
	for _, s := range facts {
		if s.written {
			a.rows = append(a.rows, s.item)
		}
		if s.skip != "" {
			a.stored = append(a.stored, stored(s))
		}
	}
	a.done = upTo
	a.from, a.passed = a.base.from, a.base.passed+upTo
	if a.s.Restart == marks || a.s.Restart == seeks && upTo == len(a.chunk) {
		a.from, a.passed = a.from+a.passed, 0
	}
	if end == killAfter {
		return errKilled
	}
	return nil
}

func stored(s *slot) string {
	return fmt.Sprintf("%s line %d %v", s.skip, s.item.Place+1, s.item)
}

// tell calls the skip listeners, once per item and in the order of the items (rule C12).
func (a *attempt) tell(list []*slot) {
	for _, s := range list {
		switch {
		case s.skip == "" || s.told:
		case s.skip == core.PhaseRead:
			a.w.note("S read")
		default:
			a.w.note("S %s %d", s.skip, s.item.Place)
		}
		s.told = true
	}
}

func count(list []*slot) (c core.Counters) {
	for _, s := range list {
		switch {
		case s.skip == core.PhaseRead:
			c.ReadSkip++
			continue
		case s.skip == core.PhaseProcess:
			c.ProcessSkip++
		case s.skip == core.PhaseWrite:
			c.WriteSkip++
		case s.filtered:
			c.Filter++
		case s.written:
			c.Write++
		}
		c.Read++
	}
	return c
}
