package mapping

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// shared by all goroutines of a step; state per item is in each goroutine's chain
type processor struct {
	in      item.Type
	schema  *row.Schema // while it is open, shapes are made at run time
	open    bool
	copies  bool
	assigns []assign

	mu   sync.Mutex
	seen atomic.Pointer[shape]
}

type assign struct {
	index   int
	name    string
	program *expression.ItemProgram
}

type shape struct {
	in, out *row.Schema
	indexes []int
}

var _ item.Processor = (*processor)(nil)

func (p *processor) NewCell() any                     { return p.in.NewCell() }
func (p *processor) NewItems(capacity int) item.Items { return item.NewSlice[item.Row](capacity) }
func (p *processor) Component() any                   { return p }

func (p *processor) IndependentOf(string) bool { return true }

func (p *processor) Chain(in any) (any, item.Advance, error) {
	frame, err := expression.NewFrame(in)
	if err != nil {
		return nil, nil, err
	}
	c := &chain{processor: p, frame: frame, in: in.(itemextra.AnyCell)}
	c.rows, _ = in.(*item.Cell[item.Row])
	c.fixed = &shape{out: p.schema}
	for _, a := range p.assigns {
		c.fixed.indexes = append(c.fixed.indexes, a.index)
	}
	return &c.out, c.advance, nil
}

type chain struct {
	*processor
	frame *expression.Frame
	in    itemextra.AnyCell
	rows  *item.Cell[item.Row] // nil means a Go type
	fixed *shape
	out   item.Cell[item.Row]
	slab  []row.Value
}

func (c *chain) advance(context.Context) error {
	s := c.fixed
	if c.open {
		var err error
		if s, err = c.shapeOf(c.rows.Item.Schema()); err != nil {
			return err
		}
	}
	values := c.take(s.out.Len())
	if c.copies {
		copy(values, c.rows.Item.Values())
	}
	for i, a := range c.assigns {
		v, err := a.program.Eval(c.frame)
		if err != nil {
			c.slab = c.slab[:len(c.slab)-len(values)] // no other stage has seen them
			clear(values)
			return fmt.Errorf("map %s: %w", a.name, err)
		}
		values[s.indexes[i]] = v
	}
	c.out.Item, c.out.Meta = row.New(s.out, values), c.in.Origin()
	return nil
}

// Rows live until their chunk is written, and only the collector knows when the last of a slab is gone, so
// slabs are not reused.
func (c *chain) take(n int) []row.Value {
	const slabValues = 4096
	if cap(c.slab)-len(c.slab) < n {
		c.slab = make([]row.Value, 0, max(slabValues, n))
	}
	from := len(c.slab)
	c.slab = c.slab[:from+n]
	return c.slab[from : from+n : from+n]
}

// once, and the same schema for all goroutines
func (p *processor) shapeOf(in *row.Schema) (*shape, error) {
	if s := p.seen.Load(); s != nil && s.in == in {
		return s, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.seen.Load(); s != nil && s.in == in {
		return s, nil
	}
	s := &shape{in: in}
	var fields []row.Field
	if in != nil {
		fields = in.Fields()
	}
	for _, a := range p.assigns {
		field := row.Field{Name: a.name, Kind: a.program.Kind(), Nullable: a.program.Nullable()}
		s.indexes = append(s.indexes, setField(&fields, field))
	}
	var err error
	if s.out, err = row.NewSchema(fields...); err != nil {
		return nil, fmt.Errorf("map: %w", err)
	}
	p.seen.Store(s)
	return s, nil
}
