package item

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
)

// The engine holds whole slices in [Items], one interface value per chunk: no item is boxed. [EraseReader],
// [EraseProcessor] and [EraseWriter] make the erased forms.

// Items is a slice of one type with origins.
type Items interface {
	Len() int
	// Reset keeps the memory; earlier items are void.
	Reset()
	// Truncate keeps the first n items.
	Truncate(n int)
	// At boxes item i: for skips, listeners and messages only.
	At(i int) any
	Meta(i int) Meta
	// Mark is the Marker's after item i, or nil.
	Mark(i int) any
	// Load copies item i and meta into a *Cell of the same type.
	Load(i int, cell any)
	// Store appends a cell's item and meta.
	Store(cell any)
	// AppendAll appends from, of the same type.
	AppendAll(from Items)
	// View is items i to j-1 without copying, void after the next change.
	View(i, j int) Items
}

// Slice is the Items of type T.
type Slice[T any] struct {
	Items []T
	Metas []Meta
	Marks []any
}

// NewSlice has room for capacity items.
func NewSlice[T any](capacity int) *Slice[T] { return &Slice[T]{Items: make([]T, 0, capacity)} }

// Len is the number of items.
func (s *Slice[T]) Len() int { return len(s.Items) }

// Reset empties s.
func (s *Slice[T]) Reset() { s.Truncate(0) }

// Truncate keeps the first n items, and forgets the others.
func (s *Slice[T]) Truncate(n int) {
	clear(s.Items[n:])
	s.Items = s.Items[:n]
	if len(s.Metas) > n {
		s.Metas = s.Metas[:n]
	}
	if len(s.Marks) > n {
		clear(s.Marks[n:])
		s.Marks = s.Marks[:n]
	}
}

// At boxes item i.
func (s *Slice[T]) At(i int) any { return s.Items[i] }

// Meta is zero if unknown.
func (s *Slice[T]) Meta(i int) Meta {
	if i < len(s.Metas) {
		return s.Metas[i]
	}
	return Meta{}
}

// Mark is nil without a Marker.
func (s *Slice[T]) Mark(i int) any {
	if i < len(s.Marks) {
		return s.Marks[i]
	}
	return nil
}

// Append adds one item.
func (s *Slice[T]) Append(item T, meta Meta) {
	if len(s.Metas) > 0 || meta != (Meta{}) {
		for len(s.Metas) < len(s.Items) {
			s.Metas = append(s.Metas, Meta{})
		}
		s.Metas = append(s.Metas, meta)
	}
	s.Items = append(s.Items, item)
}

// Load copies item i into cell.
func (s *Slice[T]) Load(i int, cell any) {
	c := cell.(*Cell[T])
	c.Item, c.Meta = s.Items[i], s.Meta(i)
}

// Store appends the item of cell.
func (s *Slice[T]) Store(cell any) {
	c := cell.(*Cell[T])
	s.Append(c.Item, c.Meta)
}

// AppendAll appends all items of from.
func (s *Slice[T]) AppendAll(from Items) {
	for i, item := range from.(interface{ typed() *Slice[T] }).typed().Items { //nolint:forcetypeassert // Items of one processor
		s.Append(item, from.Meta(i))
	}
}

// View returns items i to j-1.
func (s *Slice[T]) View(i, j int) Items {
	v := &Slice[T]{Items: s.Items[i:j:j]}
	if len(s.Metas) > 0 {
		v.Metas = s.Metas[i:j:j]
	}
	return v
}

// For types that embed a Slice.
func (s *Slice[T]) typed() *Slice[T] { return s }

func sliceOf[T any](role string, items Items) (*Slice[T], error) {
	if t, ok := items.(interface{ typed() *Slice[T] }); ok {
		return t.typed(), nil
	}
	return nil, typeMismatch[T](role, items)
}

// Cell holds an item between two processors.
type Cell[T any] struct {
	Item T
	Meta Meta
}

// Reader has its type erased per chunk.
type Reader interface {
	// NewItems is an empty buffer of its type.
	NewItems(capacity int) Items
	// Fill appends until n items, io.EOF or a failure; items before an error are in the buffer.
	Fill(ctx context.Context, items Items, n int) error
	// Component is the author's value, with its optional interfaces.
	Component() any
}

// Writer has its type erased per chunk.
type Writer interface {
	Write(ctx context.Context, items Items) error
	Component() any
}

// Encoder writers encode separately: the next chunk while this one is written (rule C20b).
type Encoder interface {
	// NewEncoding is room for a chunk; nil if it encodes while it writes.
	NewEncoding() Encoding
	// WriteEncoded is Write of encoded items. done false: no longer valid, for example after a table's change;
	// nothing is written, call Write.
	WriteEncoded(ctx context.Context, e Encoding) (done bool, err error)
}

// Encoding is one chunk's.
type Encoding interface {
	// Encode replaces the content only, on another goroutine than Write, which reports the same error again.
	Encode(items Items) error
}

// Advance moves an item from a processor's input to its output cell.
type Advance = func(ctx context.Context) error

// Processor has its type erased per chain.
type Processor interface {
	// NewCell is an empty *Cell of the input type.
	NewCell() any
	// Chain wires the processor after cell in, and returns its output cell and advance. Each goroutine makes
	// its own.
	Chain(in any) (out any, advance Advance, err error)
	// NewItems is an empty buffer of the output type.
	NewItems(capacity int) Items
	Component() any
}

// BatchProcessor processes many items per call.
type BatchProcessor interface {
	// ProcessAll processes items from to to like Advance and appends outputs. It returns to, or the first
	// without an output and why: ErrFilter, or the failure.
	ProcessAll(ctx context.Context, in Items, from, to int, out Items) (next int, err error)
}

