package chunk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// filler reads and processes works. It touches nothing but the work, the reader and its
// chains, and what a work needs of the step it has from the work (rule C19).
type filler struct {
	step      *Step
	stop      core.StopSignal
	listeners *listeners
	source    source
	// encoders are the writers; empty: nothing is encoded ahead.
	encoders []item.Encoder
	chains   []*chain // one for each goroutine that processes; none: no processors
	// states are the processors with a position, and committed what the last commit has of them.
	states    []state
	committed []json.RawMessage
	// independent says that items may be processed ahead.
	independent bool
	// stride is the number of items that are read before the next look for a stop.
	stride int
	// behind is what a reader said together with the last item in front of the position that it
	// went back to: it is about what follows.
	behind error
}

// source is the reader, with its optional interfaces.
type source struct {
	reader     item.Reader
	positioner item.Positioner
	marker     item.Marker
	skipper    item.Skipper
	accepter   item.ChangesAccepter
	raw        item.RawReader
	// hidesRaw says that no text may be stored: fields of the items are redacted.
	hidesRaw bool
}

func newSource(r item.Reader) source {
	c := r.Component()
	return source{
		reader: r, positioner: optional[item.Positioner](c), marker: optional[item.Marker](c), skipper: optional[item.Skipper](c),
		accepter: optional[item.ChangesAccepter](c), raw: optional[item.RawReader](c), hidesRaw: item.HidesFields(r.NewItems(0)),
	}
}

func newFiller(s *Step, stop core.StopSignal, parts Parts, l *listeners) (*filler, error) {
	f := &filler{step: s, stop: stop, listeners: l, source: newSource(parts.Reader), stride: 1}
	if len(parts.Processors) == 0 {
		return f, nil
	}
	if err := f.addStates(parts.Processors); err != nil {
		return nil, err
	}
	for range max(1, s.config.Concurrency) {
		c, err := newChain(parts.Processors, s.config.Size)
		if err != nil {
			return nil, err
		}
		f.chains = append(f.chains, c)
	}
	return f, nil
}

// newWork returns an empty work that the filler can fill.
func (f *filler) newWork() *work {
	w := &work{items: f.source.reader.NewItems(f.step.config.Size)}
	w.output = w.items
	if len(f.chains) > 0 {
		w.output = f.chains[0].newItems(f.step.config.Size)
	}
	return w
}

// fill reads a chunk and processes it, unless it is processed inside the transaction.
func (f *filler) fill(ctx context.Context, w *work) error {
	if err := f.readToPosition(ctx, w); err != nil {
		return err
	}
	if f.step.config.ProcessInTransaction {
		return nil
	}
	return f.processRest(ctx, w)
}

// readToPosition reads a chunk and takes the position behind it. Where that fails, or a component
// ends the goroutine, what was processed ahead does not count: nothing is to be processed yet
// (rule C19).
func (f *filler) readToPosition(ctx context.Context, w *work) (err error) {
	done := false
	defer func() {
		if !done {
			w.unfilter()
		}
	}()
	if err = f.read(ctx, w); err == nil && !w.isEmpty() {
		w.next, err = f.nextPosition(w)
	}
	done = err == nil
	return err
}

// prepare fills a work that is not in hand yet, as far as no decision is needed: the first
// failed read, or failure to process an item, ends it. fill then handles that failure and what
// is left, when all before the work is committed (rule C19).
func (f *filler) prepare(ctx context.Context, w *work) {
	w.failure = f.readInStrides(ctx, w, f.step.config.Size)
	w.isRead = true
	w.extendVerdicts()
	if f.independent && !f.isToEnd(w) {
		f.processAhead(ctx, w)
	}
}

// isToEnd reports whether the filling of a work ends where it is: a stop is requested (rule C14),
// or it is done ahead, and the work before it has failed.
func (f *filler) isToEnd(w *work) bool {
	return f.stop.Requested() || w.halted != nil && w.halted.Load()
}

// encode lets the writers encode the output of a work that is whole. What one cannot encode it
// meets again when it writes.
func (f *filler) encode(w *work) {
	isWhole := f.independent && (w.failure == nil || isEnd(w.failure)) && (len(f.chains) == 0 || w.processed == w.items.Len())
	if !isWhole || len(f.encoders) == 0 || w.output.Len() == 0 || f.isToEnd(w) {
		return
	}
	if w.encodings == nil {
		w.encodings = make([]item.Encoding, len(f.encoders))
		for i, e := range f.encoders {
			w.encodings[i] = e.NewEncoding()
		}
	}
	w.isEncoded = nil == guarded(func() error {
		for _, e := range w.encodings {
			if e == nil {
				continue
			}
			if err := e.Encode(w.output); err != nil {
				return err
			}
		}
		return nil
	})
}

