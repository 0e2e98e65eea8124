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

// The engine holds items only as whole slices in [Items], one interface value per chunk, so no item is
// boxed on its way (the type parameters are captured where a component is registered). [Reader],
// [Processor] and [Writer] are the erased forms of the authors' generic interfaces; [EraseReader],
// [EraseProcessor] and [EraseWriter] make them.

// Items is a slice of items of one type with the origin of each.
type Items interface {
	Len() int
	// Reset empties it, keeping its memory. Items returned before are void.
	Reset()
	// Truncate keeps the first n items.
	Truncate(n int)
	// At returns item i, boxed: for skips, listeners and messages only.
	At(i int) any
	Meta(i int) Meta
	// Mark returns the Marker's mark after item i; nil without a Marker.
	Mark(i int) any
	// Load copies item i and its meta into cell, a *Cell of the same type.
	Load(i int, cell any)
	// Store appends the item and meta of cell, a *Cell of the same type.
	Store(cell any)
	// AppendAll appends all items of from, an Items of the same type.
	AppendAll(from Items)
	// View returns items i to j-1 without copying; it is void after the next change.
	View(i, j int) Items
}

// Slice is the Items of type T.
type Slice[T any] struct {
	Items []T
	Metas []Meta // empty, or one per item
	Marks []any  // empty, or one per item
}

// NewSlice returns an empty slice with room for capacity items.
func NewSlice[T any](capacity int) *Slice[T] { return &Slice[T]{Items: make([]T, 0, capacity)} }

// Len returns the number of items.
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

// At returns item i, boxed.
func (s *Slice[T]) At(i int) any { return s.Items[i] }

// Meta returns the origin of item i; zero if unknown.
func (s *Slice[T]) Meta(i int) Meta {
	if i < len(s.Metas) {
		return s.Metas[i]
	}
	return Meta{}
}

// Mark returns the Marker's mark after item i; nil without a Marker.
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

// typed lets a type that embeds a Slice stand for it.
func (s *Slice[T]) typed() *Slice[T] { return s }

// sliceOf returns the slice inside items, for any Items type.
func sliceOf[T any](role string, items Items) (*Slice[T], error) {
	if t, ok := items.(interface{ typed() *Slice[T] }); ok {
		return t.typed(), nil
	}
	return nil, typeMismatch[T](role, items)
}

// Cell holds the one item between two processors of a chain.
type Cell[T any] struct {
	Item T
	Meta Meta
}

// Reader is an item reader with its type erased per chunk.
type Reader interface {
	// NewItems returns an empty buffer of the reader's type.
	NewItems(capacity int) Items
	// Fill appends items to the buffer until it holds n, the data ends (io.EOF) or a read fails; on an
	// error the items read before it are in the buffer.
	Fill(ctx context.Context, items Items, n int) error
	// Component is the author's value, which may implement Opener, Positioner, ...
	Component() any
}

// Writer is an item writer with its type erased per chunk.
type Writer interface {
	Write(ctx context.Context, items Items) error
	Component() any
}

// Encoding holds the encoded items of one chunk.
type Encoding interface {
	// Encode replaces the content, and changes nothing else. It is called on another goroutine than
	// Write, which reports the same error again.
	Encode(items Items) error
}

// Advance moves one item through one processor, from its input to its output cell.
type Advance = func(ctx context.Context) error

// Processor is an item processor with its type erased per chain.
type Processor interface {
	// NewCell returns an empty *Cell of the processor's input type.
	NewCell() any
	// Chain wires the processor after the cell in, and returns its own output cell with the function
	// that advances one item. Every goroutine of a step makes its own chain.
	Chain(in any) (out any, advance Advance, err error)
	// NewItems returns an empty buffer of the processor's output type.
	NewItems(capacity int) Items
	Component() any
}

// EraseReader erases the type of r.
func EraseReader[T any](r ItemReader[T]) Reader {
	e := &erasedReader[T]{r: r, mark: markerOf(r)}
	e.meta, _ = r.(MetaReader)
	return e
}

type erasedReader[T any] struct {
	r    ItemReader[T]
	meta MetaReader
	mark Marker
	// watched provides the position before each Read; nil disables it (rule C1b).
	watched Positioner
}

func (e *erasedReader[T]) WatchPosition() bool {
	e.watched, _ = e.r.(Positioner)
	return e.watched != nil
}

// readWatched is Read that also determines whether the item was consumed.
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

// markerOf returns the reader, or its source, as a Marker; nil if neither is one.
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

// EraseWriter erases the type of w.
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

// EraseProcessor erases the types of p.
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
