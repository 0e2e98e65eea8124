package chunk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// pipeline is one execution of a chunk step. The fields below "the chunk in hand"
// describe the chunk between its first read and the verdict on its last item.
type pipeline struct {
	step *Step
	exec *core.StepRun

	reader  core.Reader
	writers []core.Writer
	opened  []core.Closer // in the order of opening
	ready   int           // writers that are open
	parts   []any         // the authors' own values: reader, processors, writers
	told    listeners     // who is told once the step is open
	listen  listeners
	chains  []*chain // one for each goroutine that processes; empty: no processors

	// at is the position of the last commit.
	at position
	// stride is how many items are read before somebody looks for a stop.
	stride int
	// stopped says that a commit saw the request to stop.
	stopped bool

	// The chunk in hand.

	began    time.Time
	items    core.Items  // as read
	verdicts []verdict   // of each item
	skips    []*skip     // not yet committed, in the order of their places
	output   core.Items  // as processed; items itself if nothing processes
	outOf    []int       // the item of each output; nil: the one at the same place
	start    position    // before its first item
	next     position    // behind its last item, writers' positions aside
	failures map[int]int // of processing an item inside of the transaction, by its place
	settled  int         // items whose verdict is committed
	passed   int64       // reader outcomes whose verdict is committed
	// rollbacks are those that no commit has counted yet; undoing says that the
	// error on its way is among them.
	rollbacks int64
	undoing   bool
}

// verdict is what became of an item.
type verdict uint8

const (
	pending verdict = iota
	filtered
	skipped
	written
)

// skip is an item that is left out, until that is committed.
type skip struct {
	place     int // the item, or for a failed read the number of items before it
	phase     core.Phase
	item      any // nil for a failed read
	meta      core.Meta
	err       error
	announced bool // listeners were told
}

func newPipeline(s *Step, run *core.StepRun, parts Parts) (*pipeline, error) {
	if parts.Reader == nil || len(parts.Writers) == 0 {
		return nil, fmt.Errorf("chunk step %s needs a reader and a writer", s.Name())
	}
	p := &pipeline{step: s, exec: run, reader: parts.Reader, writers: parts.Writers, stride: 1}
	p.items = p.reader.NewItems(s.config.Size)
	p.output = p.items
	p.parts = append(p.parts, p.reader.Component())
	for _, processor := range parts.Processors {
		p.parts = append(p.parts, processor.Component())
	}
	for _, w := range p.writers {
		p.parts = append(p.parts, w.Component())
	}
	if len(parts.Processors) > 0 {
		for range max(1, s.config.Concurrency) {
			c, err := newChain(parts.Processors, s.config.Size)
			if err != nil {
				return nil, fmt.Errorf("chunk step %s: %w", s.Name(), err)
			}
			p.chains = append(p.chains, c)
		}
		p.output = p.chains[0].newItems(s.config.Size)
	}
	listen, err := newListeners(slices.Concat(run.Listeners, parts.Listeners), p.parts)
	if err != nil {
		return nil, fmt.Errorf("chunk step %s: %w", s.Name(), err)
	}
	p.told = listen
	return p, nil
}

// open opens every component at its part of the position. What is opened will be
// closed, also when a later one fails.
func (p *pipeline) open(ctx context.Context, at position) error {
	p.at = at
	for i, c := range p.parts {
		from := stored(nil)
		if i == 0 {
			from = stored(at.Reader)
		} else if w := i - (len(p.parts) - len(p.writers)); w >= 0 {
			from = at.writer(w)
		}
		if closer, ok := c.(core.Closer); ok {
			p.opened = append(p.opened, closer)
		}
		if opener, ok := c.(core.Opener); ok {
			if err := guarded(func() error { return opener.Open(ctx, from) }); err != nil {
				return err
			}
		}
		p.ready = max(0, i+1-(len(p.parts)-len(p.writers)))
	}
	if err := p.discard(ctx, at.Items); err != nil {
		return err
	}
	p.listen = p.told
	return nil
}

