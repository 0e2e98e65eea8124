package chunk

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// pipeline is one execution of a chunk step.
type pipeline struct {
	step *Step
	exec *core.StepRun

	reader     core.Reader
	processors []core.Processor
	writers    []core.Writer
	opened     []core.Closer // in the order of opening

	items  core.Items // of the current chunk, as read
	output core.Items // of the current chunk, as processed; items if nothing processes
	in     any        // the cell into which an item is loaded
	moves  []core.Advance
	out    any // the cell from which a processed item is stored

	// current counts what the chunk in hand consumed; it is added to the step's
	// counters when the chunk commits, and when the step fails (rule C11).
	current core.Counters
	// at is the last committed position.
	at position
}

func newPipeline(s *Step, run *core.StepRun, parts Parts) (*pipeline, error) {
	if parts.Reader == nil || len(parts.Writers) == 0 {
		return nil, fmt.Errorf("chunk step %s needs a reader and a writer", s.Name())
	}
	p := &pipeline{step: s, exec: run, reader: parts.Reader, processors: parts.Processors, writers: parts.Writers}
	p.items = p.reader.NewItems(s.config.Size)
	p.output = p.items
	for i, processor := range p.processors {
		if i == 0 {
			p.in = processor.NewCell()
			p.out = p.in
		}
		out, move, err := processor.Chain(p.out)
		if err != nil {
			return nil, fmt.Errorf("chunk step %s: processor %d: %w", s.Name(), i+1, err)
		}
		p.out, p.moves = out, append(p.moves, move)
		p.output = processor.NewItems(s.config.Size)
	}
	return p, nil
}

// components are the authors' own values, reader first.
func (p *pipeline) components() []any {
	list := []any{p.reader.Component()}
	for _, processor := range p.processors {
		list = append(list, processor.Component())
	}
	for _, w := range p.writers {
		list = append(list, w.Component())
	}
	return list
}

// open opens every component at its part of the position. What is opened will be
// closed, also when a later one fails.
func (p *pipeline) open(ctx context.Context, at position) error {
	p.at = at
	writer := len(p.processors) + 1
	for i, c := range p.components() {
		var from core.Position
		switch {
		case i == 0:
			from = stored(at.Reader)
		case i >= writer && i-writer < len(at.Writers):
			from = stored(at.Writers[i-writer])
		}
		if closer, ok := c.(core.Closer); ok {
			p.opened = append(p.opened, closer)
		}
		if opener, ok := c.(core.Opener); ok {
			if err := guarded(func() error { return opener.Open(ctx, from) }); err != nil {
				return err
			}
		}
	}
	return p.discard(ctx, at.Items)
}

// discard reads n items again that were committed before: the position of a
// reader is its own position and a number of items after it (rule C15a). A
// reader without a position of its own is re-read from its start.
func (p *pipeline) discard(ctx context.Context, n int64) error {
	for n > 0 {
		p.items.Reset()
		want := int(min(n, int64(p.step.config.Size)))
		if err := guarded(func() error { return p.reader.Fill(ctx, p.items, want) }); err != nil {
			return fmt.Errorf("returning to the position of the last commit, %d items short: %w", n-int64(p.items.Len()), err)
		}
		n -= int64(want)
	}
	return nil
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
	p.current = core.Counters{}
	p.items.Reset()
	if p.output != p.items {
		p.output.Reset()
	}
}

func (p *pipeline) read(ctx context.Context) error {
	err := guarded(func() error { return p.reader.Fill(ctx, p.items, p.step.config.Size) })
	p.current.Read = int64(p.items.Len())
	return err
}

// nextPosition is asked right after the last item was read (rule C15).
func (p *pipeline) nextPosition() (position, error) {
	next := position{Items: p.at.Items + int64(p.items.Len())}
	reader, ok := p.reader.Component().(core.Positioner)
	if !ok {
		return next, nil
	}
	var at core.Position
	if err := guarded(func() (err error) { at, err = reader.Position(); return err }); err != nil {
		return next, fmt.Errorf("position of the reader: %w", err)
	}
	next.Reader, next.Items = at.JSON(), 0
	return next, nil
}

