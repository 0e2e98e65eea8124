package expression

import (
	"context"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// Guard passes items unchanged, or returns Check's error. Items are checked in their cell, without
// copying.
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

// Component returns g: it holds nothing to open or close.
func (g *Guard) Component() any { return g }

// IndependentOf implements item.Independent: expressions know only the item and the launch.
func (g *Guard) IndependentOf(string) bool { return true }

// Chain returns its input cell: an item that passes stays in place.
func (g *Guard) Chain(in any) (any, item.Advance, error) {
	f, err := NewFrame(in)
	if err != nil {
		return nil, nil, err
	}
	return in, func(context.Context) error { return g.Check(f) }, nil
}