// forget takes writers of which nothing is committed back to the start, so that they
// leave nothing behind. Where the outcome of a COMMIT may be unknown they keep what
// they have: a position may be stored that needs it.
func (p *pipeline) forget(ctx context.Context, failure error) error {
	var unknown *tx.CommitError
	if failure == nil || errors.As(failure, &unknown) && !errors.Is(failure, tx.ErrRolledBack) {
		return nil
	}
	var errs []error
	for i, w := range p.writers[:p.ready] {
		rewinder, ok := w.Component().(core.Rewinder)
		if !ok || p.at.writer(i) != nil {
			continue
		}
		if err := guarded(func() error { return rewinder.Rewind(context.WithoutCancel(ctx), nil) }); err != nil {
			errs = append(errs, fmt.Errorf("take writer %d back to its start: %w", i+1, err))
		}
	}
	return errors.Join(errs...)
}

// close closes what was opened, last first, even if ctx has ended.
func (p *pipeline) close(ctx context.Context) error {
	var errs []error
	for i := len(p.opened) - 1; i >= 0; i-- {
		if err := guarded(func() error { return p.opened[i].Close(context.WithoutCancel(ctx)) }); err != nil {
			errs = append(errs, fmt.Errorf("close: %w", err))
		}
	}
	p.opened = nil
	return errors.Join(errs...)
}

// begin empties the buffers for the next chunk.
func (p *pipeline) begin() {
	p.began = time.Now()
	p.items.Reset()
	p.output.Reset() // a chunk of no items is not processed
	p.outOf = p.outOf[:0]
	p.verdicts, p.skips = p.verdicts[:0], p.skips[:0]
	p.start, p.next, p.failures = p.at, position{}, nil
	p.settled, p.passed, p.undoing = 0, 0, false
}

// finish lets the writers do what comes after the last commit, such as publishing a
// file. First it commits once more: the guard says that the step is still this
// attempt's, and the position that is stored then names what is published (rule
// C15b).
func (p *pipeline) finish(ctx context.Context) error {
	if !slices.ContainsFunc(p.writers, func(w core.Writer) bool { _, is := w.Component().(core.Finisher); return is }) {
		return nil
	}
	p.begin()
	p.next = p.at
	if err := p.settle(ctx); err != nil {
		return p.failed(ctx, err)
	}
	if err := p.release(ctx); err != nil {
		return err
	}
	for _, w := range p.writers {
		finisher, ok := w.Component().(core.Finisher)
		if !ok {
			continue
		}
		if err := guarded(func() error { return finisher.Finish(ctx) }); err != nil {
			return fmt.Errorf("finish: %w", err)
		}
	}
	return nil
}

// release tells the writers that a commit has stored their positions.
func (p *pipeline) release(ctx context.Context) error {
	for i, w := range p.writers {
		releaser, ok := w.Component().(core.Releaser)
		if !ok {
			continue
		}
		if err := guarded(func() error { return releaser.Release(ctx) }); err != nil {
			return fmt.Errorf("writer %d: %w", i+1, err)
		}
	}
	return nil
}

// stopSeen notes that a commit saw the request to stop, and passes it on: the step
// ends behind the chunk in hand, without waiting for anybody to notice (rule C14).
func (p *pipeline) stopSeen() {
	p.stopped = true
	p.exec.Services.Stop.Request()
}

// failed adds what the chunk in hand consumed to the counters of the record that
// the step executor writes (rule C11), tells the listeners of its skips and of
// the failure, and answers the failure with what they failed at. The committed
// position stays.
func (p *pipeline) failed(ctx context.Context, err error) error {
	if !p.undoing {
		p.rolledBack(ctx, err)
	}
	var listener *ListenerError
	if !errors.As(err, &listener) {
		for _, s := range p.inOrder() {
			err = noted(err, p.listen.skip(ctx, s))
		}
	}
	p.blame(err)
	step := p.exec.Step
	step.InHand = p.tally(p.items.Len(), true)
	step.Counters = step.Counters.Add(step.InHand)
	step.Counters.Rollback += p.rollbacks
	return p.listen.onChunkError(ctx, err)
}