// process moves every item through all processors before the next item.
func (p *pipeline) process(ctx context.Context) error {
	if len(p.moves) == 0 {
		return nil
	}
	return guarded(func() error {
		for i := range p.items.Len() {
			p.items.Load(i, p.in)
			err := p.move(ctx)
			switch {
			case err == nil:
				p.output.Store(p.out)
			case errors.Is(err, core.ErrFilter):
				p.current.Filter++
			default:
				return itemError("process", p.items.Meta(i), err)
			}
		}
		return nil
	})
}

func (p *pipeline) move(ctx context.Context) error {
	for _, move := range p.moves {
		if err := move(ctx); err != nil {
			return err
		}
	}
	return nil
}

// commit writes the chunk, its counters and its position in one transaction,
// under the guard of owner and epoch (rules C5, R3).
func (p *pipeline) commit(ctx context.Context, next position) error {
	step := p.exec.Step
	counters := p.current
	counters.Write = int64(p.output.Len())
	counters.Commit = 1
	err := p.step.tx.Do(ctx, tx.Attr{}, func(ctx context.Context) error {
		for i, w := range p.writers {
			if err := p.write(ctx, i, w, &next); err != nil {
				return err
			}
		}
		at, err := next.encode()
		if err != nil {
			return err
		}
		return p.exec.Checkpoints.Checkpoint(ctx, p.exec.Ref, core.Checkpoint{
			Counters: step.Counters.Add(counters), Position: at, Context: step.Context,
		})
	})
	if err != nil {
		return err
	}
	step.Counters = step.Counters.Add(counters)
	if step.Context != nil {
		step.Context.Stored()
	}
	p.current, p.at = core.Counters{}, next
	return nil
}

// write hands the chunk to one writer, makes it durable where it lies outside
// the transaction, and notes the writer's position.
func (p *pipeline) write(ctx context.Context, i int, w core.Writer, next *position) error {
	return guarded(func() error {
		if p.output.Len() > 0 {
			if err := w.Write(ctx, p.output); err != nil {
				return err
			}
		}
		component := w.Component()
		if preparer, ok := component.(core.Preparer); ok {
			if err := preparer.Prepare(ctx); err != nil {
				return err
			}
		}
		positioner, ok := component.(core.Positioner)
		if !ok {
			return nil
		}
		at, err := positioner.Position()
		if err != nil {
			return fmt.Errorf("position of writer %d: %w", i+1, err)
		}
		next.setWriter(i, at)
		return nil
	})
}

// finish lets the writers do what comes after the last commit.
func (p *pipeline) finish(ctx context.Context) error {
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

// failed adds what the chunk in hand consumed to the counters of the record that
// the step executor writes (rule C11); the committed position stays.
func (p *pipeline) failed(ctx context.Context, err error) {
	p.current.Rollback = 1
	p.exec.Step.Counters = p.exec.Step.Counters.Add(p.current)
	p.exec.Observer.Observe(ctx, core.ChunkRolledBack{Step: p.step.Name(), StepID: p.exec.Step.ID, Err: err})
}

// itemError says which item an error is about, where the reader knows.
func itemError(phase string, meta core.Meta, err error) error {
	switch {
	case meta.Path != "" && meta.Line > 0:
		return fmt.Errorf("%s %s:%d: %w", phase, meta.Path, meta.Line, err)
	case meta.Line > 0:
		return fmt.Errorf("%s item %d: %w", phase, meta.Line, err)
	}
	return fmt.Errorf("%s: %w", phase, err)
}

// guarded calls into a component and turns its panic into an error (rule C13).
func guarded(call func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &exception.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return call()
}
