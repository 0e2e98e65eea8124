package chunk

import (
	"context"
	"errors"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// split writes the items of a chunk that could not be written together one by
// one, or by halves, each part in a transaction of its own that commits its own
// position (rules C7, C8): killed in the middle, a restart goes on at the first
// item without a verdict.
func (p *pipeline) split(ctx context.Context) error {
	var open []int
	for i := p.settled; i < p.items.Len(); i++ {
		if p.verdicts[i] == pending {
			open = append(open, i)
		}
	}
	var err error
	if p.step.config.Isolate == IsolateBisect {
		err = p.halve(ctx, open)
	} else {
		for i := 0; i < len(open) && err == nil; i++ {
			err = p.isolate(ctx, open[i:i+1])
		}
	}
	if err != nil {
		return err
	}
	if p.settled == p.items.Len() && len(p.skips) == 0 {
		return nil
	}
	return p.commit(ctx, &part{to: p.items.Len(), all: true}) // what is behind the last item
}

func (p *pipeline) halve(ctx context.Context, group []int) error {
	if len(group) < 2 {
		return p.isolate(ctx, group)
	}
	middle := (len(group) + 1) / 2
	if err := p.isolate(ctx, group[:middle]); err != nil {
		return err
	}
	return p.isolate(ctx, group[middle:])
}

// isolate writes a group of items in one transaction, without trying again. A
// group that fails is halved; only a single item is ever skipped or fails the
// step, so that bisecting ends as one by one would.
func (p *pipeline) isolate(ctx context.Context, group []int) error {
	if len(group) == 0 {
		return nil
	}
	err := p.tryGroup(ctx, group)
	if err == nil || isOver(ctx, err) {
		return err
	}
	if len(group) > 1 {
		if err := p.goOn(ctx); err != nil {
			return err
		}
		return p.halve(ctx, group)
	}
	phase := core.PhaseWrite
	var failed *processError
	if errors.As(err, &failed) {
		phase = core.PhaseProcess
	}
	place := group[0]
	if err := p.admit(ctx, phase, place, err); err != nil {
		return err
	}
	if err := p.goOn(ctx); err != nil {
		return err
	}
	return p.commit(ctx, &part{to: place + 1})
}

// isOver reports an error after which no part of the chunk can be written.
func isOver(ctx context.Context, err error) bool {
	var unknown *refusedError
	var listener *ListenerError
	return ctx.Err() != nil || errors.Is(err, context.Canceled) ||
		errors.Is(err, core.ErrLostOwner) || errors.Is(err, core.ErrStopped) || errors.Is(err, tx.ErrNotOwner) ||
		errors.As(err, &unknown) || errors.As(err, &listener)
}

// tryGroup processes a group again and commits it.
func (p *pipeline) tryGroup(ctx context.Context, group []int) error {
	c := &part{to: group[len(group)-1] + 1, counts: true}
	c.produce = func(ctx context.Context) (core.Items, []int, error) { return p.outputs(ctx, group) }
	if !p.step.config.ProcessInTransaction {
		items, of, err := p.outputs(ctx, group)
		if err != nil {
			return err
		}
		if items.Len() == 0 {
			return nil // all filtered: they commit with what is behind them
		}
		c.produce = func(context.Context) (core.Items, []int, error) { return items, of, nil }
	}
	err := p.commit(ctx, c)
	if err != nil {
		p.undone(ctx, &err, c.items)
		return err
	}
	for _, i := range c.of {
		p.verdicts[i] = written
	}
	return nil
}

// outputs are what there is to write of a group: as it was read where nothing
// processes, as it was processed where that is kept, else processed afresh, so
// that a writer which spoiled its items does not spoil the split.
func (p *pipeline) outputs(ctx context.Context, group []int) (core.Items, []int, error) {
	if len(p.chains) == 0 {
		return p.items.View(group[0], group[len(group)-1]+1), group, nil
	}
	if p.step.config.KeepOutputs {
		from, to := 0, 0
		for j, i := range p.outOf {
			if i == group[0] {
				from = j
			}
			if i == group[len(group)-1] {
				to = j + 1
			}
		}
		return p.output.View(from, to), group, nil
	}
	c := p.chains[0]
	c.buffer.Reset()
	c.of = c.of[:0]
	err := guarded(func() error {
		for _, i := range group {
			if p.verdicts[i] != pending {
				continue
			}
			err := p.processItem(ctx, c, i, false)
			switch {
			case err == nil:
				c.buffer.Store(c.out)
				c.of = append(c.of, i)
			case errors.Is(err, core.ErrFilter):
				p.verdicts[i] = filtered
			default:
				return &processError{place: i, meta: p.items.Meta(i), err: err}
			}
		}
		return nil
	})
	return c.buffer, c.of, err
}
