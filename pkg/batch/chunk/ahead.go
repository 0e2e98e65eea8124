package chunk

import (
	"context"
	"sync/atomic"

	"github.com/surfin-batch/surfin/internal/panics"
)

// ahead prepares the work after the current one, on a goroutine of its own (rule C19). Its methods are
// called by the goroutine that commits; on a nil ahead they do nothing.
type ahead struct {
	filler *filler
	// ctx is the context of all reads ahead, since a reader may keep it; cancel ends it.
	ctx    context.Context //nolint:containedctx // the run of one step
	cancel context.CancelFunc

	work    *work         // being prepared, or prepared; empty until the first start
	started bool          // the work is not taken yet
	atRest  chan struct{} // closed when nothing is being prepared
	awaited atomic.Bool   // the other goroutine waits for the prepared work
	halted  atomic.Bool   // the other goroutine's work has failed: the rest is for later
}

// start begins to prepare the next work. The reader and the chains must not be used until wait,
// exchange or discard returned.
func (a *ahead) start() {
	if a == nil {
		return
	}
	a.work.reset()
	atRest := make(chan struct{})
	a.started, a.atRest = true, atRest
	a.awaited.Store(false)
	a.halted.Store(false)
	w := a.work
	w.halted = &a.halted
	go panics.GuardGoroutine(func() error {
		a.filler.prepare(a.ctx, w)
		if !a.awaited.Load() { // otherwise it is encoded there, while the next one is read here
			a.filler.encode(w)
		}
		return nil
	}, func(err error) {
		switch {
		case err == nil:
		case !w.isRead:
			w.failure = err
		case w.processed < w.items.Len():
			w.failAhead(w.processed, err)
		} // otherwise encoding failed, and the writer reports it
		close(atRest)
	})
}

func (a *ahead) wait() {
	if a != nil {
		a.awaited.Store(true)
		<-a.atRest
	}
}

// halt is wait when the current work has failed: preparing ends with the read in progress.
func (a *ahead) halt() {
	if a != nil {
		a.halted.Store(true)
		a.wait()
	}
}

// exchange returns the prepared work and keeps done for the next start; if there is none it returns
// done, emptied.
func (a *ahead) exchange(done *work) *work {
	if a == nil || !a.started {
		done.reset()
		return done
	}
	a.wait()
	a.started = false
	prepared := a.work
	prepared.halted = nil
	a.work = done
	return prepared
}

func (a *ahead) discard() {
	if a == nil {
		return
	}
	a.cancel()
	a.halt()
}
