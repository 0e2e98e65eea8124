package chunk

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// commitChunk gives every item of the chunk its verdict: it writes the chunk, retries with the same
// items if allowed, and splits the chunk if one of its items is at fault (rules C6, C7).
func (p *pipeline) commitChunk(ctx context.Context, w *work) error {
	w.firstWrite = time.Now()
	for attempt := 0; ; {
		err := p.commit(ctx, w, p.wholeChunk(w))
		if err == nil {
			return nil
		}
		p.ahead.halt() // the following code uses the chains and the reader
		w.isEncoded = false
		err = p.noteRollback(ctx, err, w.output)
		var failed *processError
		if errors.As(err, &failed) {
			if err := p.retryOrSkipProcess(ctx, w, failed); err != nil {
				return err
			}
			continue
		}
		attempt++
		if p.step.mayRetry(ctx, err, attempt, w.firstWrite) {
			if err := p.retryWrite(ctx, w, attempt, err); err != nil {
				return err
			}
			continue
		}
		err = model.Exhausted(err, attempt)
		if split, refused := p.maySplit(ctx, w, err); !split {
			return p.withOrigin(ctx, w, cmp.Or(refused, err))
		}
		if err := p.rewindWriters(ctx); err != nil {
			return err
		}
		return p.split(ctx, w)
	}
}

// retryOrSkipProcess handles an item that could not be processed inside the transaction, which is
// rolled back now: the whole chunk is retried, or written without the item (rule C2, with a count of
// its own for each item).
func (p *pipeline) retryOrSkipProcess(ctx context.Context, w *work, failed *processError) error {
	if w.failures == nil {
		w.failures = map[int]int{}
	}
	w.failures[failed.place]++
	n := w.failures[failed.place]
	if p.step.mayRetry(ctx, failed, n, w.firstWrite) {
		if err := p.filler.beforeRetry(ctx, core.PhaseProcess, n, failed); err != nil {
			return err
		}
	} else if err := p.step.trySkip(ctx, w, core.PhaseProcess, failed.place, model.Exhausted(failed, n)); err != nil {
		return err
	}
	return p.rewindWriters(ctx)
}

// retryWrite prepares another attempt at the whole chunk: its items are processed again (rule C6: the
// read items are never lost).
func (p *pipeline) retryWrite(ctx context.Context, w *work, attempt int, err error) error {
	if err := p.filler.beforeRetry(ctx, core.PhaseWrite, attempt, err); err != nil {
		return err
	}
	if err := p.rewindWriters(ctx); err != nil {
		return err
	}
	if p.step.config.KeepOutputs || p.step.config.ProcessInTransaction {
		return nil
	}
	return p.filler.process(ctx, w)
}

// maySplit reports whether single items may be at fault for the failure of a write. The skip limit does
// not matter yet: it concerns items, and none is found. No item is at fault for a transient failure.
func (p *pipeline) maySplit(ctx context.Context, w *work, err error) (bool, error) {
	var write *writeError
	if p.step.config.Skip == nil || w.items.Len() == 0 || isFatal(ctx, err) || !errors.As(err, &write) {
		return false, nil
	}
	if p.step.isTransient(core.PhaseWrite, err) {
		return false, p.step.faultless(w, err)
	}
	ok, refused := p.step.callSkipPolicy(err, w.skipsBefore+int64(len(w.skips)))
	var limit *SkipLimitError
	if errors.As(refused, &limit) {
		ok, refused = true, nil
	}
	if ok && p.step.config.Isolate == IsolateNone {
		return false, fmt.Errorf("%w (isolate: none: no item is skipped when its chunk fails)", err)
	}
	return ok, refused
}

// noteRollback counts a rolled-back transaction and calls the listeners of failed writes. It returns
// the failure with their errors.
func (p *pipeline) noteRollback(ctx context.Context, err error, items item.Items) error {
	p.countRollback(ctx, err)
	var write *writeError
	if errors.As(err, &write) {
		return p.listeners.onWriteError(ctx, err, items)
	}
	return err
}

// rewindWriters takes writers outside the transaction back to the last commit (rule C15), after a
// rollback that does not end the step.
func (p *pipeline) rewindWriters(ctx context.Context) error {
	p.rollbackCounted = false
	p.ahead.rewound()
	p.work.beyond = nil
	return p.sinks.rewind(ctx, p.at, func(s sink) bool { return s.rewinder != nil })
}

func (list sinks) rewind(ctx context.Context, to position, which func(s sink) bool) error {
	for i, s := range list {
		if !which(s) {
			continue
		}
		if err := guarded(func() error { return s.rewinder.Rewind(ctx, to.writer(i)) }); err != nil {
			return fmt.Errorf("reset writer %d to the last commit: %w", i+1, err)
		}
	}
	return nil
}

