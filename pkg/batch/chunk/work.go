package chunk

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// work is filled by a filler that touches nothing else, so that another work can commit (rule C19).
type work struct {
	began       time.Time
	start, next position
	last        bool
	// failure ended reading ahead (io.EOF at the end), handled when the work becomes current.
	failure error
	// isRead: reading ahead has ended. failedAhead are failures by index.
	isRead      bool
	failedAhead map[int]error
	// halted ends the preparation; nil if the work is current.
	halted *atomic.Bool
	// completes: its empty commit lets the writers complete.
	completes bool

	items    item.Items
	verdicts []verdict
	given    bool
	output   item.Items
	// withoutOutput are the items without an output, in order.
	processedFrom, processed int
	withoutOutput            []int
	// isEncoded: encodings match this output.
	encodings   []item.Encoding
	isEncoded   bool
	skips       []*skip
	skipsBefore int64
	rawBytes    int
	// firstWrite begins the time of attempts (rule C7).
	firstWrite time.Time
	// stateAt is the index up to which processors with a position are, or dirty. savepoint nil means the last
	// commit.
	stateAt   int
	savepoint *savepoint
	// failures inside the transaction, by index.
	failures map[int]int

	committedItems int
	committedReads int64
}

type verdict uint8

const (
	pending verdict = iota
	filtered
	skipped
	written
)

// skip is an item left out, until committed.
type skip struct {
	place        int // or for a failed read the number of items before it
	phase        core.Phase
	item         any // nil for a failed read
	raw          *item.RawText
	rawTruncated bool
	rawSum       string
	meta         item.Meta
	err          error
	announced    bool
}

// A failed read sorts before the item after it.
func (s *skip) order() int {
	if s.phase == core.PhaseRead {
		return 0
	}
	return 1
}

func (w *work) reset() {
	items, output := w.items, w.output
	items.Reset()
	output.Reset()
	*w = work{items: items, output: output, encodings: w.encodings, verdicts: w.verdicts[:0], withoutOutput: w.withoutOutput[:0], skips: w.skips[:0]}
}

func (w *work) begin(start position, skipsBefore int64) {
	start.Writers, start.Processors = nil, nil
	w.began, w.start, w.skipsBefore = time.Now(), start, skipsBefore
}

func (w *work) failAhead(i int, err error) {
	if w.failedAhead == nil {
		w.failedAhead = map[int]error{}
	}
	w.failedAhead[i] = err
}

func (w *work) extendVerdicts() {
	had := len(w.verdicts)
	w.verdicts = slices.Grow(w.verdicts, w.items.Len()-had)[:w.items.Len()]
	clear(w.verdicts[had:])
}

func (w *work) give(i int, v verdict) {
	w.verdicts[i], w.given = v, true
	if v != skipped {
		return
	}
	if i < w.stateAt { // a skipped item leaves no trace (rule C4a)
		w.stateAt = dirty
	}
	if w.savepoint != nil && i < w.savepoint.place {
		w.savepoint = nil
	}
}

func (w *work) unprocess(first int) {
	w.output.Reset()
	w.processedFrom, w.processed, w.withoutOutput = first, first, w.withoutOutput[:0]
}

func (w *work) leaveOut() {
	w.withoutOutput = append(w.withoutOutput, w.processed)
	w.processed++
}

func (w *work) outputsBefore(place int) int {
	left, _ := slices.BinarySearch(w.withoutOutput, place)
	return place - w.processedFrom - left
}

func (w *work) pendingUpTo(i int) int {
	if !w.given {
		return len(w.verdicts)
	}
	for i < len(w.verdicts) && w.verdicts[i] == pending {
		i++
	}
	return i
}

func (w *work) isEmpty() bool { return w.items.Len() == 0 && len(w.skips) == 0 }

func (w *work) pendingItems() []int {
	var list []int
	for i := w.committedItems; i < w.items.Len(); i++ {
		if w.verdicts[i] == pending {
			list = append(list, i)
		}
	}
	return list
}

// unfilter: processors may have filtered because of a transaction that is rolled back (rule C5).
func (w *work) unfilter() {
	for i := w.committedItems; i < len(w.verdicts); i++ {
		if w.verdicts[i] == filtered {
			w.verdicts[i] = pending
		}
	}
}

func (w *work) sortedSkips() []*skip {
	slices.SortStableFunc(w.skips, func(a, b *skip) int {
		return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.order(), b.order()))
	})
	return w.skips
}

// withTrailing includes all later skips.
func (w *work) count(upTo int, withTrailing bool) core.Counters {
	c := core.Counters{Read: int64(upTo - w.committedItems)}
	verdicts := w.verdicts[min(w.committedItems, len(w.verdicts)):min(upTo, len(w.verdicts))]
	if !w.given {
		verdicts = nil
	}
	for _, v := range verdicts {
		switch v {
		case filtered:
			c.Filter++
		case written:
			c.Write++
		case pending, skipped:
		}
	}
	for _, s := range w.skips {
		if s.place >= upTo && !withTrailing {
			continue
		}
		switch s.phase {
		case core.PhaseRead:
			c.ReadSkip++
		case core.PhaseProcess:
			c.ProcessSkip++
		case core.PhaseWrite:
			c.WriteSkip++
		}
	}
	return c
}

func (w *work) countedPosition(upTo int, withTrailing bool) position {
	at := position{Reader: w.start.Reader, Items: w.start.Items + w.committedReads + int64(upTo-w.committedItems)}
	for _, s := range w.skips {
		if s.phase == core.PhaseRead && (s.place < upTo || withTrailing) {
			at.Items++
		}
	}
	return at
}

func (w *work) committed(upTo int, withTrailing bool) {
	reads := int64(upTo - w.committedItems)
	left := w.skips[:0]
	for _, s := range w.skips {
		if s.place >= upTo && !withTrailing {
			left = append(left, s)
			continue
		}
		w.skipsBefore++
		if s.phase == core.PhaseRead {
			reads++
		}
	}
	w.skips, w.committedReads, w.committedItems = left, w.committedReads+reads, upTo
}
