package chunk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Fate is what would become of an item.
type Fate string

// The fates.
const (
	FateWritten  Fate = "written"
	FateFiltered Fate = "filtered"
	FateSkipped  Fate = "skipped"
	FateFailed   Fate = "failed" // the step would fail with it
)

// Sampled is one outcome of the reader in a sample, and what became of it. Items
// are JSON as they are stored of a skip (core.EncodeSkippedItem): redacted, and cut
// where they are very long.
type Sampled struct {
	// Number counts the outcomes from 1.
	Number int
	// Meta is where the item came from; zero if the reader does not say.
	Meta core.Meta
	// Read is the item as it was read; nil where the read failed.
	Read json.RawMessage
	// Stages are what the processors made of it, in their order, as far as it came.
	Stages []json.RawMessage
	Fate   Fate
	// Phase, Class and Err say why it would be skipped or fail; empty otherwise.
	Phase core.Phase
	Class string
	Err   error
}

// Sample reads the first n items and runs them through the processors, as Execute
// would, and writes nothing: the writers are assembled but not opened, nothing is
// committed, and listeners are not told. see is told of each outcome in order; its
// error ends the sample.
//
// The processors run in a read-only transaction of the step's database, one for
// each attempt at an item. Retry and skip are those of the step; a step that would
// fail on an item goes on to the next one, as far as its reader can. The error is
// about what comes before the first item (assembling and opening), the end of ctx,
// or closing. Of run only Job, Steps, Part and the observer matter.
func (s *Step) Sample(ctx context.Context, run *core.StepRun, n int, see func(Sampled) error) (err error) {
	own := *run
	own.Services.Fill()
	if own.Step == nil {
		own.Step = &core.StepExecution{Name: own.RecordName(s), Context: core.NewExecutionContext()}
	}
	var parts Parts
	if err := guarded(func() (err error) { parts, err = s.config.Assemble(ctx, &own); return err }); err != nil {
		return err
	}
	if parts.Reader == nil {
		return fmt.Errorf("chunk step %s needs a reader", s.Name())
	}
	p := &pipeline{step: s, exec: &own, reader: parts.Reader, items: parts.Reader.NewItems(1)}
	p.parts = append(p.parts, p.reader.Component())
	for _, processor := range parts.Processors {
		p.parts = append(p.parts, processor.Component())
	}
	m := &sample{pipeline: p}
	if m.chain, err = m.newChain(parts.Processors); err != nil {
		return fmt.Errorf("chunk step %s: %w", s.Name(), err)
	}
	defer func() { err = errors.Join(err, p.close(ctx)) }()
	if err := p.open(ctx, position{}); err != nil {
		return err
	}
	return m.run(ctx, n, see)
}

// sample is a sample in progress: a pipeline of one item, without writers.
type sample struct {
	*pipeline
	chain  *chain            // nil: no processors
	stages []json.RawMessage // of the item in hand
}

func (m *sample) run(ctx context.Context, n int, see func(Sampled) error) error {
	for number := 1; number <= n; number++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		got := Sampled{Number: number}
		more := m.one(ctx, &got)
		if ctx.Err() != nil {
			return context.Cause(ctx) // what it broke says nothing about the item
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

// one reads one item and processes it; more says that there may be another one.
// Without a fate there was none.
func (m *sample) one(ctx context.Context, got *Sampled) (more bool) {
	m.items.Reset()
	m.verdicts = append(m.verdicts[:0], pending)
	m.stages = nil
	if err := m.fill(ctx, 1); err != nil {
		return m.readFailed(ctx, got, err)
	}
	got.Read, _, _ = core.EncodeSkippedItem(m.items.At(0))
	got.Meta = m.items.Meta(0)
	err := m.processSample(ctx)
	got.Stages = m.stages
	switch {
	case err == nil:
		got.Fate = FateWritten
	case errors.Is(err, core.ErrFilter):
		got.Fate = FateFiltered
	default:
		err = &processError{meta: got.Meta, err: err}
		m.judge(got, core.PhaseProcess, err, m.admit(ctx, core.PhaseProcess, 0, err))
	}
	return true
}

// readFailed decides about a read that failed. Whether the next one can be read
// does not depend on whether this one may be skipped.
func (m *sample) readFailed(ctx context.Context, got *Sampled, err error) (more bool) {
	if isEnd(err) {
		return false
	}
	var consumed *core.ConsumedError
	if errors.As(err, &consumed) {
		got.Meta = consumed.Meta
	}
	over, unable := m.stepOver(ctx, err)
	if unable != nil {
		m.judge(got, core.PhaseRead, unable, unable)
		return false
	}
	refused := m.admit(ctx, core.PhaseRead, 0, err)
	if failure := over(ctx); failure != nil {
		m.judge(got, core.PhaseRead, err, failure)
		return false
	}
	m.judge(got, core.PhaseRead, err, refused)
	return true
}

// judge notes the failure of an item, and whether the step would skip it.
func (m *sample) judge(got *Sampled, phase core.Phase, err, refused error) {
	got.Phase, got.Fate, got.Err = phase, FateSkipped, err
	if refused != nil {
		got.Fate, got.Err = FateFailed, refused
	}
	got.Class = m.step.classOf(got.Err)
}

func (m *sample) processSample(ctx context.Context) error {
	if m.chain == nil {
		return nil
	}
	return guarded(func() error { return m.processItem(ctx, m.chain, 0, true) })
}

// newChain wires the processors, so that what each of them makes is seen.
func (m *sample) newChain(processors []core.Processor) (*chain, error) {
	if len(processors) == 0 {
		return nil, nil
	}
	c := &chain{in: processors[0].NewCell()}
	cells, moves := make([]core.AnyCell, len(processors)), make([]core.Advance, len(processors))
	at := c.in
	for i, processor := range processors {
		out, move, err := processor.Chain(at)
		if err != nil {
			return nil, fmt.Errorf("processor %d: %w", i+1, err)
		}
		cells[i], _ = out.(core.AnyCell)
		at, moves[i] = out, move
	}
	c.out = at
	c.moves = []core.Advance{func(ctx context.Context) error {
		m.stages = nil
		return m.step.tx.Do(ctx, tx.Attr{ReadOnly: true}, func(ctx context.Context) error {
			for i, move := range moves {
				if err := move(ctx); err != nil {
					return err
				}
				m.stage(cells[i])
			}
			return nil
		})
	}}
	return c, nil
}

// stage keeps what a processor has made.
func (m *sample) stage(cell core.AnyCell) {
	if cell == nil { // a cell of its own kind: nobody can look into it
		m.stages = append(m.stages, json.RawMessage(`"?"`))
		return
	}
	text, _, _ := core.EncodeSkippedItem(cell.Value().Interface())
	m.stages = append(m.stages, text)
}