// blame leaves in the step's context what its error's text does not say in a way that
// can be relied on: the class, and the item that it is about.
func (p *pipeline) blame(err error) {
	if err == nil || errors.Is(err, core.ErrStopped) {
		return
	}
	step := p.exec.Step
	if step.Context == nil {
		step.Context = core.NewExecutionContext()
	}
	var consumed *core.ConsumedError
	var processed *processError
	meta := core.Meta{}
	switch {
	case errors.As(err, &processed):
		meta = processed.meta
	case errors.As(err, &consumed):
		meta = consumed.Meta
	}
	for key, text := range map[string]string{core.ErrorClassKey: p.step.classOf(err), core.ErrorItemKey: meta.String()} {
		if text == "" || step.Context.Put(key, text) != nil { // a key that is not there says nothing
			step.Context.Delete(key)
		}
	}
}

// classOf names the class of an error, as it is stored of a skip.
func (s *Step) classOf(err error) string {
	if s.config.Classify != nil {
		return s.config.Classify(err)
	}
	return string(exception.ClassOf(err))
}

// rolledBack notes that the chunk, or a part of it, was undone.
func (p *pipeline) rolledBack(ctx context.Context, err error) {
	p.rollbacks++
	p.undoing = true
	p.exec.Services.Observer.Observe(ctx, core.ChunkRolledBack{
		Execution: p.exec.Data.Job.ID, JobName: p.exec.Data.Job.JobName, Step: p.exec.Step.Name, StepID: p.exec.Step.ID, Err: err,
	})
}

// tally counts the outcomes from the last commit up to the item to, all skips
// behind it included if all.
func (p *pipeline) tally(to int, all bool) core.Counters {
	c := core.Counters{Read: int64(to - p.settled)}
	for _, v := range p.verdicts[min(p.settled, len(p.verdicts)):min(to, len(p.verdicts))] {
		switch v {
		case filtered:
			c.Filter++
		case written:
			c.Write++
		case pending, skipped: // an item without a verdict was read, no more
		}
	}
	for _, s := range p.skips {
		if s.place >= to && !all {
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

// admit asks the policy whether what failed may be left out, and notes the skip.
// The answer to no is the error that ends the step.
func (p *pipeline) admit(ctx context.Context, phase core.Phase, place int, err error) error {
	if isFatal(ctx, err) || p.step.config.Skip == nil {
		return err
	}
	count := p.exec.Step.Counters.Skips() + int64(len(p.skips))
	ok, refused := p.policy(err, count)
	switch {
	case refused != nil:
		return refused
	case !ok:
		return err
	}
	s := &skip{place: place, phase: phase, err: err}
	if phase != core.PhaseRead {
		s.item, s.meta = p.items.At(place), p.items.Meta(place)
		p.verdicts[place] = skipped
	} else {
		var consumed *core.ConsumedError
		if errors.As(err, &consumed) {
			s.meta = consumed.Meta
		}
	}
	p.skips = append(p.skips, s)
	return nil
}

// policy calls the skip policy; a refusal is fatal whatever its cause says of itself.
func (p *pipeline) policy(err error, count int64) (ok bool, refused error) {
	refused = guarded(func() (refused error) { ok, refused = p.step.config.Skip.Admit(err, count); return refused })
	var limit *SkipLimitError
	if refused != nil && !errors.As(refused, &limit) {
		refused = &refusedError{refused}
	}
	return ok, refused
}

// mayRetry reports whether attempt n (1-based) of work that began then and failed
// may be followed by another.
func (p *pipeline) mayRetry(ctx context.Context, err error, n int, began time.Time) bool {
	return !isFatal(ctx, err) && p.step.config.Retry.may(err, n, began)
}

// wait lets time pass before another attempt. A stop ends it: the chunk in hand
// is then rolled back whole (rule C14).
func (p *pipeline) wait(ctx context.Context, n int) error {
	d := p.step.config.Retry.Backoff.Wait(n)
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-p.exec.Services.Stop.Done():
		return core.ErrStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// guarded calls into a component and turns its panic into an error (rule C13).
func guarded(call func() error) error { return exception.Guard(call) }