// read reads a chunk. A skipped read does not use a place (rule C1), but their number
// ends a chunk as well, so that skips, memory and a stop have a bound (rule C1a).
func (f *filler) read(ctx context.Context, w *work) error {
	if f.behind != nil {
		w.failure, f.behind = f.behind, nil
	}
	for w.failure != nil || w.items.Len() < f.step.config.Size && len(w.skips) < f.step.config.MaxSkippedReads && w.rawBytes < maxRawBytes {
		err := f.readUpTo(ctx, w, f.step.config.Size)
		if err == nil {
			break
		}
		if isEnd(err) {
			w.last = true
			break
		}
		if err := f.skipRead(ctx, w, err); err != nil {
			return fmt.Errorf("read: %w", err)
		}
	}
	w.extendVerdicts()
	return nil
}

// isEnd reports the end of the data. It is io.EOF itself and never an error that
// wraps it: that would be a failure in the middle, and the rest would be lost.
func isEnd(err error) bool { return err == io.EOF } //nolint:errorlint // see above

// readUpTo reads until there are want items, the data ends, a stop is requested or a
// read fails for good. A read that consumed nothing is retried on the same item (rules
// C1, C2).
func (f *filler) readUpTo(ctx context.Context, w *work, want int) error {
	attempt, at, began := 0, -1, time.Time{}
	for {
		err := w.failure
		if w.failure = nil; err == nil {
			err = f.readInStrides(ctx, w, want)
		}
		if err == nil || isEnd(err) {
			return err
		}
		if w.items.Len() != at {
			attempt, at, began = 0, w.items.Len(), time.Now()
		}
		attempt++
		err = f.listeners.onReadError(ctx, err)
		if item.IsConsumed(err) || !f.step.mayRetry(ctx, err, attempt, began) {
			return core.Exhausted(err, attempt)
		}
		if err := f.beforeRetry(ctx, core.PhaseRead, attempt, err); err != nil {
			return err
		}
	}
}

// strideTime is about how long a reader reads before the next look for a stop.
const (
	strideTime = time.Millisecond
	maxStride  = 1 << 20
)

// readInStrides reads many items with one call of the reader, unless a listener wants
// each. A stop ends it without an error: what was read is the chunk (rule C14).
func (f *filler) readInStrides(ctx context.Context, w *work, want int) error {
	if f.listeners.wantReads() {
		return f.readOneByOne(ctx, w, want)
	}
	for w.items.Len() < want && !f.isToEnd(w) {
		began, next := time.Now(), min(want, w.items.Len()+f.stride)
		if err := guarded(func() error { return f.source.reader.Fill(ctx, w.items, next) }); err != nil {
			return err
		}
		if time.Since(began) < strideTime {
			f.stride = min(2*f.stride, maxStride)
		} else {
			f.stride = max(1, f.stride/2)
		}
	}
	return nil
}

func (f *filler) readOneByOne(ctx context.Context, w *work, want int) error {
	for w.items.Len() < want && !f.stop.Requested() {
		if err := f.listeners.beforeRead(ctx); err != nil {
			return err
		}
		if err := guarded(func() error { return f.source.reader.Fill(ctx, w.items, w.items.Len()+1) }); err != nil {
			return err
		}
		if err := f.listeners.afterRead(ctx, w.items.At(w.items.Len()-1)); err != nil {
			return err
		}
	}
	return nil
}

// maxRawBytes bounds the texts of failed reads that a chunk holds, and stores in one
// statement (rule C1a).
const maxRawBytes = 4 << 20

// skipRead skips the item whose read failed, if the reader can step over it.
func (f *filler) skipRead(ctx context.Context, w *work, err error) error {
	if err := f.canStepOver(ctx, err); err != nil {
		return err
	}
	if err := f.step.trySkip(ctx, w, core.PhaseRead, w.items.Len(), err); err != nil {
		return err
	}
	if err := f.keepRaw(w, err); err != nil {
		return err
	}
	return f.stepOver(ctx, err)
}