// commitUnit is the unit of one transaction: the outcomes up to an item.
type commitUnit struct {
	upTo              int
	withTrailingSkips bool // also all skips after upTo
	isCommit          bool // counts as a commit, unlike transactions of verdicts alone (rule C8a)
	completes         bool // as in work
	// source returns the items to write and, for a part of a chunk, the item of each output; nil writes
	// nothing.
	source func(ctx context.Context) (item.Items, []int, error)

	encodings []item.Encoding // of source's items, or nil
	beyond    []item.Position // of the writers that have written them; nil for each other one, or for all

	// The transaction sets the rest.
	items       item.Items
	sourceIndex []int
	leftOut     int64 // items that a target did not take
	counters    core.Counters
	at          position
	encoded     item.Position
}

func (u *commitUnit) covers(s *skip) bool { return s.place < u.upTo || u.withTrailingSkips }

func (p *pipeline) wholeChunk(w *work) *commitUnit {
	var encodings []item.Encoding
	var beyond []item.Position
	if w.isEncoded {
		encodings, beyond = w.encodings, w.beyond
	}
	return &commitUnit{
		upTo: w.items.Len(), withTrailingSkips: true, encodings: encodings, beyond: beyond, isCommit: w.items.Len() > 0, completes: w.completes,
		source: func(ctx context.Context) (item.Items, []int, error) {
			if p.step.config.ProcessInTransaction {
				if err := p.filler.process(ctx, w); err != nil {
					return nil, nil, err
				}
			}
			return w.output, nil, nil
		},
	}
}

// commit writes a unit with its counters, skips and position in one transaction under
// the guard of owner and epoch (rules C5, R3).
func (p *pipeline) commit(ctx context.Context, w *work, u *commitUnit) error {
	if !p.step.config.ProcessInTransaction {
		if err := p.filler.seek(ctx, w, u.upTo); err != nil {
			return err
		}
	}
	if p.ahead.takeBack(u.beyond) {
		if err := p.sinks.rewind(ctx, p.at, sink.writesAhead); err != nil {
			return err
		}
	}
	attr := p.step.config.Attr
	attr.Late = true // most transactions begin with the write
	err := p.step.tx.Do(ctx, attr, func(ctx context.Context) error {
		var err error
		if u.at, err = p.positionOf(w, u); err != nil {
			return err
		}
		if u.source != nil {
			if err := p.write(ctx, u); err != nil {
				return err
			}
			p.ahead.written()
		}
		return p.checkpoint(ctx, w, u)
	})
	var failed *tx.CommitError
	if errors.As(err, &failed) {
		// A commit that the database itself refused is certain (rule C10a).
		if errors.Is(err, tx.ErrRolledBack) {
			return &writeError{err}
		}
		err = p.resolveUnknownCommit(ctx, u, err)
	}
	if err != nil {
		if p.revocable {
			w.unfilter()
		}
		return err
	}
	p.committed(ctx, w, u)
	return nil
}

// positionOf returns the position after a unit, with the writers' of the last commit.
func (p *pipeline) positionOf(w *work, u *commitUnit) (at position, err error) {
	at = w.next
	if u.upTo < w.items.Len() || slices.ContainsFunc(w.skips, func(s *skip) bool { return !u.covers(s) }) {
		at, err = p.filler.source.positionAfter(w, u.upTo, u.withTrailingSkips)
	}
	at.Writers, at.Processors, at.Bound = slices.Clone(p.at.Writers), p.at.Processors, p.at.Bound
	return at, err
}

// write passes a unit to the writers, between the listeners of writes.
func (p *pipeline) write(ctx context.Context, u *commitUnit) (err error) {
	if u.items, u.sourceIndex, err = u.source(ctx); err != nil {
		return err
	}
	if u.items.Len() > 0 {
		if err := p.listeners.beforeWrite(ctx, u.items); err != nil {
			return err
		}
	}
	for i, s := range p.sinks {
		if u.completes && s.tallier != nil {
			c := p.exec.Step.Total()
			s.tallier.Tally(itemextra.Tally{Read: c.Read, Written: c.Write, Filtered: c.Filter, Skipped: c.Skips()})
		}
		if err := guarded(func() error { return s.write(ctx, u, i) }); err != nil {
			return &writeError{err}
		}
	}
	if u.items.Len() > 0 {
		return p.listeners.afterWrite(ctx, u.items)
	}
	return nil
}

// write writes a unit, makes it durable if it lies outside the transaction, and puts the position of
// writer i into the unit.
func (s sink) write(ctx context.Context, u *commitUnit, i int) error {
	if u.beyond != nil && u.beyond[i] != nil {
		u.at.setWriter(i, u.beyond[i])
		return nil
	}
	if u.items.Len() > 0 {
		if err := s.send(ctx, u, i); err != nil {
			return err
		}
		if s.leftOuter != nil {
			u.leftOut = max(u.leftOut, s.leftOuter.LeftOut())
		}
	}
	if u.completes && s.completer != nil {
		if err := s.completer.Complete(ctx); err != nil {
			return err
		}
	}
	if s.preparer != nil {
		if err := s.preparer.Prepare(ctx); err != nil {
			return err
		}
	}
	if s.positioner == nil {
		return nil
	}
	at, err := s.positioner.Position()
	if err != nil {
		return fmt.Errorf("position of writer %d: %w", i+1, err)
	}
	u.at.setWriter(i, at)
	return nil
}

