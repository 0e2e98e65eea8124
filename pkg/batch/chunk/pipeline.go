package chunk

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Execute runs the step from run.Step.Position to the end of its data. It returns nil when all items
// have a verdict and are committed, core.ErrStopped after a chunk if a stop was requested, otherwise
// the error that made the step fail: uncommitted work is then rolled back, and the position is the last
// commit's (rule C9).
func (s *Step) Execute(ctx context.Context, run *model.StepRun) (err error) {
	if err := run.UseDatabase(ctx, s.config.Database.Name()); err != nil {
		return err
	}
	defer func() { err = run.SyncHistory(ctx, err) }()
	if run.Data.NewDefinition && len(run.Step.Position) > 0 {
		return fmt.Errorf("step %s: %w", run.Step.Name, ports.ErrCommittedMeanwhile)
	}
	if c := run.Step.Context; c != nil { // of the previous attempt
		c.Delete(core.ErrorClassKey)
		c.Delete(core.ErrorItemKey)
	}
	at, err := parsePosition(run.Step.Position)
	if err != nil {
		return err
	}
	parts, err := s.assemble(ctx, run)
	if err != nil {
		return err
	}
	if err := at.bind(parts.Bound, run.Data.AcceptChanges); err != nil {
		return err
	}
	p, err := newPipeline(s, run, parts)
	if err != nil {
		return err
	}
	values := make([]any, len(p.components))
	for i, c := range p.components {
		values[i] = c.value
	}
	if err := run.Join(ctx, values); err != nil {
		return err
	}
	defer func() { err = p.close(ctx, err) }()
	if err := p.open(ctx, at); err != nil {
		return err
	}
	if err := p.run(ctx); err != nil {
		return err
	}
	if err := p.finish(ctx); err != nil {
		return err
	}
	return p.checkLeftOut()
}

// pipeline is one execution of a chunk step: it fills one work after the other and commits each.
type pipeline struct {
	step *Step
	exec *model.StepRun

	filler     *filler
	sinks      sinks
	components []component // reader, processors, writers: in the order of opening
	opened     []item.Closer
	openSinks  int
	// revocable means that a processor is an itemextra.Revocable.
	revocable bool

	// listeners is empty until the step is open; then it is pendingListeners.
	listeners, pendingListeners *listeners

	// at is the position of the last commit.
	at position
	// work is the current chunk, and ahead prepares the next one; nil means that nothing does.
	work  *work
	ahead *ahead
	// rollbacks are those that no commit has counted yet. rollbackCounted means that the failure being
	// handled is one of them.
	rollbacks       int64
	rollbackCounted bool
}

func newPipeline(s *Step, run *model.StepRun, parts Parts) (*pipeline, error) {
	if parts.Reader == nil || len(parts.Writers) == 0 {
		return nil, fmt.Errorf("chunk step %s needs a reader and a writer", s.Name())
	}
	p := &pipeline{step: s, exec: run, listeners: &listeners{}}
	p.add(parts)
	var err error
	if p.filler, err = newFiller(s, run.Services.Stop, parts, p.listeners); err != nil {
		return nil, fmt.Errorf("chunk step %s: %w", s.Name(), err)
	}
	p.filler.retried = notifyRetries(run)
	p.revocable = p.revocable || len(p.filler.states) > 0 // it may have filtered because of work that is undone now
	p.work = p.filler.newWork()
	values := make([]any, len(p.components))
	for i, c := range p.components {
		values[i] = c.value
	}
	if p.pendingListeners, err = newListeners(slices.Concat(run.Listeners, parts.Listeners), values, p.listenerFailed); err != nil {
		return nil, fmt.Errorf("chunk step %s: %w", s.Name(), err)
	}
	return p, nil
}

func (p *pipeline) add(parts Parts) {
	p.components = append(p.components, newComponent(parts.Reader.Component()))
	for _, processor := range parts.Processors {
		p.components = append(p.components, newComponent(processor.Component()))
		p.revocable = p.revocable || optional[itemextra.Revocable](processor.Component()) != nil
	}
	for _, w := range parts.Writers {
		p.components = append(p.components, newComponent(w.Component()))
		s := newSink(w)
		if s.leftOuter != nil {
			s.leftOuter.CountLeftOut()
		}
		p.sinks = append(p.sinks, s)
	}
}

