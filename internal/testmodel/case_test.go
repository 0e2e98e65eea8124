//test:plain

package testmodel

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type class string

const (
	skippable class = "skippable"
	retryable class = "retryable"
	both      class = "both"
	fatal     class = "fatal"
	// panics: the component panics, with an error that would like to be retried and
	// skipped (rule C13).
	panics class = "panicking"
)

type fault struct {
	Phase core.Phase
	// Value is the value of the items that it happens to; any: of all.
	Value int
	// Call is the only call of the phase in this launch, Attempt the only one at the item, both from 1; 0
	// means each.
	Call, Attempt int
	// Times is how often it happens in a launch; 0 means always.
	Times    int
	MinBatch int
	Class    class
	// Wrapped: it comes inside of other errors.
	Wrapped bool
}

const anyValue = -1

func (f fault) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", f.Class, f.Phase)
	if f.Value != anyValue {
		fmt.Fprintf(&b, " of value %d", f.Value)
	}
	for _, n := range []struct {
		name string
		n    int
	}{{"call", f.Call}, {"attempt", f.Attempt}, {"times", f.Times}, {"min batch", f.MinBatch}} {
		if n.n > 0 {
			fmt.Fprintf(&b, ", %s %d", n.name, n.n)
		}
	}
	if f.Wrapped {
		b.WriteString(", wrapped")
	}
	return b.String()
}

// ending is an event at a commit in addition to the commit.
type ending string

const (
	// killBefore and killAfter: the database is unreachable from there on; the transaction is rolled back, or
	// committed.
	killBefore ending = "kill before"
	killAfter  ending = "kill after"
	// deniedBefore and deniedAfter: only that commit is reported as failed, and did nothing, or took effect
	// (rule C10).
	deniedBefore ending = "denied before"
	deniedAfter  ending = "denied after"
)

type launch struct {
	Faults []fault
	// Commit is the commit of the step (from 1) at which End happens; 0 means none.
	Commit int
	End    ending
}

// reading says how the source behaves.
type reading string

const (
	// stepsOver: a failed read consumes nothing, and the reader can step over it.
	stepsOver reading = "steps over"
	// consumes: a failed read has consumed the item.
	consumes reading = "consumes"
	// stuck: a failed read consumes nothing, and nothing can be done about it.
	stuck reading = "stuck"
)

type restarting string

const (
	// counts: at its start; the engine counts.
	counts restarting = "counts"
	// seeks: at the position that it had after the last chunk.
	seeks restarting = "seeks"
	// marks: at any item (item.Marker).
	marks restarting = "marks"
)

type scenario struct {
	Values     []int // of the items, in order of their places
	Plain      bool  // without a processor
	Filters    []int // values that the processor filters
	FilterFrom int   // from this attempt at the item on: a filter's answer may change
	Size       int
	MaxSkips   int // skipped reads that end a chunk
	SkipLimit  int // -1 means no skip policy
	RetryLimit int
	Keep       bool // outputs
	InTx       bool // processing
	Isolate    chunk.Isolation
	Workers    int
	Restart    restarting
	Reading    reading
	Listen     bool    // to single items, which makes the engine read them singly
	Ahead      bool    // chunks are read ahead
	Faults     []fault // of every launch: of the data, not of the moment
	Launches   []launch
}

