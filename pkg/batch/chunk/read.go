package chunk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// read fills the chunk in hand; last says that the data ended. A skipped read
// does not use a place (rule C1), but their number ends a chunk as well, so that
// skips, memory and a stop have a bound (rule C1a).
func (p *pipeline) read(ctx context.Context) (last bool, err error) {
	for p.items.Len() < p.step.config.Size && len(p.skips) < p.step.config.MaxSkippedReads {
		err := p.fill(ctx, p.step.config.Size)
		if err == nil {
			break
		}
		if isEnd(err) {
			last = true
			break
		}
		if err := p.skipRead(ctx, err); err != nil {
			return false, fmt.Errorf("read: %w", err)
		}
	}
	p.verdicts = slices.Grow(p.verdicts[:0], p.items.Len())[:p.items.Len()]
	clear(p.verdicts)
	return last, nil
}

// isEnd reports the end of the data. It is io.EOF itself and never an error that
// wraps it: that would be a failure in the middle, and the rest would be lost.
func isEnd(err error) bool { return err == io.EOF } //nolint:errorlint // see above

// fill reads until there are want items, the data ends or a read fails for good.
// A read that consumed nothing is tried again on the same item (rules C1, C2).
func (p *pipeline) fill(ctx context.Context, want int) error {
	attempt, at, began := 0, -1, time.Time{}
	for {
		err := p.readAhead(ctx, want)
		if err == nil || isEnd(err) {
			return err
		}
		if p.items.Len() != at {
			attempt, at, began = 0, p.items.Len(), time.Now()
		}
		attempt++
		err = p.listen.onReadError(ctx, err)
		if core.IsConsumed(err) || !p.mayRetry(ctx, err, attempt, began) {
			return exhausted(err, attempt)
		}
		if err := p.again(ctx, core.PhaseRead, attempt, err); err != nil {
			return err
		}
	}
}

// strideTime is about how long a reader reads before somebody looks for a stop.
const (
	strideTime = time.Millisecond
	maxStride  = 1 << 20
)

// readAhead reads as much as can be read without being asked about single items. A
// stop ends it without an error: what was read is the chunk (rule C14).
func (p *pipeline) readAhead(ctx context.Context, want int) error {
	if p.listen.reads() {
		return p.readSingly(ctx, want)
	}
	for p.items.Len() < want && !p.exec.Stopping() {
		began, next := time.Now(), min(want, p.items.Len()+p.stride)
		if err := guarded(func() error { return p.reader.Fill(ctx, p.items, next) }); err != nil {
			return err
		}
		if time.Since(began) < strideTime {
			p.stride = min(2*p.stride, maxStride)
		} else {
			p.stride = max(1, p.stride/2)
		}
	}
	return nil
}

func (p *pipeline) readSingly(ctx context.Context, want int) error {
	for p.items.Len() < want && !p.exec.Stopping() {
		if err := p.listen.beforeRead(ctx); err != nil {
			return err
		}
		if err := guarded(func() error { return p.reader.Fill(ctx, p.items, p.items.Len()+1) }); err != nil {
			return err
		}
		if err := p.listen.afterRead(ctx, p.items.At(p.items.Len()-1)); err != nil {
			return err
		}
	}
	return nil
}

// again prepares another attempt: listeners, then the wait.
func (p *pipeline) again(ctx context.Context, phase core.Phase, n int, err error) error {
	if err := p.listen.beforeRetry(ctx, phase, n, err); err != nil {
		return err
	}
	return p.wait(ctx, n)
}

// exhausted says how often it was tried, where that was more than once.
func exhausted(err error, attempts int) error {
	if attempts < 2 {
		return err
	}
	return &RetryExhaustedError{Attempts: attempts, Err: err}
}

// skipRead leaves out the item whose read failed, if the reader can go on behind it.
func (p *pipeline) skipRead(ctx context.Context, err error) error {
	over, unable := p.stepOver(ctx, err)
	if unable != nil {
		return unable
	}
	if err := p.admit(ctx, core.PhaseRead, p.items.Len(), err); err != nil {
		return err
	}
	return over(ctx)
}