// open opens every component at its part of the position. Every component that Open was called for is
// closed, also after a failure.
func (p *pipeline) open(ctx context.Context, at position) error {
	p.at = at
	if err := p.filler.openStates(at, p.exec.Step != nil && len(p.exec.Step.Position) > 0); err != nil {
		return fmt.Errorf("step %s: %w", p.exec.Step.Name, err)
	}
	if accepter := p.filler.source.accepter; accepter != nil && p.exec.Data.AcceptChanges {
		if err := guarded(func() error { accepter.AcceptChanges(); return nil }); err != nil {
			return err
		}
	}
	first := len(p.components) - len(p.sinks) // the first writer
	for i, c := range p.components {
		var from item.Position
		switch {
		case i == 0:
			from = stored(at.Reader)
		case i >= first:
			from = at.writer(i - first)
		default:
			from = at.processor(i - 1)
		}
		if c.closer != nil {
			p.opened = append(p.opened, c.closer)
		}
		if c.opener != nil {
			if err := guarded(func() error { return c.opener.Open(ctx, from) }); err != nil {
				return err
			}
		}
		p.openSinks = max(0, i+1-first)
	}
	if err := p.filler.discard(ctx, p.work, at.Items); err != nil {
		return err
	}
	p.listeners, p.filler.listeners = p.pendingListeners, p.pendingListeners
	return nil
}

func (p *pipeline) listenerFailed(ctx context.Context, err error) {
	p.exec.Services.Observer.Observe(ctx, core.ListenerFailed{
		Execution: p.exec.Data.Job.ID, JobName: p.exec.Data.Job.JobName, Step: p.exec.Step.Name, Err: err,
	})
}

// close closes the opened components, the last first, and returns how the step ends. If all work is
// done and committed, a failing Close changes nothing.
func (p *pipeline) close(ctx context.Context, failure error) error {
	p.ahead.discard()
	closing := errors.Join(p.rewindUncommitted(ctx, failure), p.closeComponents(ctx))
	if failure == nil && closing != nil {
		p.exec.Services.Observer.Observe(ctx, core.CloseFailed{
			Execution: p.exec.Data.Job.ID, JobName: p.exec.Data.Job.JobName, Step: p.exec.Step.Name, Err: closing,
		})
		return nil
	}
	return errors.Join(failure, closing)
}

func (p *pipeline) closeComponents(ctx context.Context) error {
	var errs []error
	for _, closer := range slices.Backward(p.opened) {
		if err := guarded(func() error { return closer.Close(context.WithoutCancel(ctx)) }); err != nil {
			errs = append(errs, fmt.Errorf("close: %w", err))
		}
	}
	p.opened = nil
	return errors.Join(errs...)
}

// rewindUncommitted takes writers without a committed position back to their start after a failure, so
// that nothing remains. If the outcome of a COMMIT may be unknown they keep their data: a stored
// position may need it.
func (p *pipeline) rewindUncommitted(ctx context.Context, failure error) error {
	var unknown *tx.CommitError
	if failure == nil || errors.As(failure, &unknown) && !errors.Is(failure, tx.ErrRolledBack) {
		return nil
	}
	var errs []error
	for i, s := range p.sinks[:p.openSinks] {
		if s.rewinder == nil || p.at.writer(i) != nil {
			continue
		}
		if err := guarded(func() error { return s.rewinder.Rewind(context.WithoutCancel(ctx), nil) }); err != nil {
			errs = append(errs, fmt.Errorf("reset writer %d to its start: %w", i+1, err))
		}
	}
	return errors.Join(errs...)
}

// run moves chunk by chunk until the data ends.
func (p *pipeline) run(ctx context.Context) error {
	p.lookAhead(ctx)
	for {
		if p.exec.Stopping() {
			return core.ErrStopped
		}
		if err := p.mayBegin(ctx); err != nil {
			return err
		}
		if last, err := p.nextChunk(ctx); last || err != nil {
			return err
		}
	}
}