func (s *scenario) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "values %v plain %v filters %v from %d size %d max skips %d skip %d retry %d keep %v in_tx %v isolate %s workers %d reader %s, %s listen %v ahead %v faults %v\n",
		s.Values, s.Plain, s.Filters, s.FilterFrom, s.Size, s.MaxSkips, s.SkipLimit, s.RetryLimit, s.Keep, s.InTx, s.Isolate, s.Workers, s.Restart, s.Reading, s.Listen, s.Ahead, s.Faults)
	for i, l := range s.Launches {
		fmt.Fprintf(&b, "  launch %d:", i+1)
		if l.Commit > 0 {
			fmt.Fprintf(&b, " %s commit %d;", l.End, l.Commit)
		}
		for _, f := range l.Faults {
			fmt.Fprintf(&b, " {%v}", f)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

const values = 8

// scenarios generates cases. rapid prefers small numbers and the first elements of a list: values that lead
// far into a step come first here.
func scenarios() *rapid.Generator[*scenario] {
	return rapid.Custom(func(t *rapid.T) *scenario {
		s := &scenario{
			Values:     rapid.SliceOfN(rapid.IntRange(0, values-1), rapid.SampledFrom([]int{6, 0, 12}).Draw(t, "least"), 20).Draw(t, "values"),
			Size:       rapid.SampledFrom([]int{4, 3, 5, 2, 6, 1, 7, 9, 8}).Draw(t, "size"),
			MaxSkips:   rapid.SampledFrom([]int{chunk.MinSkippedReads, 1, 2, 3}).Draw(t, "max skips"),
			SkipLimit:  rapid.SampledFrom([]int{100, 3, 5, 2, 1, 100, 0, -1}).Draw(t, "skip limit"),
			RetryLimit: rapid.IntRange(0, 3).Draw(t, "retry limit"),
			Keep:       rapid.Bool().Draw(t, "keep"),
			Isolate:    rapid.SampledFrom([]chunk.Isolation{chunk.IsolateEach, chunk.IsolateBisect}).Draw(t, "isolate"),
			Workers:    rapid.IntRange(1, 4).Draw(t, "workers"),
			Restart:    rapid.SampledFrom([]restarting{counts, seeks, marks}).Draw(t, "restart"),
			Reading:    rapid.SampledFrom([]reading{stepsOver, consumes, stepsOver, consumes, stuck}).Draw(t, "reading"),
			Listen:     rapid.Bool().Draw(t, "listen"),
			Ahead:      rapid.Bool().Draw(t, "ahead"),
		}
		s.InTx = s.Workers == 1 && !s.Keep && rapid.Bool().Draw(t, "in transaction")
		s.Filters = rapid.SliceOfNDistinct(rapid.IntRange(0, values-1), 0, 2, rapid.ID).Draw(t, "filters")
		s.FilterFrom = rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(t, "filters from")
		if s.Plain = rapid.IntRange(0, 5).Draw(t, "plain") == 0; s.Plain {
			s.Filters = nil
		}
		for range rapid.SampledFrom([]int{1, 0, 2, 3}).Draw(t, "faults of the data") {
			s.Faults = append(s.Faults, fault{
				Phase:   rapid.SampledFrom([]core.Phase{core.PhaseWrite, core.PhaseProcess, core.PhaseRead}).Draw(t, "phase"),
				Class:   rapid.SampledFrom([]class{skippable, both}).Draw(t, "class"),
				Value:   rapid.IntRange(0, values-1).Draw(t, "value"),
				Wrapped: rapid.Bool().Draw(t, "wrapped"),
			})
		}
		for range rapid.SampledFrom([]int{2, 1, 3, 4}).Draw(t, "launches") {
			s.Launches = append(s.Launches, s.launch(t))
		}
		return s
	})
}

// stable reports whether the result of an item does not depend on when and with which others it is tried.
func (s *scenario) stable() bool {
	if s.FilterFrom > 1 {
		return false
	}
	for _, l := range s.Launches {
		if l.Commit > 0 || slices.ContainsFunc(l.Faults, func(f fault) bool {
			return f.Call > 0 || f.Attempt > 0 || f.Times > 0 || f.MinBatch > 0
		}) {
			return false
		}
	}
	return true
}

// pure reports whether the processor's result for an item does not depend on when, and how often, it is
// processed.
func (s *scenario) pure(l launch) bool {
	return s.FilterFrom == 1 && !slices.ContainsFunc(l.Faults, func(f fault) bool {
		return f.Phase == core.PhaseProcess && (f.Call > 0 || f.Attempt > 0 || f.Times > 0)
	})
}

func (s *scenario) launch(t *rapid.T) launch {
	l := launch{}
	for range rapid.SampledFrom([]int{1, 2, 0, 3}).Draw(t, "faults") {
		l.Faults = append(l.Faults, s.fault(t))
	}
	// Too large a batch makes a split in which nothing has to be skipped; some items fail when they are
	// processed again.
	if rapid.IntRange(0, 3).Draw(t, "splits") == 0 {
		l.Faults = append(l.Faults, fault{Phase: core.PhaseWrite, Class: skippable, Value: anyValue, MinBatch: 2})
		if rapid.Bool().Draw(t, "second sight") {
			f := s.fault(t)
			f.Phase, f.Call, f.Times, f.MinBatch, f.Attempt = core.PhaseProcess, 0, 0, 0, 2
			l.Faults = append(l.Faults, f)
		}
	}
	if rapid.Bool().Draw(t, "ends") {
		l.Commit = rapid.SampledFrom([]int{3, 2, 4, 1, 5, 6, 8, 7}).Draw(t, "commit")
		l.End = rapid.SampledFrom([]ending{killBefore, killAfter, deniedBefore, deniedAfter}).Draw(t, "end")
	}
	return l
}

func (s *scenario) fault(t *rapid.T) fault {
	f := fault{
		Phase:   rapid.SampledFrom([]core.Phase{core.PhaseWrite, core.PhaseProcess, core.PhaseRead, core.PhaseWrite}).Draw(t, "phase"),
		Class:   rapid.SampledFrom([]class{skippable, both, retryable, skippable, both, retryable, fatal, panics}).Draw(t, "class"),
		Value:   rapid.SampledFrom([]int{0, 1, 2, 3, 4, 5, 6, 7, anyValue}).Draw(t, "value"),
		Wrapped: rapid.Bool().Draw(t, "wrapped"),
	}
	// With several workers the order is unknown: there an error belongs to an item and to an attempt at it.
	counted := f.Phase != core.PhaseProcess || s.Workers == 1
	switch rapid.IntRange(0, 5).Draw(t, "when") {
	case 0:
		if counted {
			f.Call = rapid.IntRange(1, 20).Draw(t, "call")
		}
	case 1, 3:
		f.Attempt = rapid.SampledFrom([]int{1, 2, 2, 3, 4}).Draw(t, "attempt")
	case 2:
		if counted {
			f.Times = rapid.IntRange(1, 4).Draw(t, "times")
		}
	}
	if f.Phase == core.PhaseWrite && rapid.IntRange(0, 5).Draw(t, "large") == 0 {
		f.MinBatch = rapid.IntRange(2, 6).Draw(t, "min batch")
	}
	return f
}
