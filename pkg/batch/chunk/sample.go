package chunk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/fault"
	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Fate is the result that the step would give an item.
type Fate string

// The fates.
const (
	FateWritten  Fate = "written"
	FateFiltered Fate = "filtered"
	FateSkipped  Fate = "skipped"
	FateFailed   Fate = "failed" // the step would fail
)

// Sampled is one outcome of the reader in a sample, with its fate. Items are JSON as stored with a skip
// (item.EncodePayload): redacted, and cut if very long.
type Sampled struct {
	// Number counts the outcomes from 1.
	Number int
	// Meta is the origin of the item; zero if the reader does not provide it.
	Meta item.Meta
	// Read is the item as it was read; nil if the read failed.
	Read json.RawMessage
	// Stages are the outputs of the processors, in their order, up to a failure.
	Stages []json.RawMessage
	Fate   Fate
	// Phase, Class and Err are the reason why it would be skipped or fail; empty otherwise.
	Phase core.Phase
	Class string
	Err   error
	// Fault locates the mistake, in characters of the item's text.
	Fault fault.Place
	// Resumed: the sample began after the position of the step, and not with the first item.
	Resumed bool
}

// Sample reads the first n items after the position of run.Step, which may be nil, and runs them through the
// processors, as Execute would, and writes nothing: the writers are assembled but not opened, nothing is committed, and no listener is called.
// see gets each outcome in order; its error ends the sample.
//
// The processors run in a read-only transaction of the step's database, one for each attempt at an
// item. Retry and skip are as in the step; if the step would fail on an item, the sample continues with
// the next one, if the reader can. The error is about assembling, opening or closing, or the end of
// ctx. Of run only Job, Steps, Part, AcceptChanges, Step and the observer matter.
func (s *Step) Sample(ctx context.Context, run *model.StepRun, n int, see func(Sampled) error) (err error) {
	ctx = tx.WithHoldings(ctx, nil, nil) // as the executor does: a reader may keep connections
	own := *run
	own.Services.Fill()
	if own.Step == nil {
		own.Step = &core.StepExecution{Name: own.RecordName(s), Context: core.NewExecutionContext()}
	}
	parts, err := s.assemble(ctx, &own)
	if err != nil {
		return err
	}
	if parts.Reader == nil {
		return fmt.Errorf("chunk step %s needs a reader", s.Name())
	}
	silent := &listeners{}
	p := &pipeline{step: s, exec: &own, listeners: silent, pendingListeners: silent}
	parts.Writers = nil
	p.add(parts)
	p.filler = &filler{step: s, stop: own.Services.Stop, listeners: silent, source: newSource(parts.Reader, s.config.Retry.Limit > 0), stride: 1, retried: func(context.Context, int, error) {}}
	p.work = &work{items: parts.Reader.NewItems(1)}
	if err := p.filler.addStates(parts.Processors); err != nil {
		return fmt.Errorf("chunk step %s: %w", s.Name(), err)
	}
	at, wrong := sampledFrom(own.Step)
	m := &sample{resumed: at.Reader != nil || at.Items > 0, filler: p.filler, work: p.work}
	if m.chain, err = m.newChain(parts.Processors); err != nil {
		return fmt.Errorf("chunk step %s: %w", s.Name(), err)
	}
	defer func() { err = errors.Join(err, p.closeComponents(ctx)) }()
	if err = cmp.Or(wrong, at.bind(parts.Bound, own.Data.AcceptChanges)); err != nil {
		return fmt.Errorf("chunk step %s: %w", s.Name(), err)
	}
	if err := p.open(ctx, at); err != nil {
		return err
	}
	return m.run(ctx, n, see)
}

// sampledFrom is the beginning if a reader without a position would have to read many items again.
func sampledFrom(step *core.StepExecution) (position, error) {
	const most = 10_000
	if at, err := parsePosition(step.Position); at.Items <= most {
		return at, err
	}
	return position{}, nil
}

// sample is a sample in progress, with a work of one item.
type sample struct {
	resumed bool
	filler  *filler
	work    *work
	chain   *chain            // nil means no processors
	stages  []json.RawMessage // of the current item
}

