package chunk

import (
	"context"
	"errors"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// split writes the items of a chunk that could not be written together one by one, or by halves, each
// part in a transaction of its own that commits its own position (rules C7, C8): after a kill in the
// middle, a restart continues at the first item without a verdict.
func (p *pipeline) split(ctx context.Context, w *work) error {
	open := w.pendingItems()
	var err error
	if p.step.config.Isolate == IsolateBisect {
		err = p.writeHalves(ctx, w, open)
	} else {
		for i := 0; i < len(open) && err == nil; i++ {
			err = p.writeGroup(ctx, w, open[i:i+1])
		}
	}
	if err != nil {
		return err
	}
	if w.committedItems == w.items.Len() && len(w.skips) == 0 {
		return nil
	}
	return p.commitVerdicts(ctx, w, commitUnit{upTo: w.items.Len(), withTrailingSkips: true})
}

func (p *pipeline) writeHalves(ctx context.Context, w *work, group []int) error {
	if len(group) < 2 {
		return p.writeGroup(ctx, w, group)
	}
	middle := (len(group) + 1) / 2
	if err := p.writeGroup(ctx, w, group[:middle]); err != nil {
		return err
	}
	return p.writeGroup(ctx, w, group[middle:])
}

// writeGroup writes a group of items in one transaction, with the retries of the step. A group that
// fails is halved; only a single item is ever skipped or fails the step, so bisecting ends like one by
// one.
func (p *pipeline) writeGroup(ctx context.Context, w *work, group []int) error {
	if len(group) == 0 {
		return nil
	}
	err := p.persist(ctx, w, func() error { return p.tryGroup(ctx, w, group) })
	if err == nil || isFatalForChunk(ctx, err) {
		return err
	}
	if len(group) > 1 {
		if err := p.rewindWriters(ctx); err != nil {
			return err
		}
		return p.writeHalves(ctx, w, group)
	}
	phase, isItems := phaseOf(err)
	if !isItems {
		return err
	}
	place := group[0]
	if err := p.step.trySkip(ctx, w, phase, place, err); err != nil {
		return withOriginAt(w.items.Meta(place), err)
	}
	if err := p.rewindWriters(ctx); err != nil {
		return err
	}
	return p.commitVerdicts(ctx, w, commitUnit{upTo: place + 1})
}

// commitVerdicts commits a unit without data (rule C8a), with the retries of the step.
func (p *pipeline) commitVerdicts(ctx context.Context, w *work, u commitUnit) error {
	return p.persist(ctx, w, func() error {
		again := u
		return p.commit(ctx, w, &again)
	})
}

// persist runs one transaction of a split until it commits or may not be retried (rule C7). The time of
// all attempts counts from the first attempt at the chunk.
func (p *pipeline) persist(ctx context.Context, w *work, try func() error) error {
	for attempt := 1; ; attempt++ {
		err := try()
		if err == nil {
			return nil
		}
		if !p.mayRetryInSplit(ctx, w, err, attempt) {
			return model.Exhausted(err, attempt)
		}
		if !p.rollbackCounted {
			p.countRollback(ctx, err)
		}
		phase, isItems := phaseOf(err)
		if !isItems {
			phase = core.PhaseWrite
		}
		if err := p.filler.beforeRetry(ctx, phase, attempt, err); err != nil {
			return err
		}
		if err := p.rewindWriters(ctx); err != nil {
			return err
		}
	}
}

// mayRetryInSplit reports whether attempt n (1-based) at a transaction of a split may be followed by
// another one. A writer's own failure is the verdict of its item, unless it is transient; a processor
// outside the transaction already had its retries (rule C2).
func (p *pipeline) mayRetryInSplit(ctx context.Context, w *work, err error, n int) bool {
	phase, isItems := phaseOf(err)
	switch {
	case phase == core.PhaseProcess && !p.step.config.ProcessInTransaction:
		return false
	case isItems && phase == core.PhaseWrite && !p.step.isTransient(phase, err) && !errors.Is(err, tx.ErrNotBegun):
		return false
	}
	return p.step.mayRetry(ctx, err, n, w.firstWrite)
}

// phaseOf returns the failed phase of an item's transaction. A failed BEGIN or checkpoint is not the
// item's.
func phaseOf(err error) (phase core.Phase, isItems bool) {
	var process *processError
	var write *writeError
	switch {
	case errors.As(err, &process):
		return core.PhaseProcess, true
	case errors.As(err, &write):
		return core.PhaseWrite, true
	}
	return "", false
}

func (p *pipeline) tryGroup(ctx context.Context, w *work, group []int) error {
	u := &commitUnit{upTo: group[len(group)-1] + 1, isCommit: true}
	u.source = func(ctx context.Context) (item.Items, []int, error) { return p.filler.outputs(ctx, w, group) }
	if !p.step.config.ProcessInTransaction {
		items, sourceIndex, err := p.filler.outputs(ctx, w, group)
		if err != nil {
			return err
		}
		if items.Len() == 0 && len(p.filler.states) == 0 {
			return nil // all filtered: they commit with the items after them
		}
		u.isCommit = items.Len() > 0 // otherwise their state in a processor is committed alone
		u.source = func(context.Context) (item.Items, []int, error) { return items, sourceIndex, nil }
	}
	err := p.commit(ctx, w, u)
	if err != nil {
		return p.noteRollback(ctx, err, u.items)
	}
	for _, i := range u.sourceIndex {
		w.give(i, written)
	}
	return nil
}

// outputs returns the outputs to write of a group, and the item of each: the items if there are no
// processors, the same outputs if they are kept. Otherwise it processes the items again, so that a
// writer that changed them does not spoil the split.
func (f *filler) outputs(ctx context.Context, w *work, group []int) (item.Items, []int, error) {
	first, last := group[0], group[len(group)-1]
	if len(f.chains) == 0 {
		return w.items.View(first, last+1), group, nil
	}
	if f.step.config.KeepOutputs {
		return w.output.View(w.outputsBefore(first), w.outputsBefore(last+1)), group, nil
	}
	c := f.chains[0]
	c.buffer.Reset()
	c.sourceIndex = c.sourceIndex[:0]
	err := guarded(func() error {
		for _, i := range group {
			if w.verdicts[i] != pending {
				continue
			}
			err := f.processItem(ctx, w, c, i, !f.step.config.ProcessInTransaction, w.firstWrite)
			switch {
			case err == nil:
				c.buffer.Store(c.out)
				c.sourceIndex = append(c.sourceIndex, i)
			case errors.Is(err, item.ErrFilter):
				w.give(i, filtered)
			default:
				return &processError{place: i, meta: w.items.Meta(i), err: err}
			}
		}
		return nil
	})
	return c.buffer, c.sourceIndex, err
}
