package chunk

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// writeError is the failure of a writer, or of a COMMIT that the database refused: the
// only failures of a transaction that may cost an item.
type writeError struct{ err error }

func (e *writeError) Error() string { return "write: " + e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

// settle gives every item of the chunk its verdict: it writes the chunk, tries
// again with the same items what may be tried again, and splits the chunk where
// one of its items is at fault (rules C6, C7).
func (p *pipeline) settle(ctx context.Context) error {
	began := time.Now()
	for attempt := 0; ; {
		err := p.commit(ctx, &part{to: p.items.Len(), all: true, counts: p.items.Len() > 0, produce: p.whole})
		if err == nil {
			return nil
		}
		p.undone(ctx, &err, p.output)
		var failed *processError
		if errors.As(err, &failed) {
			if err := p.cure(ctx, failed, began); err != nil {
				return err
			}
			continue
		}
		attempt++
		if p.mayRetry(ctx, err, attempt, began) {
			if err := p.repeat(ctx, attempt, err); err != nil {
				return err
			}
			continue
		}
		err = exhausted(err, attempt)
		if split, refused := p.splits(ctx, err); !split {
			return cmp.Or(refused, err)
		}
		if err := p.goOn(ctx); err != nil {
			return err
		}
		return p.split(ctx)
	}
}

// cure deals with an item that could not be processed inside of the transaction,
// which is undone now: the whole chunk is tried again, or tried without the item
// (rule C2, with a count of its own for each item).
func (p *pipeline) cure(ctx context.Context, failed *processError, began time.Time) error {
	if p.failures == nil {
		p.failures = map[int]int{}
	}
	p.failures[failed.place]++
	n := p.failures[failed.place]
	if p.mayRetry(ctx, failed, n, began) {
		if err := p.again(ctx, core.PhaseProcess, n, failed); err != nil {
			return err
		}
	} else if err := p.admit(ctx, core.PhaseProcess, failed.place, exhausted(failed, n)); err != nil {
		return err
	}
	return p.goOn(ctx)
}

// repeat prepares another attempt at the whole chunk: its items are still there
// and are processed again (rule C6: the read items are never lost).
func (p *pipeline) repeat(ctx context.Context, attempt int, err error) error {
	if err := p.again(ctx, core.PhaseWrite, attempt, err); err != nil {
		return err
	}
	if err := p.goOn(ctx); err != nil {
		return err
	}
	if p.step.config.KeepOutputs || p.step.config.ProcessInTransaction {
		return nil
	}
	return p.process(ctx)
}

// splits reports whether the failure of a write may be the fault of single items.
// The limit does not matter yet: it is about items, and none is found.
func (p *pipeline) splits(ctx context.Context, err error) (bool, error) {
	var write *writeError
	if p.step.config.Skip == nil || p.items.Len() == 0 || isFatal(ctx, err) || !errors.As(err, &write) {
		return false, nil
	}
	ok, refused := p.policy(err, p.exec.Step.Counters.Skips()+int64(len(p.skips)))
	var limit *SkipLimitError
	if errors.As(refused, &limit) {
		ok, refused = true, nil
	}
	if ok && p.step.config.Isolate == IsolateNone {
		return false, fmt.Errorf("%w (isolate: none: no item is skipped for the failure of its chunk)", err)
	}
	return ok, refused
}

// undone notes a rolled-back transaction and tells the listeners of writes.
func (p *pipeline) undone(ctx context.Context, err *error, items core.Items) {
	p.rolledBack(ctx, *err)
	var write *writeError
	if errors.As(*err, &write) {
		*err = p.listen.onWriteError(ctx, *err, items)
	}
}

// goOn takes writers outside of the transaction back to the last commit (rule
// C15), after a rollback that does not end the step.
func (p *pipeline) goOn(ctx context.Context) error {
	p.undoing = false
	for i, w := range p.writers {
		rewinder, ok := w.Component().(core.Rewinder)
		if !ok {
			continue
		}
		if err := guarded(func() error { return rewinder.Rewind(ctx, p.at.writer(i)) }); err != nil {
			return fmt.Errorf("take writer %d back to the last commit: %w", i+1, err)
		}
	}
	return nil
}

// part is what one transaction commits: the outcomes up to the item to, with all
// skips behind it if all.
type part struct {
	to     int
	all    bool
	counts bool // as a commit: transactions of verdicts alone do not (rule C8a)
	// produce answers what is to be written and of which items it was made; nil:
	// nothing is written.
	produce func(ctx context.Context) (core.Items, []int, error)

	items    core.Items
	of       []int
	counters core.Counters
	at       position
	encoded  core.Position
}

// whole produces the outputs of the whole chunk.
func (p *pipeline) whole(ctx context.Context) (core.Items, []int, error) {
	if p.step.config.ProcessInTransaction && len(p.chains) > 0 {
		if err := p.process(ctx); err != nil {
			return nil, nil, err
		}
	}
	return p.output, p.outOf, nil
}

// commit writes a part of the chunk, its counters, skips and position in one
// transaction under the guard of owner and epoch (rules C5, R3).
func (p *pipeline) commit(ctx context.Context, c *part) error {
	err := p.step.tx.Do(ctx, p.step.config.Attr, func(ctx context.Context) error {
		var err error
		if c.at, err = p.position(c); err != nil {
			return err
		}
		if c.produce != nil {
			if err := p.writePart(ctx, c); err != nil {
				return err
			}
		}
		return p.checkpoint(ctx, c)
	})
	var failed *tx.CommitError
	if errors.As(err, &failed) {
		// What the database itself refused to commit is certain (rule C10a).
		if errors.Is(err, tx.ErrRolledBack) {
			return &writeError{err}
		}
		err = p.judge(ctx, c, err)
	}
	if err != nil {
		return err
	}
	p.committed(ctx, c)
	return nil
}

func (p *pipeline) writePart(ctx context.Context, c *part) (err error) {
	if c.items, c.of, err = c.produce(ctx); err != nil {
		return err
	}
	if c.items.Len() > 0 {
		if err := p.listen.beforeWrite(ctx, c.items); err != nil {
			return err
		}
	}
	for i, w := range p.writers {
		if err := guarded(func() error { return p.writeTo(ctx, c, i, w) }); err != nil {
			return &writeError{err}
		}
	}
	if c.items.Len() > 0 {
		return p.listen.afterWrite(ctx, c.items)
	}
	return nil
}

// writeTo hands the part to one writer, makes it durable where it lies outside
// the transaction, and notes the writer's position.
func (p *pipeline) writeTo(ctx context.Context, c *part, i int, w core.Writer) error {
	if c.items.Len() > 0 {
		if err := w.Write(ctx, c.items); err != nil {
			return err
		}
	}
	if preparer, ok := w.Component().(core.Preparer); ok {
		if err := preparer.Prepare(ctx); err != nil {
			return err
		}
	}
	positioner, ok := w.Component().(core.Positioner)
	if !ok {
		return nil
	}
	at, err := positioner.Position()
	if err != nil {
		return fmt.Errorf("position of writer %d: %w", i+1, err)
	}
	c.at.setWriter(i, at)
	return nil
}

func (p *pipeline) position(c *part) (at position, err error) {
	behind := slices.ContainsFunc(p.skips, func(s *skip) bool { return s.place >= c.to })
	at = p.next
	if c.to < p.items.Len() || (behind && !c.all) {
		at, err = p.within(c.to, c.all)
	}
	at.Writers = slices.Clone(p.at.Writers)
	return at, err
}

// checkpoint makes the outcomes of the part facts.
func (p *pipeline) checkpoint(ctx context.Context, c *part) (err error) {
	c.counters = p.tally(c.to, c.all)
	c.counters.Rollback = p.rollbacks
	if c.items != nil {
		c.counters.Write = int64(c.items.Len())
	}
	if c.counts {
		c.counters.Commit = 1
	}
	for _, s := range p.inOrder() {
		if s.place >= c.to && !c.all {
			continue
		}
		if err := p.listen.skip(ctx, s); err != nil {
			return err
		}
	}
	if c.encoded, err = c.at.encode(); err != nil {
		return err
	}
	return p.exec.Services.Checkpoints.Checkpoint(ctx, p.exec.Ref, core.Checkpoint{
		Counters: p.exec.Step.Counters.Add(c.counters), Position: c.encoded, Context: p.exec.Step.Context, Skipped: p.records(c),
		OnStop: p.stopSeen,
	})
}

// judge decides a COMMIT of unknown outcome: what is in the guard row, once nobody
// else can write it, is what happened (rule C10). Where the row cannot be read the
// outcome stays unknown. It is never retried.
func (p *pipeline) judge(ctx context.Context, c *part, failure error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), judgeTime)
	defer cancel()
	ref, found, err := p.exec.Services.Checkpoints.Reclaim(ctx, p.exec.Ref)
	switch {
	case errors.Is(err, core.ErrLostOwner):
		return errors.Join(&refusedError{failure}, err)
	case err != nil:
		return errors.Join(fmt.Errorf("%w: %w", core.ErrUnknownOutcome, &refusedError{failure}), err)
	}
	p.exec.Ref, p.exec.Step.Epoch = ref, ref.Epoch
	if found.Counters == p.exec.Step.Counters.Add(c.counters) && bytes.Equal(found.Position, c.encoded) {
		return nil
	}
	return &refusedError{failure}
}

// judgeTime bounds the wait for the old transaction of a failed COMMIT.
const judgeTime = time.Minute

// committed notes the facts.
func (p *pipeline) committed(ctx context.Context, c *part) {
	step := p.exec.Step
	step.Counters = step.Counters.Add(c.counters)
	if step.Context != nil {
		step.Context.Stored()
	}
	reads := int64(c.to - p.settled)
	left := p.skips[:0]
	for _, s := range p.skips {
		switch {
		case s.place >= c.to && !c.all:
			left = append(left, s)
		case s.phase == core.PhaseRead:
			reads++
		}
	}
	p.skips, p.passed, p.settled, p.at = left, p.passed+reads, c.to, c.at
	p.rollbacks, p.undoing = 0, false
	if c.counters == (core.Counters{}) {
		return // of the position alone, before writers finish: no chunk
	}
	p.exec.Services.Observer.Observe(ctx, core.ChunkCommitted{
		Execution: p.exec.Data.Job.ID, JobName: p.exec.Data.Job.JobName, Step: step.Name, StepID: step.ID,
		Counters: step.Counters, Took: time.Since(p.began),
	})
}