// EraseReader erases r's type.
func EraseReader[T any](r ItemReader[T]) Reader {
	e := &erasedReader[T]{r: r, mark: markerOf(r)}
	e.meta, _ = r.(MetaReader)
	return e
}

type erasedReader[T any] struct {
	r    ItemReader[T]
	meta MetaReader
	mark Marker
	// watched gives the position before each Read; nil disables it (rule C1b).
	watched Positioner
}

// PositionWatcher is implemented by [EraseReader]'s results. WatchPosition compares positions around a failed
// Read: changed means [ConsumedError]. False: no position to watch.
type PositionWatcher interface {
	WatchPosition() bool
}

func (e *erasedReader[T]) WatchPosition() bool {
	e.watched, _ = e.r.(Positioner)
	return e.watched != nil
}

func (e *erasedReader[T]) readWatched(ctx context.Context) (item T, err error) {
	before, err := e.watched.Position()
	if err != nil {
		return item, err
	}
	before = slices.Clone(before)
	if item, err = e.r.Read(ctx); err == nil || err == io.EOF || IsConsumed(err) || IsNotConsumed(err) { //nolint:errorlint // the end of the data is io.EOF itself
		return item, err
	}
	after, failure := e.watched.Position()
	if failure != nil {
		return item, errors.Join(err, failure)
	}
	if !bytes.Equal(before, after) {
		err = Consumed(Meta{}, err)
	}
	return item, err
}

// The reader or its source; nil if neither is one.
func markerOf(r any) Marker {
	if over, ok := r.(interface{ source() any }); ok {
		r = over.source()
	}
	m, _ := r.(Marker)
	return m
}

func (e *erasedReader[T]) NewItems(capacity int) Items { return NewSlice[T](capacity) }
func (e *erasedReader[T]) Component() any              { return e.r }

func (e *erasedReader[T]) Fill(ctx context.Context, items Items, n int) error {
	s, err := sliceOf[T]("reader", items)
	if err != nil {
		return err
	}
	for len(s.Items) < n {
		var item T
		if e.watched == nil {
			item, err = e.r.Read(ctx)
		} else {
			item, err = e.readWatched(ctx)
		}
		if err != nil {
			return err
		}
		if e.meta == nil {
			s.Items = append(s.Items, item)
		} else {
			s.Append(item, e.meta.Meta())
		}
		if e.mark != nil {
			s.Marks = append(s.Marks, e.mark.Mark())
		}
	}
	return nil
}

// EraseWriter erases w's type.
func EraseWriter[T any](w ItemWriter[T]) Writer { return erasedWriter[T]{w} }

type erasedWriter[T any] struct{ w ItemWriter[T] }

func (e erasedWriter[T]) Component() any { return e.w }

func (e erasedWriter[T]) Write(ctx context.Context, items Items) error {
	s, err := sliceOf[T]("writer", items)
	if err != nil {
		return err
	}
	return e.w.Write(ctx, s.Items)
}

// EraseProcessor erases p's types.
func EraseProcessor[I, O any](p ItemProcessor[I, O]) Processor {
	e := &erasedProcessor[I, O]{p: p}
	e.meta, _ = p.(MetaProcessor[I, O])
	return e
}

type erasedProcessor[I, O any] struct {
	p    ItemProcessor[I, O]
	meta MetaProcessor[I, O]
}

func (e *erasedProcessor[I, O]) NewItems(capacity int) Items { return NewSlice[O](capacity) }
func (e *erasedProcessor[I, O]) NewCell() any                { return new(Cell[I]) }
func (e *erasedProcessor[I, O]) Component() any              { return e.p }

func (e *erasedProcessor[I, O]) Chain(in any) (any, Advance, error) {
	from, ok := in.(*Cell[I])
	if !ok {
		return nil, nil, typeMismatch[I]("processor", in)
	}
	to := new(Cell[O])
	if e.meta != nil {
		return to, func(ctx context.Context) (err error) {
			to.Meta = from.Meta
			to.Item, err = e.meta.ProcessMeta(ctx, from.Item, from.Meta)
			return err
		}, nil
	}
	return to, func(ctx context.Context) (err error) {
		to.Meta = from.Meta
		to.Item, err = e.p.Process(ctx, from.Item)
		return err
	}, nil
}

// ProcessAll implements BatchProcessor.
func (e *erasedProcessor[I, O]) ProcessAll(ctx context.Context, in Items, from, to int, out Items) (int, error) {
	source, err := sliceOf[I]("processor", in)
	if err != nil {
		return from, err
	}
	target, err := sliceOf[O]("processor", out)
	if err != nil {
		return from, err
	}
	if e.meta == nil && len(source.Metas)+len(target.Metas) == 0 {
		for i, item := range source.Items[from:to] {
			made, err := e.p.Process(ctx, item)
			if err != nil {
				return from + i, err
			}
			target.Items = append(target.Items, made)
		}
		return to, nil
	}
	for i := from; i < to; i++ {
		var made O
		if e.meta != nil {
			made, err = e.meta.ProcessMeta(ctx, source.Items[i], source.Meta(i))
		} else {
			made, err = e.p.Process(ctx, source.Items[i])
		}
		if err != nil {
			return i, err
		}
		target.Append(made, source.Meta(i))
	}
	return to, nil
}

func typeMismatch[T any](role string, got any) error {
	return fmt.Errorf("a %s of %v received a %T", role, reflect.TypeFor[T](), got)
}
