package expression

import (
	"context"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// Guard is a processor of items of any type that passes them on as they are, or
// returns Check's error. Items are looked at in their cell: none is copied or boxed.
type Guard struct {
	In item.Type
	// Check is called by several goroutines, each with its own frame.
	Check func(f *Frame) error
}

var _ item.Processor = (*Guard)(nil)

// NewCell returns an empty cell of the items' type.
func (g *Guard) NewCell() any { return g.In.NewCell() }

// NewItems returns an empty buffer of the items' type.
func (g *Guard) NewItems(capacity int) item.Items { return g.In.NewItems(capacity) }

// Component returns g: it holds nothing that must be opened or closed.
func (g *Guard) Component() any { return g }

// IndependentOf implements item.Independent: expressions know the item and the launch only.
func (g *Guard) IndependentOf(string) bool { return true }

// Chain returns the cell that it is given: an item that passes stays in its place.
func (g *Guard) Chain(in any) (any, item.Advance, error) {
	f, err := NewFrame(in)
	if err != nil {
		return nil, nil, err
	}
	return in, func(context.Context) error { return g.Check(f) }, nil
}
