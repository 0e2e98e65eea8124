package chunk

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// process processes the items without a verdict, including those processed before.
func (f *filler) process(ctx context.Context, w *work) error {
	if len(f.chains) == 0 {
		return nil
	}
	w.unprocess(w.committedItems)
	return f.processRest(ctx, w)
}

// processRest moves every unprocessed item through all processors, before the next item; the outputs
// are in w.output. An item that fails for good is skipped or fails the step (rule C2).
func (f *filler) processRest(ctx context.Context, w *work) error {
	if len(f.chains) == 0 {
		return nil
	}
	if f.inParallel(w) {
		failures := f.processShares(ctx, w, f.retryProcess)
		return f.giveVerdicts(ctx, w, failures)
	}
	return f.processInOrder(ctx, w, f.retryProcess, f.skipProcess)
}

// processAhead is processRest without decisions: it ends before the first item that fails, or, if
// goroutines share them, before all, and keeps the failures. fill takes them for first attempts.
func (f *filler) processAhead(ctx context.Context, w *work) {
	if len(f.chains) == 0 {
		return
	}
	if !f.inParallel(w) {
		end := func(_ context.Context, _ *work, _ int, err error) error { return err }
		if err := f.processInOrder(ctx, w, leaveFailed, end); err != nil {
			w.failAhead(w.processed, err)
		}
		return
	}
	failures := f.processShares(ctx, w, leaveFailed)
	for i, err := range failures {
		if err != nil && !errors.Is(err, item.ErrFilter) {
			w.failAhead(i, err)
		}
	}
	if w.failedAhead != nil {
		w.unprocess(0)
		return
	}
	_ = f.giveVerdicts(ctx, w, failures) //nolint:errcheck // nothing has failed
}

func (f *filler) inParallel(w *work) bool { return len(f.chains) > 1 && w.items.Len() > 1 }

// cure handles the failure of the first attempt at an item. It returns nil if the output is in the
// chain now, item.ErrFilter or the failure.
type cure = func(ctx context.Context, w *work, c *chain, i int, err error) error

// leaveFailed returns err unchanged: reading ahead never retries or skips.
func leaveFailed(_ context.Context, _ *work, _ *chain, _ int, err error) error { return err }

// retryProcess is the cure with the step's retries, unless the item is processed in the chunk's
// transaction.
func (f *filler) retryProcess(ctx context.Context, w *work, c *chain, i int, err error) error {
	return f.processAgain(ctx, w, c, i, err, !f.step.config.ProcessInTransaction, time.Now())
}

// processInOrder processes items with one chain, until failed returns an error for one.
func (f *filler) processInOrder(ctx context.Context, w *work, cured cure, failed func(ctx context.Context, w *work, i int, err error) error) error {
	c := f.chains[0]
	w.output.Truncate(w.outputsBefore(w.processed)) // a panic may have left outputs without noted items
	return guarded(func() error {
		for upTo := 0; w.processed < w.items.Len(); {
			if upTo <= w.processed {
				upTo = w.pendingUpTo(w.processed)
			}
			if upTo == w.processed {
				w.leaveOut() // it has its verdict
				continue
			}
			err := f.firstAttempt(ctx, w, c, upTo)
			if err == nil {
				continue
			}
			if isPanic(err) {
				return err
			}
			i := w.processed
			if !errors.Is(err, item.ErrFilter) {
				err = cured(ctx, w, c, i, err)
			}
			switch {
			case err == nil:
				w.output.Store(c.out)
				w.processed++
				continue
			case errors.Is(err, item.ErrFilter):
				w.give(i, filtered)
			default:
				if err := failed(ctx, w, i, err); err != nil {
					return err
				}
			}
			w.leaveOut()
		}
		return nil
	})
}

// firstAttempt is processRun, unless the first attempt at the item at w.processed was made ahead, and
// failed.
func (f *filler) firstAttempt(ctx context.Context, w *work, c *chain, upTo int) error {
	if err := w.failedAhead[w.processed]; err != nil {
		w.failedAhead = nil
		return err
	}
	return f.processRun(ctx, w, c, upTo)
}

// isPanic reports a panic, or the end of a goroutine, that happened ahead. It has no cure (rule C13).
func isPanic(err error) bool {
	_, is := err.(*panics.PanicError) //nolint:errorlint // not an error of the component that has one in its chain
	return is
}

// processRun processes the pending items from w.processed up to an index. It returns why the one at
// w.processed has no output; nil if all have one.
func (f *filler) processRun(ctx context.Context, w *work, c *chain, upTo int) (err error) {
	if c.whole != nil && len(f.states) == 0 && !f.listeners.wantProcesses() {
		w.processed, err = c.whole.ProcessAll(ctx, w.items, w.processed, upTo, w.output)
		return err
	}
	for ; w.processed < upTo; w.processed++ {
		if err := f.processOnce(ctx, w, c, w.processed); err != nil {
			return err
		}
		w.output.Store(c.out)
	}
	return nil
}