// stepOver answers what makes the reader go on behind an item whose read failed
// with err.
func (p *pipeline) stepOver(ctx context.Context, err error) (func(context.Context) error, error) {
	if core.IsConsumed(err) {
		return func(context.Context) error { return nil }, nil
	}
	skipper, ok := p.reader.Component().(core.ItemSkipper)
	if !ok {
		if p.step.config.Skip == nil || isFatal(ctx, err) {
			return nil, err
		}
		return nil, &unskippableError{err}
	}
	return func(ctx context.Context) error { return guarded(func() error { return skipper.SkipItem(ctx) }) }, nil
}

// unskippableError is the failure of a read whose reader cannot go on behind it.
type unskippableError struct{ err error }

func (e *unskippableError) Error() string {
	return e.err.Error() + " (the reader cannot step over an item that it failed to read)"
}

func (e *unskippableError) Unwrap() error { return e.err }

// nextPosition is asked right after the last item was read (rule C15).
func (p *pipeline) nextPosition() (position, error) {
	reader, ok := p.reader.Component().(core.Positioner)
	if !ok {
		return p.counted(p.items.Len(), true), nil
	}
	var at core.Position
	if err := guarded(func() (err error) { at, err = reader.Position(); return err }); err != nil {
		return position{}, fmt.Errorf("position of the reader: %w", err)
	}
	return position{Reader: at.JSON()}, nil
}

// within is the position behind the item before to (rule C15a): the reader's mark
// of that item where it makes marks, else the start of the chunk and the number
// of outcomes since. Failed reads behind it are counted either way.
func (p *pipeline) within(to int, all bool) (position, error) {
	marker, ok := p.reader.Component().(core.Marker)
	if !ok || to == 0 || p.items.Mark(to-1) == nil {
		return p.counted(to, all), nil
	}
	var mark core.Position
	if err := guarded(func() (err error) { mark, err = marker.PositionAt(p.items.Mark(to - 1)); return err }); err != nil {
		return position{}, fmt.Errorf("position of the reader behind an item: %w", err)
	}
	at := position{Reader: mark.JSON()}
	for _, s := range p.skips {
		if s.phase == core.PhaseRead && s.place >= to && all {
			at.Items++
		}
	}
	return at, nil
}

// counted is the position as the chunk's start and the number of outcomes since.
func (p *pipeline) counted(to int, all bool) position {
	at := position{Reader: p.start.Reader, Items: p.start.Items + p.passed + int64(to-p.settled)}
	for _, s := range p.skips {
		if s.phase == core.PhaseRead && (s.place < to || all) {
			at.Items++
		}
	}
	return at
}

// discard reads n outcomes again that were committed before. A reader without a
// position of its own is re-read from its start. What fails as it did then is
// stepped over: its skip is committed and counted already.
func (p *pipeline) discard(ctx context.Context, n int64) error {
	for n > 0 {
		if p.exec.Stopping() {
			return core.ErrStopped
		}
		p.items.Reset()
		err := p.fill(ctx, int(min(n, int64(p.step.config.Size))))
		n -= int64(p.items.Len())
		if err == nil {
			continue
		}
		if !isEnd(err) && n > 0 && p.passes(ctx, err) {
			over, unable := p.stepOver(ctx, err)
			if err = unable; err == nil {
				err = over(ctx)
			}
			n--
		}
		if err != nil {
			return fmt.Errorf("return to the position of the last commit, %d items short: %w", n, noEnd(err))
		}
	}
	return nil
}

// passes reports whether a failed read may have been a skip of an earlier attempt.
func (p *pipeline) passes(ctx context.Context, err error) bool {
	if isFatal(ctx, err) || p.step.config.Skip == nil {
		return false
	}
	ok, refused := p.policy(err, 0)
	var limit *SkipLimitError
	return ok || errors.As(refused, &limit)
}

// noEnd keeps the end of the data from being taken for a success.
func noEnd(err error) error {
	if isEnd(err) {
		return errors.New("the data ends before it: the input is not what it was")
	}
	return err
}