// send writes the items, in their encoded form if that is still valid.
func (s sink) send(ctx context.Context, u *commitUnit, i int) error {
	if u.encodings != nil && u.encodings[i] != nil {
		if done, err := s.encoder.WriteEncoded(ctx, u.encodings[i]); done || err != nil {
			return item.Placed(err, u.items, 0)
		}
	}
	return s.writer.Write(ctx, u.items)
}

// checkpoint stores the outcomes of the unit in its transaction.
func (p *pipeline) checkpoint(ctx context.Context, w *work, u *commitUnit) (err error) {
	u.counters = w.count(u.upTo, u.withTrailingSkips)
	u.counters.Rollback = p.rollbacks
	if u.items != nil {
		u.counters.Write = int64(u.items.Len()) - u.leftOut
	}
	if u.isCommit {
		u.counters.Commit = 1
	}
	for _, s := range w.sortedSkips() {
		if !u.covers(s) {
			continue
		}
		if err := p.listeners.skip(ctx, s); err != nil {
			return err
		}
	}
	if len(p.filler.states) > 0 {
		if err := p.filler.seek(ctx, w, u.upTo); err != nil {
			return err
		}
		if u.at.Processors, err = p.filler.statePositions(); err != nil {
			return err
		}
	}
	if u.encoded, err = u.at.encode(); err != nil {
		return err
	}
	if err := p.takeWarnings(); err != nil {
		return err
	}
	return p.exec.Services.Checkpoints.Checkpoint(ctx, p.exec.Ref, ports.Checkpoint{
		Counters: p.exec.Step.Counters.Add(u.counters), Position: u.encoded, Context: p.exec.Step.Context,
		Skipped: p.skipRecords(w, u), OnStop: p.exec.Services.Stop.Request,
	})
}

// resolveUnknownCommit decides a COMMIT of unknown outcome: the guard row shows the result, once no
// other transaction can write it (rule C10). It is queried as long as the lease allows. If it cannot be
// read, the next attempt reads it. A COMMIT is never retried.
func (p *pipeline) resolveUnknownCommit(ctx context.Context, u *commitUnit, failure error) error {
	var ref ports.StepRef
	var found ports.Checkpoint
	err := p.exec.Services.Lease.Record(context.WithoutCancel(ctx), func(ctx context.Context) (err error) {
		ref, found, err = p.exec.Services.Checkpoints.Reclaim(ctx, p.exec.Ref)
		return err
	})
	switch {
	case errors.Is(err, core.ErrLostOwner):
		return errors.Join(&fatalError{failure}, err)
	case err != nil:
		return errors.Join(fmt.Errorf("%w: %w", ports.ErrLostCommit, &fatalError{failure}), err)
	}
	p.exec.Ref, p.exec.Step.Epoch = ref, ref.Epoch
	if found.Counters == p.exec.Step.Counters.Add(u.counters) && bytes.Equal(found.Position, u.encoded) {
		return nil
	}
	return &fatalError{failure}
}

// committed updates the state after a commit.
func (p *pipeline) committed(ctx context.Context, w *work, u *commitUnit) {
	step := p.exec.Step
	step.Counters = step.Counters.Add(u.counters)
	if step.Context != nil {
		step.Context.Stored()
	}
	w.committed(u.upTo, u.withTrailingSkips)
	p.at, p.rollbacks, p.rollbackCounted = u.at, 0, false
	p.filler.committed = u.at.Processors
	if u.counters == (core.Counters{}) {
		return // the position before writers finish is not a chunk
	}
	p.exec.Services.Observer.Observe(ctx, core.ChunkCommitted{
		Execution: p.exec.Data.Job.ID, JobName: p.exec.Data.Job.JobName, Step: step.Name, StepID: step.ID,
		Counters: step.Counters, Took: time.Since(w.began),
	})
}

func (p *pipeline) skipRecords(w *work, u *commitUnit) []core.SkippedItem {
	var list []core.SkippedItem
	at := w.start
	reads := int64(0) // skipped reads before it
	for _, s := range w.sortedSkips() {
		if !u.covers(s) {
			break
		}
		at.Items = w.start.Items + w.committedReads + int64(s.place-w.committedItems) + reads
		list = append(list, p.skipRecord(s, at))
		if s.phase == core.PhaseRead {
			reads++
		}
	}
	return list
}

// skipRecord returns the stored form of a skip (rule C12); before is the position before the item.
func (p *pipeline) skipRecord(s *skip, before position) core.SkippedItem {
	r := core.SkippedItem{
		StepExecutionID: p.exec.Step.ID, Phase: s.phase, Meta: s.meta, Error: s.err.Error(), Class: p.step.classOf(s.err), Fault: s.fault,
	}
	before.Writers = nil
	if mark, err := before.encode(); err == nil { // a mark that is too long is left out
		r.Mark = mark
	}
	if s.phase == core.PhaseRead {
		r.Raw, r.Truncated, r.SHA256 = s.raw, s.rawTruncated, s.rawSum
	} else {
		r.Item, r.Truncated, r.SHA256 = item.EncodePayload(s.item)
	}
	return r
}
