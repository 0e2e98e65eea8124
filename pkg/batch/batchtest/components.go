package batchtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// Components are the parts of a chunk step under test. Processor may be nil if I and O are one type.
type Components[I, O any] struct {
	Reader    item.ItemReader[I]
	Processor item.ItemProcessor[I, O]
	Writer    item.ItemWriter[O]
}

// Chunk configures the chunk step of [Step]: Size, Retry, Skip and the other keys of a file.
type Chunk = chunk.Config

// Step runs a chunk step of these components, as c configures it; Name, Database and Assemble are filled in
// if not set:
//
//	sink := &batchtest.Sink[Invoice]{}
//	batchtest.Step(batchtest.New(t), batchtest.Chunk{Size: 10}, batchtest.Components[Order, Invoice]{
//		Reader: batchtest.Slice(orders...), Processor: price, Writer: sink,
//	}).Completed()
//
// Faults of the Env strike here too.
func Step[I, O any](e *Env, c Chunk, parts Components[I, O]) *Run {
	e.t.Helper()
	if c.Name == "" {
		c.Name = "step"
	}
	if c.Database == nil {
		c.Database = e.Database("")
	}
	if c.Assemble == nil {
		c.Assemble = func(context.Context, *model.StepRun) (chunk.Parts, error) {
			p := chunk.Parts{Reader: item.EraseReader(parts.Reader), Writers: []item.Writer{item.EraseWriter(parts.Writer)}}
			if parts.Processor != nil {
				p.Processors = []item.Processor{item.EraseProcessor(parts.Processor)}
			}
			return e.config.faults.Parts(c.Name, p), nil
		}
	}
	s, err := chunk.New(c)
	if err != nil {
		e.t.Fatalf("batchtest: %v", err)
	}
	return e.RunStep(s)
}

// Slice returns a reader of these items, which can be restarted.
func Slice[T any](items ...T) item.ItemReader[T] { return &sliceReader[T]{items: items} }

type sliceReader[T any] struct {
	items []T
	next  int
}

func (r *sliceReader[T]) Open(_ context.Context, at item.Position) error {
	r.next = 0
	if at == nil {
		return nil
	}
	return json.Unmarshal(at, &r.next)
}

func (r *sliceReader[T]) Rereads() {}

func (r *sliceReader[T]) IndependentOf(string) bool { return true }

func (r *sliceReader[T]) Position() (item.Position, error) { return json.Marshal(r.next) }

func (r *sliceReader[T]) Meta() item.Meta { return item.Meta{Line: int64(r.next)} }

func (r *sliceReader[T]) Read(context.Context) (item T, err error) {
	if r.next >= len(r.items) {
		return item, io.EOF
	}
	r.next++
	return r.items[r.next-1], nil
}

// Sink is a writer that keeps its items in memory, and forgets those rolled back.
type Sink[T any] struct {
	mu    sync.Mutex
	items []T
}

// Write implements item.ItemWriter.
func (s *Sink[T]) Write(_ context.Context, items []T) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items = append(s.items, items...)
	return nil
}

// Open forgets uncommitted items of a previous attempt.
func (s *Sink[T]) Open(ctx context.Context, at item.Position) error { return s.Rewind(ctx, at) }

// Rewind implements item.Rewinder.
func (s *Sink[T]) Rewind(_ context.Context, at item.Position) error {
	n := 0
	if at != nil {
		if err := json.Unmarshal(at, &n); err != nil {
			return fmt.Errorf("position of the sink: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > len(s.items) {
		return fmt.Errorf("the sink has %d items, but its position says %d", len(s.items), n)
	}
	s.items = s.items[:n]
	return nil
}

// Position implements item.Positioner.
func (s *Sink[T]) Position() (item.Position, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return json.Marshal(len(s.items))
}

// Items returns a copy of the written items. After a failed step it may have the last chunk, which was
// rolled back.
func (s *Sink[T]) Items() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.items)
}

// Has checks the written items, in order.
func Has[T comparable](t testing.TB, s *Sink[T], want ...T) {
	t.Helper()
	if got := s.Items(); !slices.Equal(got, want) {
		t.Errorf("written:\n got %v\nwant %v", got, want)
	}
}
