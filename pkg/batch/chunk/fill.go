package chunk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/surfin-batch/surfin/internal/fault"
	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// filler reads and processes works. It touches only the work, the reader and its chains; all it needs
// of the step is in the work (rule C19).
type filler struct {
	step      *Step
	stop      model.StopSignal
	listeners *listeners
	source    source
	// encoders are the writers; empty means that nothing is encoded ahead.
	encoders []itemextra.Encoder
	chains   []*chain // one per processing goroutine; empty means no processors
	// states are the processors with a position, and committed their positions in the last commit.
	states    []state
	committed []json.RawMessage
	// independent means that items may be processed ahead.
	independent bool
	// stride is the number of items that are read before the next check for a stop.
	stride int
	// retried notifies the observers of a retry.
	retried func(ctx context.Context, n int, err error)
	// deferred is the reader's error with the last item before the position that it went back to: it
	// concerns the next read.
	deferred error
}

// trust is how the engine knows whether a failed Read has consumed its item, if its error does not say
// so (rule C1b).
type trust uint8

const (
	trusted trust = iota // it has not
	watched              // it has if the position changed, and its error is an item.ConsumedError then
	blind                // unknown
)

// source is the reader, with its optional interfaces.
type source struct {
	reader     item.Reader
	positioner item.Positioner
	marker     item.Marker
	skipper    item.Skipper
	accepter   itemextra.ChangesAccepter
	raw        item.RawReader
	trust      trust
	// hidesRaw means that no text may be stored: fields of the items are redacted.
	hidesRaw bool
}

// trustIn returns the trust in a reader, and starts watching its position if a Read may be retried.
func trustIn(r item.Reader, retries bool) trust {
	watcher, unknown := r.(itemextra.PositionWatcher)
	c := r.Component()
	switch {
	case !unknown, optional[item.Skipper](c) != nil, optional[item.Rereader](c) != nil:
		return trusted
	case retries && watcher.WatchPosition():
		return watched
	}
	return blind
}

func newSource(r item.Reader, retries bool) source {
	c := r.Component()
	return source{
		reader: r, trust: trustIn(r, retries), positioner: optional[item.Positioner](c), marker: optional[item.Marker](c), skipper: optional[item.Skipper](c),
		accepter: optional[itemextra.ChangesAccepter](c), raw: optional[item.RawReader](c), hidesRaw: item.HidesFields(r.NewItems(0)),
	}
}

