package chunk

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// chain is all processors wired one behind the other for one goroutine.
type chain struct {
	in, out  any // cells
	moves    []core.Advance
	newItems func(capacity int) core.Items
	buffer   core.Items // of a goroutine beside the step's own, and of a split
	of       []int      // the item of each one in buffer
}

func newChain(processors []core.Processor, size int) (*chain, error) {
	c := &chain{in: processors[0].NewCell()}
	c.out = c.in
	for i, processor := range processors {
		out, move, err := processor.Chain(c.out)
		if err != nil {
			return nil, fmt.Errorf("processor %d: %w", i+1, err)
		}
		c.out, c.moves, c.newItems = out, append(c.moves, move), processor.NewItems
	}
	c.buffer = c.newItems(min(size, DefaultSize))
	return c, nil
}

// processError is the failure to process an item, by its place in the chunk.
type processError struct {
	place int
	meta  core.Meta
	err   error
}

func (e *processError) Error() string {
	switch {
	case e.meta.Path != "" && e.meta.Line > 0:
		return fmt.Sprintf("process %s:%d: %v", e.meta.Path, e.meta.Line, e.err)
	case e.meta.Line > 0:
		return fmt.Sprintf("process item %d: %v", e.meta.Line, e.err)
	}
	return "process: " + e.err.Error()
}

func (e *processError) Unwrap() error { return e.err }

// process moves every item that has no verdict yet through all processors,
// before the next item; the outputs are in p.output. An item that fails for good
// is skipped or fails the step (rule C2).
func (p *pipeline) process(ctx context.Context) error {
	if len(p.chains) == 0 {
		return nil
	}
	p.output.Reset()
	p.outOf = p.outOf[:0]
	if len(p.chains) > 1 && p.items.Len() > 1 {
		return p.processConcurrently(ctx)
	}
	c := p.chains[0]
	return guarded(func() error {
		for i := p.settled; i < p.items.Len(); i++ {
			if p.verdicts[i] != pending {
				continue
			}
			err := p.processItem(ctx, c, i, !p.step.config.ProcessInTransaction)
			switch {
			case err == nil:
				p.output.Store(c.out)
				p.outOf = append(p.outOf, i)
			case errors.Is(err, core.ErrFilter):
				p.verdicts[i] = filtered
			default:
				if err := p.skipProcess(ctx, i, err); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// skipProcess leaves an item out that could not be processed. Inside of a
// transaction that has to wait until the transaction is undone.
func (p *pipeline) skipProcess(ctx context.Context, i int, err error) error {
	err = &processError{place: i, meta: p.items.Meta(i), err: err}
	if p.step.config.ProcessInTransaction {
		return err
	}
	return p.admit(ctx, core.PhaseProcess, i, err)
}

// processItem processes one item, and tries again what may be tried again if
// retry. The answer is nil, core.ErrFilter or the failure.
func (p *pipeline) processItem(ctx context.Context, c *chain, i int, retry bool) error {
	var began time.Time
	for attempt := 1; ; attempt++ {
		err := p.processOnce(ctx, c, i)
		if err == nil || errors.Is(err, core.ErrFilter) {
			return err
		}
		err = p.listen.onProcessError(ctx, p.items, i, err)
		if began.IsZero() {
			began = time.Now()
		}
		if !retry || !p.mayRetry(ctx, err, attempt, began) {
			return exhausted(err, attempt)
		}
		if err := p.again(ctx, core.PhaseProcess, attempt, err); err != nil {
			return err
		}
	}
}

func (p *pipeline) processOnce(ctx context.Context, c *chain, i int) error {
	if err := p.listen.beforeProcess(ctx, p.items, i); err != nil {
		return err
	}
	p.items.Load(i, c.in)
	var err error
	for _, move := range c.moves {
		if err = move(ctx); err != nil {
			break
		}
	}
	if err == nil || errors.Is(err, core.ErrFilter) {
		if failure := p.listen.afterProcess(ctx, p.items, i, c.out, err == nil); failure != nil {
			return failure
		}
	}
	return err
}

// processConcurrently shares the items out among the chains. Outputs, skips and
// the failure that counts are in the order of the items all the same (rule C17).
func (p *pipeline) processConcurrently(ctx context.Context) error {
	var open []int
	for i := p.settled; i < p.items.Len(); i++ {
		if p.verdicts[i] == pending {
			open = append(open, i)
		}
	}
	failures := make([]error, p.items.Len())
	share := (len(open) + len(p.chains) - 1) / len(p.chains)
	var running sync.WaitGroup
	for n, c := range p.chains {
		c.buffer.Reset()
		c.of = c.of[:0]
		mine := open[min(n*share, len(open)):min((n+1)*share, len(open))]
		running.Go(func() { p.processShare(ctx, c, mine, failures) })
	}
	running.Wait()
	for _, c := range p.chains {
		p.output.AppendAll(c.buffer)
		p.outOf = append(p.outOf, c.of...)
	}
	for i, err := range failures {
		switch {
		case err == nil:
		case errors.Is(err, core.ErrFilter):
			p.verdicts[i] = filtered
		default:
			if err := p.skipProcess(ctx, i, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// processShare processes some items into the chain's own buffer, and notes what
// was filtered or failed: verdicts are given in the order of all items. A failure
// that nothing cures ends the share: what is behind it does not matter any more.
func (p *pipeline) processShare(ctx context.Context, c *chain, items []int, failures []error) {
	for _, i := range items {
		err := guarded(func() error { return p.processItem(ctx, c, i, true) })
		if err == nil {
			c.buffer.Store(c.out)
			c.of = append(c.of, i)
			continue
		}
		failures[i] = err
		if isFatal(ctx, err) {
			return
		}
	}
}