// lookAhead makes p.ahead if the step may read ahead.
func (p *pipeline) lookAhead(ctx context.Context) {
	c := p.step.config
	if c.ReadAhead == ReadAheadOff || p.listeners.wantReads() || listens(p.components[0]) {
		return
	}
	independent := func(of component) bool { return itemextra.IsIndependent(of.value, c.Database.Name()) }
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
	p.ahead = newAhead(ctx, p.filler)
	for i, s := range p.sinks {
		if len(p.filler.encoders) > 0 && s.writesAhead() {
			if p.ahead.sinks == nil {
				p.ahead.sinks = make([]*sink, len(p.sinks))
			}
			p.ahead.sinks[i] = &p.sinks[i]
		}
	}
}

// listens reports whether a component is a listener itself: it must not be called while it reads or
// processes, nor be notified of a chunk before the next one is requested from it.
func listens(c component) bool { return model.Listens(reflect.TypeOf(c.value)) }

// nextChunk is chunk, plus the handling of its failure, or of a component that ends the goroutine (rule
// C13).
func (p *pipeline) nextChunk(ctx context.Context) (last bool, err error) {
	panics.GuardGoroutine(func() (err error) {
		last, err = p.chunk(ctx)
		return err
	}, func(failure error) {
		if failure != nil {
			err = p.failed(ctx, failure)
		}
	})
	return last, err
}

// mayBegin returns why no other chunk may begin, and nothing be published (rule L9).
func (p *pipeline) mayBegin(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return p.exec.Services.Lease.Err()
}

// chunk fills and commits one chunk; last means that the data ended.
func (p *pipeline) chunk(ctx context.Context) (last bool, err error) {
	w := p.begin()
	if err := p.listeners.beforeChunk(ctx); err != nil {
		w.reset() // prepared items do not count (rule C19)
		return false, err
	}
	if p.exec.Stopping() {
		w.reset() // a stop discards items read ahead (rule C19)
	}
	if err := p.filler.fill(ctx, w); err != nil {
		return false, err
	}
	if w.isEmpty() {
		return w.last, nil // an empty last chunk makes no commit (rule C5)
	}
	if !w.last {
		p.ahead.start()
	}
	if err := p.commitChunk(ctx, w); err != nil {
		return false, err
	}
	p.rollbackCounted = true // nothing is left to roll back
	if err := p.ahead.release(ctx, p.sinks); err != nil {
		return false, err
	}
	if err := p.exec.Committed(ctx); err != nil {
		return false, err
	}
	return w.last, p.listeners.afterChunk(ctx, p.exec.Step.Counters)
}

// begin makes the prepared work the current chunk, or an empty one.
func (p *pipeline) begin() *work {
	p.work = p.ahead.exchange(p.work)
	p.work.begin(p.at, p.exec.Step.Counters.Skips())
	p.rollbackCounted = false
	return p.work
}

// finish runs the Finishers among processors and writers after the last commit, such as publishing a
// file. First it commits once more: the guard proves that the step still belongs to this attempt, and
// the stored position then names the published output (rule C15b). Writers' work in a transaction at
// the end is part of that commit (rule TW1).
func (p *pipeline) finish(ctx context.Context) error {
	var finishers []item.Finisher
	for _, c := range p.components[1:] { // the reader has nothing to finish
		if f := optional[item.Finisher](c.value); f != nil {
			finishers = append(finishers, f)
		}
	}
	if len(finishers) == 0 && !slices.ContainsFunc(p.sinks, func(s sink) bool { return s.completer != nil }) {
		return nil
	}
	w := p.begin()
	w.next, w.completes = p.at, true
	if err := p.commitChunk(ctx, w); err != nil {
		return p.failed(ctx, err)
	}
	if err := p.sinks.release(ctx); err != nil {
		return err
	}
	if err := stage(ctx, p, finishers); err != nil {
		return err
	}
	for _, f := range finishers {
		if err := p.mayBegin(ctx); err != nil {
			return fmt.Errorf("finish: %w", err)
		}
		if err := guarded(func() error { return f.Finish(ctx) }); err != nil {
			return fmt.Errorf("finish: %w", err)
		}
	}
	return nil
}

