package core

import "reflect"

// AnyCell is a *Cell whose type the caller cannot name: processors that serve
// items of every type (filter, validate) look into the cell of their chain with
// it. Both answers are about the item that is in the cell at that moment.
type AnyCell interface {
	// Value returns the item's place in the cell. It stays the same place over all
	// items of the chain, so it is asked for once, and is for reading only.
	Value() reflect.Value
	// Origin returns where the item came from.
	Origin() Meta
}

// Value returns the place of the item.
func (c *Cell[T]) Value() reflect.Value { return reflect.ValueOf(&c.Item).Elem() }

// Origin returns Meta.
func (c *Cell[T]) Origin() Meta { return c.Meta }

func (t rowType) NewCell() any                { return new(Cell[Row]) }
func (t rowType) NewItems(capacity int) Items { return NewSlice[Row](capacity) }

func (t *structType[T]) NewCell() any                { return new(Cell[T]) }
func (t *structType[T]) NewItems(capacity int) Items { return NewSlice[T](capacity) }

// FieldName returns how schemas and expressions call a field of a Go struct: its
// tag `batch:"name"`, or its name in lower snake case; empty if it is left out
// (`batch:"-"`, or not exported).
func FieldName(f reflect.StructField) string {
	name := f.Tag.Get("batch")
	switch {
	case !f.IsExported() || name == "-":
		return ""
	case name == "":
		return snakeCase(f.Name)
	}
	return name
}
