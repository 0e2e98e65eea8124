package chunk

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// chain is the processors, wired in sequence for one goroutine.
type chain struct {
	in, out any // cells
	moves   []item.Advance
	// whole is the only processor, if it takes many items with one call; otherwise nil.
	whole    itemextra.BatchProcessor
	newItems func(capacity int) item.Items
	// buffer holds the outputs of a goroutine of its own, or of a split; then sourceIndex has the item
	// of each.
	buffer      item.Items
	sourceIndex []int
}

func newChain(processors []item.Processor, size int) (*chain, error) {
	c := &chain{in: processors[0].NewCell()}
	c.out = c.in
	for i, processor := range processors {
		out, move, err := processor.Chain(c.out)
		if err != nil {
			return nil, fmt.Errorf("processor %d: %w", i+1, err)
		}
		c.out, c.moves, c.newItems = out, append(c.moves, move), processor.NewItems
	}
	if len(processors) == 1 {
		c.whole = optional[itemextra.BatchProcessor](processors[0])
	}
	c.buffer = c.newItems(min(size, DefaultSize))
	return c, nil
}

func (c *chain) move(ctx context.Context) error {
	for _, move := range c.moves {
		if err := move(ctx); err != nil {
			return err
		}
	}
	return nil
}

// state is a processor with a position (rule C4a).
type state struct {
	number     int // from 1
	positioner item.Positioner
	opener     item.Opener
	rewinder   item.Rewinder
	closer     item.Closer
}