// skipProcess skips an item that could not be processed. Inside a transaction it returns the failure:
// the transaction is rolled back first.
func (f *filler) skipProcess(ctx context.Context, w *work, i int, err error) error {
	err = &processError{place: i, meta: w.items.Meta(i), err: err}
	if f.step.config.ProcessInTransaction {
		return err
	}
	return f.step.trySkip(ctx, w, core.PhaseProcess, i, err)
}

// processItem processes one item, with the step's retries if retry; began is the start of the time of
// all attempts. It returns nil, item.ErrFilter or the failure.
func (f *filler) processItem(ctx context.Context, w *work, c *chain, i int, retry bool, began time.Time) error {
	err := f.processOnce(ctx, w, c, i)
	if err == nil || errors.Is(err, item.ErrFilter) {
		return err
	}
	return f.processAgain(ctx, w, c, i, err, retry, began)
}

// processAgain is processItem after the first attempt, which has failed with err.
func (f *filler) processAgain(ctx context.Context, w *work, c *chain, i int, err error, retry bool, began time.Time) error {
	for attempt := 1; ; attempt++ {
		err = f.listeners.onProcessError(ctx, w.items, i, err)
		if !retry || !f.step.mayRetry(ctx, err, attempt, began) {
			return model.Exhausted(err, attempt)
		}
		if err := f.beforeRetry(ctx, core.PhaseProcess, attempt, err); err != nil {
			return err
		}
		if err = f.processOnce(ctx, w, c, i); err == nil || errors.Is(err, item.ErrFilter) {
			return err
		}
	}
}

func (f *filler) processOnce(ctx context.Context, w *work, c *chain, i int) error {
	if err := f.listeners.beforeProcess(ctx, w.items, i); err != nil {
		return err
	}
	if err := f.seek(ctx, w, i); err != nil {
		return err
	}
	if len(f.states) > 0 { // otherwise goroutines may share the work
		w.stateAt = dirty
	}
	w.items.Load(i, c.in)
	err := c.move(ctx)
	if err == nil || errors.Is(err, item.ErrFilter) {
		if len(f.states) > 0 {
			w.stateAt = i + 1
		}
		if failure := f.listeners.afterProcess(ctx, w.items, i, c.out, err == nil); failure != nil {
			return failure
		}
	}
	return err
}

// processShares divides the items among the chains. Outputs keep the order of the items (rule C17). It
// returns the failure of each item, or nil.
func (f *filler) processShares(ctx context.Context, w *work, cured cure) []error {
	open := w.pendingItems()
	from, _ := slices.BinarySearch(open, w.processed)
	open = open[from:]
	failures := make([]error, w.items.Len())
	share := (len(open) + len(f.chains) - 1) / len(f.chains)
	var running sync.WaitGroup
	for n, c := range f.chains {
		c.buffer.Reset()
		mine := open[min(n*share, len(open)):min((n+1)*share, len(open))]
		running.Go(func() {
			at := 0
			panics.GuardGoroutine(func() error {
				f.processShare(ctx, w, c, mine, cured, failures, &at)
				return nil
			}, func(err error) {
				if err != nil {
					failures[mine[at]] = err
				}
			})
		})
	}
	running.Wait()
	w.failedAhead = nil
	for _, c := range f.chains {
		w.output.AppendAll(c.buffer)
	}
	for w.processed < w.items.Len() {
		if failures[w.processed] != nil || w.verdicts[w.processed] != pending {
			w.leaveOut()
		} else {
			w.processed++
		}
	}
	return failures
}

// giveVerdicts leaves out filtered items, and skips failed ones, in the order of the items: the first
// failure counts.
func (f *filler) giveVerdicts(ctx context.Context, w *work, failures []error) error {
	for i, err := range failures {
		switch {
		case err == nil:
		case errors.Is(err, item.ErrFilter):
			w.give(i, filtered)
		default:
			if err := f.skipProcess(ctx, w, i, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// processShare processes some items into the chain's own buffer, and keeps those filtered or failed:
// verdicts are given in the order of all items. A fatal failure ends the share, because the later items
// no longer matter. at is the current item.
func (f *filler) processShare(ctx context.Context, w *work, c *chain, items []int, cured cure, failures []error, at *int) {
	for n, i := range items {
		*at = n
		err := guarded(func() error {
			err := w.failedAhead[i]
			if err == nil {
				err = f.processOnce(ctx, w, c, i)
			}
			if err == nil || errors.Is(err, item.ErrFilter) || isPanic(err) {
				return err
			}
			return cured(ctx, w, c, i, err)
		})
		if err == nil {
			c.buffer.Store(c.out)
			continue
		}
		failures[i] = err
		if isFatal(ctx, err) {
			return
		}
	}
}
