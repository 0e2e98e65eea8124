package item

import (
	"fmt"
	"reflect"
)

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

// Value returns the location of the item.
func (c *Cell[T]) Value() reflect.Value { return reflect.ValueOf(&c.Item).Elem() }

// Origin returns Meta.
func (c *Cell[T]) Origin() Meta { return c.Meta }

func typeMismatch[T any](role string, got any) error {
	return fmt.Errorf("a %s of %v received a %T", role, reflect.TypeFor[T](), got)
}
