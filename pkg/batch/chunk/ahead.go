package chunk

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
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
	waiting chan struct{} // closed when it does
	halted  atomic.Bool   // the other goroutine's work has failed: the rest is for later

	// sinks, by index, write the work ahead; nil means not.
	sinks []*sink
	// turn is closed when the other goroutine has written its work, and turned that it was.
	turn   chan struct{}
	turned bool
	// writing is held while writers are used, once the turn has come.
	writing sync.Mutex
	// wrote means that a writer may have written beyond the position of the last commit.
	wrote bool
}

func newAhead(ctx context.Context, f *filler) *ahead {
	a := &ahead{filler: f, work: f.newWork(), atRest: make(chan struct{}), waiting: make(chan struct{})}
	close(a.atRest)
	a.ctx, a.cancel = context.WithCancel(ctx)
	return a
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
	a.turn, a.turned, a.waiting = make(chan struct{}), false, make(chan struct{})
	a.awaited.Store(false)
	a.halted.Store(false)
	w := a.work
	w.halted = &a.halted
	go panics.GuardGoroutine(func() error {
		a.filler.prepare(a.ctx, w)
		if !a.awaited.Load() { // otherwise it is encoded there, while the next one is read here
			a.filler.encode(w)
			a.writeAhead(w)
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

// writeAhead lets writers write an encoded work while the one before it commits (rule C20c). A failure is
// that of the writer when it writes the work in its turn.
func (a *ahead) writeAhead(w *work) {
	if !w.isEncoded || a.sinks == nil {
		return
	}
	select {
	case <-a.turn:
	case <-a.waiting: // in its turn it is written while the next one is read here
		return
	}
	if a.halted.Load() {
		return
	}
	a.writing.Lock()
	defer a.writing.Unlock()
	a.wrote = true
	beyond := make([]item.Position, len(a.sinks))
	for i, s := range a.sinks {
		if s == nil || w.encodings[i] == nil {
			continue
		}
		err := guarded(func() (err error) {
			beyond[i], err = s.writeAhead(a.ctx, w.encodings[i])
			return err
		})
		if err != nil {
			return
		}
	}
	w.beyond = beyond
}

// written lets the next work be written: the current one is, and its positions are known.
func (a *ahead) written() {
	if a != nil && a.started && !a.turned {
		a.turned = true
		close(a.turn)
	}
}

// release is sinks.release while a work is prepared.
func (a *ahead) release(ctx context.Context, list sinks) error {
	if a != nil {
		a.writing.Lock()
		defer a.writing.Unlock()
	}
	return list.release(ctx)
}

// takeBack reports whether the writers must go back to the last commit, since the current work does not use
// the content beyond it.
func (a *ahead) takeBack(beyond []item.Position) bool {
	if a == nil || !a.wrote {
		return false
	}
	a.wrote = false
	return beyond == nil
}

// rewound notes that the writers are back at the last commit. Nothing is being prepared.
func (a *ahead) rewound() {
	if a != nil {
		a.wrote, a.work.beyond = false, nil
	}
}

func (a *ahead) wait() {
	if a == nil {
		return
	}
	if !a.awaited.Swap(true) {
		close(a.waiting)
	}
	<-a.atRest
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
