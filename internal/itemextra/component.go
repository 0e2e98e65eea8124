package itemextra

import (
	"reflect"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// IsIndependent reports whether a component declares itself [item.Independent] of a database.
func IsIndependent(component any, database string) bool {
	i, ok := component.(item.Independent)
	return ok && i.IndependentOf(database)
}

// publisher is implemented by finishers that may have nothing to publish: a writer made of other
// writers asks them.
type publisher interface{ Publishes() bool }

// Publishes reports whether a component publishes its output when its step completes: a Finisher does,
// unless its publisher reports false.
func Publishes(component any) bool {
	if p, ok := component.(publisher); ok {
		return p.Publishes()
	}
	_, ok := component.(item.Finisher)
	return ok
}

// AnyCell is an [item.Cell] of a type that the caller cannot name. Processors of items of every type (filter,
// validate) read the cell of their chain through it. Both methods concern the item currently in the
// cell.
type AnyCell interface {
	// Value returns the item's location in the cell. It is the same for all items of the chain, so it
	// is called once, and is for reading only.
	Value() reflect.Value
	// Origin returns the origin of the item.
	Origin() item.Meta
}