// stage prepares publications in two steps, and commits the positions that name them (rule OB3).
func stage(ctx context.Context, p *pipeline, finishers []item.Finisher) error {
	staged := false
	for _, f := range finishers {
		if err := p.mayBegin(ctx); err != nil {
			return fmt.Errorf("finish: %w", err)
		}
		var one bool
		err := guarded(func() (err error) {
			one, err = itemextra.Stage(ctx, f)
			return err
		})
		if err != nil {
			return fmt.Errorf("finish: %w", err)
		}
		staged = staged || one
	}
	if !staged {
		return nil
	}
	w := p.begin()
	w.next = p.at
	if err := p.commitChunk(ctx, w); err != nil {
		return p.failed(ctx, err)
	}
	return p.sinks.release(ctx)
}

// checkLeftOut fails a step if its target left items out: each item has its verdict, so the left-out
// items are those missing in the counters of all attempts (rule C11a).
func (p *pipeline) checkLeftOut() error {
	c := p.exec.Step.Total()
	written := c.Read + c.ReadSkip - c.Filter - c.Skips()
	if written <= c.Write {
		return nil
	}
	for _, s := range p.sinks {
		if s.leftOuter == nil {
			continue
		}
		if err := s.leftOuter.LeftOutError(written-c.Write, written); err != nil {
			return &leftOutError{err}
		}
	}
	return nil
}

// leftOutError is the failure of a step that did its work, but lost items at its target.
type leftOutError struct{ err error }

func (e *leftOutError) Error() string { return e.err.Error() }

func (e *leftOutError) Unwrap() []error { return []error{ports.ErrExpect, e.err} }

// failed adds the current chunk's consumption to the counters of the record that the step executor
// writes (rule C11), calls the listeners of its skips and of the failure, and returns the failure with
// their errors. The committed position stays.
func (p *pipeline) failed(ctx context.Context, err error) error {
	if !p.rollbackCounted {
		p.countRollback(ctx, err)
	}
	w := p.work
	var listener *ListenerError
	if !errors.As(err, &listener) {
		for _, s := range w.sortedSkips() {
			err = noted(err, p.listeners.skip(ctx, s))
		}
	}
	p.step.recordFailureCause(p.exec.Step, err)
	step := p.exec.Step
	step.InHand = w.count(w.items.Len(), true)
	step.Counters = step.Counters.Add(step.InHand)
	step.Counters.Rollback += p.rollbacks
	return p.listeners.onChunkError(ctx, err)
}

// recordFailureCause puts into the step's context the facts that the text of its error does not hold
// reliably: the class, and the item.
func (s *Step) recordFailureCause(step *core.StepExecution, err error) {
	if err == nil || errors.Is(err, core.ErrStopped) {
		return
	}
	if step.Context == nil {
		step.Context = core.NewExecutionContext()
	}
	var consumed *item.ConsumedError
	var processed *processError
	var placed *item.PlacedError
	meta := item.Meta{}
	switch {
	case errors.As(err, &processed):
		meta = processed.meta
	case errors.As(err, &consumed):
		meta = consumed.Meta
	case errors.As(err, &placed):
		meta = placed.Meta
	}
	for key, text := range map[string]string{core.ErrorClassKey: s.classOf(err), core.ErrorItemKey: meta.String()} {
		if text == "" || step.Context.Put(key, text) != nil { // without the key nothing is recorded
			step.Context.Delete(key)
		}
	}
}

func (p *pipeline) countRollback(ctx context.Context, err error) {
	p.rollbacks++
	p.rollbackCounted = true
	p.exec.Services.Observer.Observe(ctx, core.ChunkRolledBack{
		Execution: p.exec.Data.Job.ID, JobName: p.exec.Data.Job.JobName, Step: p.exec.Step.Name, StepID: p.exec.Step.ID, Err: err,
	})
}

func notifyRetries(run *model.StepRun) func(ctx context.Context, n int, err error) {
	return func(ctx context.Context, n int, err error) {
		run.Services.Observer.Observe(ctx, core.Retried{
			Execution: run.Data.Job.ID, JobName: run.Data.Job.JobName, Step: run.Step.Name, StepID: run.Step.ID, Attempt: n, Err: err,
		})
	}
}