func newFiller(s *Step, stop model.StopSignal, parts Parts, l *listeners) (*filler, error) {
	f := &filler{step: s, stop: stop, listeners: l, source: newSource(parts.Reader, s.config.Retry.Limit > 0), stride: 1, retried: func(context.Context, int, error) {}}
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

// readToPosition reads a chunk and takes the position after it. If that fails, or a component ends the
// goroutine, items processed ahead do not count: nothing is to be processed yet (rule C19).
func (f *filler) readToPosition(ctx context.Context, w *work) (err error) {
	done := false
	defer func() {
		if !done {
			w.unfilter()
		}
	}()
	if err = f.read(ctx, w); err == nil && !w.isEmpty() {
		w.next, err = f.source.nextPosition(w)
	}
	done = err == nil
	return err
}

// prepare fills a work ahead of its turn, as far as no decision is needed: the first failed read, or
// failure to process an item, ends it. fill then handles that failure and the rest, when everything
// before the work is committed (rule C19).
func (f *filler) prepare(ctx context.Context, w *work) {
	w.failure = f.readInStrides(ctx, w, f.step.config.Size)
	w.isRead = true
	w.extendVerdicts()
	if f.independent && !f.isToEnd(w) {
		f.processAhead(ctx, w)
	}
}

// isToEnd reports whether the filling of a work ends here: a stop is requested (rule C14), or it is
// done ahead, and the previous work has failed.
func (f *filler) isToEnd(w *work) bool {
	return f.stop.Requested() || w.halted != nil && w.halted.Load()
}

// encode lets the writers encode the output of a complete work. A writer that cannot encode it reports
// the error when it writes.
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

// read reads a chunk. A skipped read does not use a place (rule C1), but the number of skips ends a
// chunk too, so that skips, memory and a stop are bounded (rule C1a).
func (f *filler) read(ctx context.Context, w *work) error {
	if f.deferred != nil {
		w.failure, f.deferred = f.deferred, nil
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

// isEnd reports the end of the data. It is io.EOF itself and never an error that wraps it: that would
// be a failure in the middle, and the rest would be lost.
func isEnd(err error) bool { return err == io.EOF } //nolint:errorlint // see above

// readUpTo reads until there are want items, the data ends, a stop is requested or a read fails for
// good. A read that consumed nothing is retried on the same item (rules C1, C2).
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
		if retries := f.step.mayRetry(ctx, err, attempt, began); !retries || !f.source.mayReadAgain(err) {
			return model.Exhausted(f.consumption(ctx, err, retries), attempt)
		}
		if err := f.beforeRetry(ctx, core.PhaseRead, attempt, err); err != nil {
			return err
		}
	}
}

// mayReadAgain reports whether another Read cannot lose the item of one that failed with err.
func (r *source) mayReadAgain(err error) bool {
	return !item.IsConsumed(err) && (r.trust != blind || item.IsNotConsumed(err))
}

// consumption returns the failure of a Read marked with the fate of its item (rule C1b). retries means
// that it would have been retried if it had consumed nothing.
func (f *filler) consumption(ctx context.Context, err error, retries bool) error {
	switch {
	case f.step.mayHaveSkipped(ctx, err):
		if f.source.trust != trusted && !item.IsNotConsumed(err) {
			return item.Consumed(item.Meta{}, err)
		}
	case retries:
		return &unretriedError{err}
	}
	return err
}

// unretriedError is a failure of a Read that retry covers but that is not retried.
type unretriedError struct{ err error }

func (e *unretriedError) Error() string {
	return e.err.Error() + " (not retried: Read has consumed its item, or did not say that it has not: see batch.Consumed and batch.NotConsumed)"
}

func (e *unretriedError) Unwrap() error { return e.err }

// strideTime is about how long a reader reads before the next check for a stop.
const (
	strideTime = time.Millisecond
	maxStride  = 1 << 20
)

// readInStrides reads many items with one call of the reader, unless a listener needs each. A stop ends
// it without an error: the items read are the chunk (rule C14).
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

// maxRawBytes bounds the texts of failed reads that a chunk holds, and stores in one statement (rule
// C1a).
const maxRawBytes = 4 << 20

// skipRead skips the item of a failed read, if the reader can step over it.
func (f *filler) skipRead(ctx context.Context, w *work, err error) error {
	if err := f.canStepOver(ctx, err); err != nil {
		return err
	}
	if err := f.step.trySkip(ctx, w, core.PhaseRead, w.items.Len(), err); err != nil {
		return err
	}
	if err := f.source.keepRaw(w, err); err != nil {
		return err
	}
	return f.source.stepOver(ctx, err)
}

// keepRaw adds the text of an unreadable item to its skip, if the reader has it.
func (r *source) keepRaw(w *work, failure error) error {
	raw, err := r.rawOf(failure)
	left := w.skips[len(w.skips)-1]
	switch {
	case err != nil || raw.Length == 0:
		return err
	case r.hidesRaw:
		raw, left.rawTruncated = raw.Hidden(), true
	default:
		left.fault = fault.Of(failure, raw.Text)
		raw, left.rawTruncated, left.rawSum = raw.Bounded()
		left.fault = left.fault.Within(raw.Text)
	}
	left.raw = &raw
	w.rawBytes += len(raw.Text)
	return nil
}

// rawOf is the text of an unreadable item; its Length is 0 if the reader has none.
func (r *source) rawOf(failure error) (raw item.RawText, err error) {
	if r.raw == nil || !item.IsConsumed(failure) {
		return raw, nil
	}
	if err := guarded(func() error { raw = r.raw.RawText(); return nil }); err != nil {
		return raw, fmt.Errorf("text of an item that could not be read: %w", err)
	}
	return raw, nil
}

// canStepOver returns nil if the reader can step over the item after err, otherwise the failure of the
// step.
func (f *filler) canStepOver(ctx context.Context, err error) error {
	switch {
	case item.IsConsumed(err), f.source.skipper != nil:
		return nil
	case f.step.config.Skip == nil || isFatal(ctx, err):
		return err
	}
	return &unskippableError{err}
}

func (r *source) stepOver(ctx context.Context, err error) error {
	if item.IsConsumed(err) {
		return nil
	}
	return guarded(func() error { return r.skipper.SkipItem(ctx) })
}

// unskippableError is the failure of a read of an item that the reader cannot step over.
type unskippableError struct{ err error }

func (e *unskippableError) Error() string {
	return e.err.Error() + " (the reader cannot skip an item that it failed to read: implement SkipItem, or return batch.Consumed if the item is consumed)"
}

func (e *unskippableError) Unwrap() error { return e.err }

// nextPosition returns the position after the chunk. It is called right after the last item was read
// (rule C15).
func (r *source) nextPosition(w *work) (position, error) {
	if r.positioner == nil {
		return w.countedPosition(w.items.Len(), true), nil
	}
	var at item.Position
	if err := guarded(func() (err error) { at, err = r.positioner.Position(); return err }); err != nil {
		return position{}, fmt.Errorf("position of the reader: %w", err)
	}
	return position{Reader: at.JSON()}, nil
}

// positionAfter returns the position after the item before upTo (rule C15a): the reader's mark of that
// item if it makes marks, else the start of the chunk and the number of outcomes since. withTrailing
// counts later failed reads.
func (r *source) positionAfter(w *work, upTo int, withTrailing bool) (position, error) {
	if r.marker == nil || upTo == 0 || w.items.Mark(upTo-1) == nil {
		return w.countedPosition(upTo, withTrailing), nil
	}
	var mark item.Position
	if err := guarded(func() (err error) { mark, err = r.marker.PositionAt(w.items.Mark(upTo - 1)); return err }); err != nil {
		return position{}, fmt.Errorf("position of the reader after an item: %w", err)
	}
	at := position{Reader: mark.JSON()}
	for _, s := range w.skips {
		if s.phase == core.PhaseRead && s.place >= upTo && withTrailing {
			at.Items++
		}
	}
	return at, nil
}

// discard reads n committed outcomes again. A reader without a position of its own is read from its
// start. A read that fails again is stepped over: its skip is already committed and counted.
func (f *filler) discard(ctx context.Context, w *work, n int64) error {
	for n > 0 {
		if f.stop.Requested() {
			return core.ErrStopped
		}
		w.items.Reset()
		err := f.readUpTo(ctx, w, int(min(n, int64(f.step.config.Size))))
		n -= int64(w.items.Len())
		if n == 0 {
			f.deferred = err
			return nil
		}
		if err == nil {
			continue
		}
		if !isEnd(err) && f.step.mayHaveSkipped(ctx, err) {
			failure := err
			if err = f.canStepOver(ctx, failure); err == nil {
				err = f.source.stepOver(ctx, failure)
			}
			n--
		}
		if err != nil {
			return fmt.Errorf("return to the position of the last commit, %d items missing: %w", n, notEnd(err))
		}
	}
	return nil
}

// notEnd keeps the end of the data from being taken for a success.
func notEnd(err error) error {
	if isEnd(err) {
		return errors.New("the data ends before it: the input has changed")
	}
	return err
}

// beforeRetry calls the listeners and waits before retry n (1-based). A stop ends the wait: the current
// chunk is then rolled back whole (rule C14).
func (f *filler) beforeRetry(ctx context.Context, phase core.Phase, n int, err error) error {
	if err := f.listeners.beforeRetry(ctx, phase, n, err); err != nil {
		return err
	}
	f.retried(ctx, n, err)
	return f.step.config.Retry.Pause(ctx, f.stop.Done(), n, err)
}
