package chunk

import (
	"context"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// ReadAhead selects whether the next chunk is read while this one is written (rule C20).
type ReadAhead string

// Whether the next chunk is read ahead. The outcome of the step is always the same. Nothing is read
// ahead if a listener is called before or after each read.
const (
	// ReadAheadAuto reads ahead if the reader declares that this step's writes do not change its input
	// (item.Independent).
	ReadAheadAuto ReadAhead = ""
	// ReadAheadOn declares it for the reader.
	ReadAheadOn ReadAhead = "on"
	// ReadAheadOff reads each chunk after the commit of the previous one.
	ReadAheadOff ReadAhead = "off"
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

// lookAhead makes p.ahead if the step may read ahead.
func (p *pipeline) lookAhead(ctx context.Context) {
	c := p.step.config
	if c.ReadAhead == ReadAheadOff || p.listeners.wantReads() || listens(p.components[0]) {
		return
	}
	independent := func(of component) bool { return item.IsIndependent(of.value, c.Database.Name()) }
	if c.ReadAhead != ReadAheadOn && !independent(p.components[0]) {
		return
	}
	processors := p.components[1 : len(p.components)-len(p.sinks)]
	p.filler.independent = !c.ProcessInTransaction && len(p.filler.states) == 0 && !p.listeners.wantProcesses() &&
		!slices.ContainsFunc(processors, func(c component) bool { return !independent(c) || listens(c) })
	changes := func(s sink) bool { return s.encoder == nil } // changes that others may see
	if !p.listeners.wantWrites() && !slices.ContainsFunc(p.sinks, changes) {
		for _, s := range p.sinks {
			p.filler.encoders = append(p.filler.encoders, s.encoder)
		}
	}
	p.ahead = &ahead{filler: p.filler, work: p.filler.newWork(), atRest: make(chan struct{})}
	close(p.ahead.atRest)
	p.ahead.ctx, p.ahead.cancel = context.WithCancel(ctx)
}

// listens reports whether a component is a listener itself: it must not be called while it reads or
// processes, nor be notified of a chunk before the next one is requested from it.
func listens(c component) bool { return model.Listens(reflect.TypeOf(c.value)) }

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
