package lookup

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

type processor struct {
	*plan
	rows rows
}

type rows interface {
	// find returns the taken values of the row, or nil. of is the encoded key. The values belong to rows.
	find(ctx context.Context, of []byte, key []row.Value) ([]row.Value, error)
}

func (p *processor) NewCell() any { return p.in.NewCell() }

func (p *processor) NewItems(capacity int) item.Items { return item.NewSlice[item.Row](capacity) }

// Rows in memory were read at the start.
func (p *processor) IndependentOf(database string) bool {
	t, asks := p.rows.(*table)
	return !asks || t.db.Name() != database
}

func (p *processor) Component() any { return p }

func (p *processor) Open(ctx context.Context, _ item.Position) error {
	m, ok := p.rows.(*memory)
	if !ok {
		return nil
	}
	if err := m.load(ctx); err != nil {
		return fmt.Errorf("lookup: %w", err)
	}
	return nil
}

func (p *processor) Chain(in any) (any, item.Advance, error) {
	frame, err := expression.NewFrame(in)
	if err != nil {
		return nil, nil, err
	}
	rows, ok := in.(*item.Cell[item.Row])
	if !ok {
		return nil, nil, fmt.Errorf("lookup received a %T, which is not a value of a row", in)
	}
	c := &chain{processor: p, frame: frame, in: rows, key: make([]row.Value, len(p.key))}
	return &c.out, c.advance, nil
}

type chain struct {
	*processor
	frame *expression.Frame
	in    *item.Cell[item.Row]
	out   item.Cell[item.Row]
	key   []row.Value
	text  []byte
}

func (c *chain) advance(ctx context.Context) error {
	found, err := c.find(ctx)
	if err != nil {
		return fmt.Errorf("lookup: %w", err)
	}
	if found == nil {
		switch c.missing {
		case missingSkip:
			return item.ErrFilter
		case missingNull, missingDefault:
		default:
			return exception.InvalidItem("lookup", exception.ClassValidate, fmt.Errorf("there is no row with %s", c.named()))
		}
	}
	values := make([]row.Value, c.schema.Len())
	copy(values, c.in.Item.Values())
	for i, t := range c.take {
		switch {
		case found != nil:
			values[c.width+i] = found[i]
		case t.otherwise != nil:
			if values[c.width+i], err = t.otherwise.Eval(c.frame); err != nil {
				return fmt.Errorf("lookup: default %s: %w", t.name, err)
			}
		}
	}
	c.out.Item, c.out.Meta = row.New(c.schema, values), c.in.Meta
	return nil
}

func (c *chain) find(ctx context.Context) ([]row.Value, error) {
	c.text = c.text[:0]
	for i, k := range c.processor.key {
		v, err := k.program.Eval(c.frame)
		if err != nil {
			return nil, fmt.Errorf("key %s: %w", k.name, err)
		}
		if v.IsNull() {
			c.key[i] = v
			return nil, nil
		}
		c.key[i], c.text = v, row.AppendKey(c.text, v)
	}
	found, err := c.rows.find(ctx, c.text, c.key)
	if errors.Is(err, errTwice) {
		return nil, exception.InvalidItem("", exception.ClassValidate, fmt.Errorf("there are two rows with %s", c.named()))
	}
	return found, err
}

func (c *chain) named() string { return named(c.processor.key, c.key) }

// newProcessor returns the processor for items of type b.In.
func newProcessor(ctx context.Context, cfg config, b registry.BuildContext) (item.Processor, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p, err := compile(&cfg, b.In)
	if err != nil {
		return nil, err
	}
	if b.Out != nil && b.Out.Schema().SameShape(p.schema) { // the next stage compares schemas by identity first
		p.schema = b.Out.Schema()
	}
	p.bound = int64(cfg.MaxMemory)
	if p.bound == 0 {
		p.bound = defaultMemory
	}
	if cfg.Table != "" {
		db, err := b.FindDatabase(cfg.Database)
		if err != nil {
			return nil, err
		}
		return &processor{p, newTable(db, cfg.Table, p)}, nil
	}
	reader, _, err := registry.MakeNested[item.Reader](ctx, cfg.From, b, nil)
	if err != nil {
		return nil, err
	}
	return &processor{p, &memory{reader: reader, plan: p}}, nil
}
