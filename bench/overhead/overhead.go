// Package overhead is a reader, a processor and a writer that do next to nothing, and loops over them: the
// remaining time is the cost of an item in the engine, or the loop.
//
// It imports package batch, and fx for the registration.
package overhead

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// Chunk is the size of the chunks, of the loops as well: so large that the
// step's work once for each of them, such as BEGIN, does not count.
const Chunk = 100_000

// Counter reads the numbers 1 to Items.
type Counter struct {
	at, Items int
	timed     *Total // nil means a loop
}

// NewCounter returns the reader of a step that writes with t.
func NewCounter(items int, t *Total) *Counter { return &Counter{Items: items, timed: t} }

// Open is called by a step before the first item.
func (c *Counter) Open(context.Context, batch.Position) error {
	if c.timed != nil {
		c.timed.begin = time.Now()
	}
	return nil
}

// Read returns the next number.
func (c *Counter) Read(context.Context) (int, error) {
	if c.at == c.Items {
		return 0, io.EOF
	}
	c.at++
	return c.at, nil
}

// Increment adds one to a number.
type Increment struct{}

// Process returns n + 1.
func (Increment) Process(_ context.Context, n int) (int, error) { return n + 1, nil }

// Total writes nothing. It counts the items, and the time that a step takes for them.
type Total struct {
	Items int
	// begin is when a step begins with a chunk: it has opened the reader, or
	// committed the previous chunk.
	begin time.Time
	took  time.Duration
}

// Took is the time of a step from the opening of its reader to the last Write,
// without the commits of its chunks.
func (t *Total) Took() time.Duration { return t.took }

func (t *Total) Write(_ context.Context, items []int) error {
	t.Items += len(items)
	if !t.begin.IsZero() {
		t.took += time.Since(t.begin)
	}
	return nil
}

// Release is called by a step when a chunk is committed.
func (t *Total) Release(context.Context) error {
	t.begin = time.Now()
	return nil
}

// Components are the reader count, the processor increment, and the writer total, which is t.
func Components(t *Total) fx.Option {
	return fx.Options(
		batch.Reader[int]("count", func(c counted) *Counter {
			return NewCounter(c.Items, t)
		}),
		batch.Processor[int, int]("increment", func() Increment { return Increment{} }),
		batch.Writer[int]("total", func() *Total { return t }),
	)
}

type counted struct {
	Items int `key:"items" required:"true" doc:"How many numbers there are."`
}

// Job is a job file of one step over that many numbers, with the processor or without.
func Job(items int, processor bool) string {
	text := fmt.Sprintf("job: overhead\nflow:\n- step: count\n  chunk:\n    size: %d\n    reader: {count: {items: %d}}\n", Chunk, items)
	if processor {
		text += "    processor: increment\n"
	}
	return text + "    writer: total\n"
}

// Loop is the engine's comparison: the same components through their generic
// interfaces, chunk by chunk.
func Loop[I, O any](ctx context.Context, r item.ItemReader[I], p item.ItemProcessor[I, O], w item.ItemWriter[O], size int) error {
	out := make([]O, 0, size)
	for {
		out = out[:0]
		var ended error
		for range size {
			in, err := r.Read(ctx)
			if err != nil {
				ended = err
				break
			}
			made, err := p.Process(ctx, in)
			if err != nil {
				return err
			}
			out = append(out, made)
		}
		if err := w.Write(ctx, out); err != nil {
			return err
		}
		if errors.Is(ended, io.EOF) {
			return nil
		}
		if ended != nil {
			return ended
		}
	}
}

// The interfaces of a framework without type parameters.
type (
	anyReader interface {
		Read(ctx context.Context) (any, error)
	}
	anyProcessor interface {
		Process(ctx context.Context, in any) (any, error)
	}
	anyWriter interface {
		Write(ctx context.Context, items []any) error
	}
)

type boxedReader struct{ *Counter }

func (r boxedReader) Read(ctx context.Context) (any, error) { return r.Counter.Read(ctx) }

type boxedProcessor struct{ Increment }

func (p boxedProcessor) Process(ctx context.Context, in any) (any, error) {
	n, ok := in.(int)
	if !ok {
		return nil, fmt.Errorf("a %T is no int", in)
	}
	return p.Increment.Process(ctx, n)
}

type boxedWriter struct{ *Total }

func (w boxedWriter) Write(_ context.Context, items []any) error {
	w.Items += len(items)
	return nil
}

// Boxed is the loop with each item as a value of type any.
func Boxed(ctx context.Context, items int, t *Total) error {
	return Loop(ctx, item.ItemReader[any](anyReader(boxedReader{&Counter{Items: items}})), item.ItemProcessor[any, any](anyProcessor(boxedProcessor{})),
		item.ItemWriter[any](anyWriter(boxedWriter{t})), Chunk)
}

// Channels is a goroutine for each component, with a channel for the items between them.
func Channels(ctx context.Context, items int, t *Total) error {
	const buffered = 64
	read, made := make(chan int, buffered), make(chan int, buffered)
	var failed [2]error
	go func() {
		defer close(read)
		r := &Counter{Items: items}
		for {
			n, err := r.Read(ctx)
			if err != nil {
				if !errors.Is(err, io.EOF) {
					failed[0] = err
				}
				return
			}
			read <- n
		}
	}()
	go func() {
		defer close(made)
		for n := range read {
			out, err := (Increment{}).Process(ctx, n)
			if err != nil {
				failed[1] = err
			}
			made <- out
		}
	}()
	out := make([]int, 0, Chunk)
	for n := range made {
		if out = append(out, n); len(out) == Chunk {
			if err := t.Write(ctx, out); err != nil {
				return err
			}
			out = out[:0]
		}
	}
	return errors.Join(failed[0], failed[1], t.Write(ctx, out))
}
