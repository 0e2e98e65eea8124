package chunk

import (
	"cmp"
	"encoding/json"
	"slices"
	"sync/atomic"
	"time"

	"github.com/surfin-batch/surfin/internal/fault"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// work is a chunk from its first read to the verdict on its last item. A filler fills it and touches
// nothing else, so that one work can be prepared while another one commits (rule C19); the pipeline
// commits it.
type work struct {
	began time.Time
	// start is the position before the first item, next the one after the last, both without the
	// writers'.
	start, next position
	// last means that the data ended.
	last bool
	// failure ended the reading ahead: io.EOF at the end of the data. It is handled when the work
	// becomes current.
	failure error
	// isRead means that reading ahead has ended. failedAhead are the failures to process items ahead,
	// by index, which are handled likewise.
	isRead      bool
	failedAhead map[int]error
	// halted, once true, ends the preparation; nil means that the work is current.
	halted *atomic.Bool
	// completes means that its commit, which has no items, lets the writers complete.
	completes bool

	items    item.Items // as read
	verdicts []verdict  // of each item
	// given means that a verdict was given: until then all items are pending.
	given bool
	// output holds the processors' outputs, in order; items itself if there are no processors.
	output item.Items
	// processed is the index up to which the processors have had the items, from processedFrom on.
	// withoutOutput are the indices of those without an output, in order.
	processedFrom, processed int
	withoutOutput            []int
	// encodings are the writers' encodings of the output made ahead, one per writer; isEncoded means
	// that they match this output.
	encodings []item.Encoding
	isEncoded bool
	// beyond are the positions of the writers that have written the encodings ahead, by index; nil means
	// that none has.
	beyond []item.Position
	// skips are not yet committed. skipsBefore is the number of skips of the step before them.
	skips       []*skip
	skipsBefore int64
	// rawBytes is the size of the texts of failed reads.
	rawBytes int
	// firstWrite is when the first attempt to write the work began (rule C7).
	firstWrite time.Time
	// stateAt is the index before which processors with a position have processed the items, without
	// skipped ones, or dirty. savepoint is a point to return to; nil means the last commit.
	stateAt   int
	savepoint *savepoint
	// failures counts failures to process an item inside the transaction, by index.
	failures map[int]int

	committedItems int   // items with a committed verdict
	committedReads int64 // reader outcomes with a committed verdict
}

// verdict is the result of an item.
type verdict uint8

const (
	pending verdict = iota
	filtered
	skipped
	written
)

// dirty is a work's stateAt after an item that changed a processor's state, and has no output.
const dirty = -1

// savepoint is the state of processors with a position before an item of a work.
type savepoint struct {
	place int
	at    []json.RawMessage
}

// skip is an item that is left out, until that is committed.
type skip struct {
	place int // the item, or for a failed read the number of items before it
	phase core.Phase
	item  any // nil for a failed read
	// raw is the stored text of a failed read, or nil. rawTruncated and rawSum are results of
	// item.RawText.Bounded.
	raw          *item.RawText
	rawTruncated bool
	rawSum       string
	fault        fault.Place // in characters of raw
	meta         item.Meta
	err          error
	announced    bool // the listeners were called
}

// order sorts a failed read before the item that follows it.
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

// begin makes the work the current one: everything before it is committed.
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

// unprocess discards the outputs: the processors get the items from first on again.
func (w *work) unprocess(first int) {
	w.output.Reset()
	w.processedFrom, w.processed, w.withoutOutput = first, first, w.withoutOutput[:0]
}

func (w *work) leaveOut() {
	w.withoutOutput = append(w.withoutOutput, w.processed)
	w.processed++
}

// outputsBefore returns the number of outputs of the items before a place that were processed.
func (w *work) outputsBefore(place int) int {
	left, _ := slices.BinarySearch(w.withoutOutput, place)
	return place - w.processedFrom - left
}

// pendingUpTo returns the index after the last of the consecutive pending items from i on.
func (w *work) pendingUpTo(i int) int {
	if !w.given {
		return len(w.verdicts)
	}
	for i < len(w.verdicts) && w.verdicts[i] == pending {
		i++
	}
	return i
}

// isEmpty reports whether nothing was read, not even a failed read.
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

// unfilter makes filtered items pending again: in a transaction that is rolled back the processors may
// have filtered because of its content (rule C5).
func (w *work) unfilter() {
	for i := w.committedItems; i < len(w.verdicts); i++ {
		if w.verdicts[i] == filtered {
			w.verdicts[i] = pending
		}
	}
}

// sortedSkips returns the skips in the order of the input, in which they are announced and stored.
func (w *work) sortedSkips() []*skip {
	slices.SortStableFunc(w.skips, func(a, b *skip) int {
		return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.order(), b.order()))
	})
	return w.skips
}

// count counts the outcomes from the last commit up to an item, with all later skips if
// withTrailing.
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
		case pending, skipped: // only read
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

// countedPosition returns the chunk's start with the number of outcomes up to an item.
func (w *work) countedPosition(upTo int, withTrailing bool) position {
	at := position{Reader: w.start.Reader, Items: w.start.Items + w.committedReads + int64(upTo-w.committedItems)}
	for _, s := range w.skips {
		if s.phase == core.PhaseRead && (s.place < upTo || withTrailing) {
			at.Items++
		}
	}
	return at
}

// committed notes that the outcomes up to an item are committed, with all later skips if withTrailing.
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