// keepRaw adds the text of the item whose read failed to its skip, where the reader has it.
func (f *filler) keepRaw(w *work, failure error) error {
	if f.source.raw == nil || !item.IsConsumed(failure) {
		return nil
	}
	var raw item.RawText
	if err := guarded(func() error { raw = f.source.raw.RawText(); return nil }); err != nil {
		return fmt.Errorf("text of an item that could not be read: %w", err)
	}
	left := w.skips[len(w.skips)-1]
	switch {
	case raw.Length == 0:
		return nil
	case f.source.hidesRaw:
		raw, left.rawTruncated = raw.Hidden(), true
	default:
		raw, left.rawTruncated, left.rawSum = raw.Bounded()
	}
	left.raw = &raw
	w.rawBytes += len(raw.Text)
	return nil
}

// canStepOver returns nil if the reader can step over the item whose read failed with
// err, and else the failure of the step.
func (f *filler) canStepOver(ctx context.Context, err error) error {
	switch {
	case item.IsConsumed(err), f.source.skipper != nil:
		return nil
	case f.step.config.Skip == nil || isFatal(ctx, err):
		return err
	}
	return &unskippableError{err}
}

// stepOver makes the reader step over the item whose read failed with err.
func (f *filler) stepOver(ctx context.Context, err error) error {
	if item.IsConsumed(err) {
		return nil
	}
	return guarded(func() error { return f.source.skipper.SkipItem(ctx) })
}

// unskippableError is the failure of a read whose reader cannot step over the item.
type unskippableError struct{ err error }

func (e *unskippableError) Error() string {
	return e.err.Error() + " (the reader cannot step over an item that it failed to read)"
}

func (e *unskippableError) Unwrap() error { return e.err }

// nextPosition returns the position behind the chunk. It is called right after the last
// item was read (rule C15).
func (f *filler) nextPosition(w *work) (position, error) {
	if f.source.positioner == nil {
		return w.countedPosition(w.items.Len(), true), nil
	}
	var at item.Position
	if err := guarded(func() (err error) { at, err = f.source.positioner.Position(); return err }); err != nil {
		return position{}, fmt.Errorf("position of the reader: %w", err)
	}
	return position{Reader: at.JSON()}, nil
}

// positionBehind returns the position behind the item before upTo (rule C15a): the
// reader's mark of that item where it makes marks, else the start of the chunk and the
// number of outcomes since. Later failed reads are counted if withTrailing.
func (f *filler) positionBehind(w *work, upTo int, withTrailing bool) (position, error) {
	if f.source.marker == nil || upTo == 0 || w.items.Mark(upTo-1) == nil {
		return w.countedPosition(upTo, withTrailing), nil
	}
	var mark item.Position
	if err := guarded(func() (err error) { mark, err = f.source.marker.PositionAt(w.items.Mark(upTo - 1)); return err }); err != nil {
		return position{}, fmt.Errorf("position of the reader behind an item: %w", err)
	}
	at := position{Reader: mark.JSON()}
	for _, s := range w.skips {
		if s.phase == core.PhaseRead && s.place >= upTo && withTrailing {
			at.Items++
		}
	}
	return at, nil
}

// discard reads n outcomes again that were committed before. A reader without a
// position of its own is read from its start. A read that fails as it did then is
// stepped over: its skip is committed and counted already.
func (f *filler) discard(ctx context.Context, w *work, n int64) error {
	for n > 0 {
		if f.stop.Requested() {
			return core.ErrStopped
		}
		w.items.Reset()
		err := f.readUpTo(ctx, w, int(min(n, int64(f.step.config.Size))))
		n -= int64(w.items.Len())
		if n == 0 {
			f.behind = err
			return nil
		}
		if err == nil {
			continue
		}
		if !isEnd(err) && f.step.mayHaveSkipped(ctx, err) {
			failure := err
			if err = f.canStepOver(ctx, failure); err == nil {
				err = f.stepOver(ctx, failure)
			}
			n--
		}
		if err != nil {
			return fmt.Errorf("return to the position of the last commit, %d items short: %w", n, notEnd(err))
		}
	}
	return nil
}

// notEnd keeps the end of the data from being taken for a success.
func notEnd(err error) error {
	if isEnd(err) {
		return errors.New("the data ends before it: the input is not what it was")
	}
	return err
}

// beforeRetry calls the listeners and waits before retry n (1-based). A stop ends the
// wait: the chunk in hand is then rolled back whole (rule C14).
func (f *filler) beforeRetry(ctx context.Context, phase core.Phase, n int, err error) error {
	if err := f.listeners.beforeRetry(ctx, phase, n, err); err != nil {
		return err
	}
	return f.step.config.Retry.Pause(ctx, f.stop.Done(), n, err)
}