func (m *sample) run(ctx context.Context, n int, see func(Sampled) error) error {
	for number := 1; number <= n; number++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		got := Sampled{Number: number, Resumed: m.resumed}
		more := m.next(ctx, &got)
		if ctx.Err() != nil {
			return context.Cause(ctx) // the failures that it caused say nothing about the item
		}
		if got.Fate != "" {
			if err := see(got); err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
	}
	return nil
}

// next reads one item and processes it; more means that there may be another one. It leaves the fate
// empty if there was no item.
func (m *sample) next(ctx context.Context, got *Sampled) (more bool) {
	w := m.work
	w.items.Reset()
	w.verdicts = append(w.verdicts[:0], pending)
	m.stages = nil
	if err := m.filler.readUpTo(ctx, w, 1); err != nil {
		return m.readFailed(ctx, got, err)
	}
	got.Read, _, _ = item.EncodePayload(w.items.At(0))
	got.Meta = w.items.Meta(0)
	err := m.filler.rebase(ctx, w)
	if err == nil {
		err = m.process(ctx)
	}
	got.Stages = m.stages
	switch {
	case err == nil:
		got.Fate = FateWritten
	case errors.Is(err, item.ErrFilter):
		got.Fate = FateFiltered
	default:
		err = &processError{meta: got.Meta, err: err}
		m.setFailure(got, core.PhaseProcess, err, m.filler.step.trySkip(ctx, w, core.PhaseProcess, 0, err))
	}
	return true
}

// readFailed sets the fate of a failed read. Whether the next one can be read does not depend on
// whether this one may be skipped.
func (m *sample) readFailed(ctx context.Context, got *Sampled, err error) (more bool) {
	if isEnd(err) {
		return false
	}
	var consumed *item.ConsumedError
	if errors.As(err, &consumed) {
		got.Meta = consumed.Meta
	}
	if failure := m.filler.canStepOver(ctx, err); failure != nil {
		m.setFailure(got, core.PhaseRead, failure, failure)
		return false
	}
	refused := m.filler.step.trySkip(ctx, m.work, core.PhaseRead, 0, err)
	if failure := m.filler.source.stepOver(ctx, err); failure != nil {
		m.setFailure(got, core.PhaseRead, err, failure)
		return false
	}
	m.setFailure(got, core.PhaseRead, err, refused)
	return true
}

// setFailure sets the failure of an item; refused is nil if the step would skip it.
func (m *sample) setFailure(got *Sampled, phase core.Phase, err, refused error) {
	got.Phase, got.Fate, got.Err = phase, FateSkipped, err
	if refused != nil {
		got.Fate, got.Err = FateFailed, refused
	}
	got.Class, got.Fault = m.filler.step.classOf(got.Err), fault.Of(err, "")
	if phase != core.PhaseRead {
		return
	}
	if raw, missing := m.filler.source.rawOf(err); missing == nil && !m.filler.source.hidesRaw {
		got.Fault = fault.Of(err, raw.Text)
	}
}

func (m *sample) process(ctx context.Context) error {
	if m.chain == nil {
		return nil
	}
	return guarded(func() error { return m.filler.processItem(ctx, m.work, m.chain, 0, true, time.Now()) })
}

func (m *sample) newChain(processors []item.Processor) (*chain, error) {
	if len(processors) == 0 {
		return nil, nil
	}
	c := &chain{in: processors[0].NewCell()}
	cells, moves := make([]itemextra.AnyCell, len(processors)), make([]item.Advance, len(processors))
	at := c.in
	for i, processor := range processors {
		out, move, err := processor.Chain(at)
		if err != nil {
			return nil, fmt.Errorf("processor %d: %w", i+1, err)
		}
		cells[i], at, moves[i] = optional[itemextra.AnyCell](out), out, move
	}
	c.out = at
	c.moves = []item.Advance{func(ctx context.Context) error {
		m.stages = nil
		return m.filler.step.tx.Do(ctx, tx.Attr{ReadOnly: true}, func(ctx context.Context) error {
			for i, move := range moves {
				if err := move(ctx); err != nil {
					return err
				}
				m.addStage(cells[i])
			}
			return nil
		})
	}}
	return c, nil
}

func (m *sample) addStage(cell itemextra.AnyCell) {
	if cell == nil { // a cell of another kind cannot be read
		m.stages = append(m.stages, json.RawMessage(`"?"`))
		return
	}
	text, _, _ := item.EncodePayload(cell.Value().Interface())
	m.stages = append(m.stages, text)
}
