package lookup

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// shared by all goroutines of a step
type processor struct {
	in      item.Type
	other   *row.Schema
	key     []keyPart
	take    []taken
	missing string
	fields  []row.Field
	schema  *row.Schema // the fields of the input, and the taken ones
	width   int
	bound   int64
	rows    rows
}

type keyPart struct {
	name    string
	at      int
	program *expression.ItemProgram
}

type taken struct {
	name string
	at   int
	// if there is no row; nil means null
	otherwise *expression.ItemProgram
}

type rows interface {
	// find returns the taken values of the row, or nil. of is the encoded key. The values belong to rows.
	find(ctx context.Context, of []byte, key []row.Value) ([]row.Value, error)
}

var errTwice = errors.New("there are two rows with the key")

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

func named(parts []keyPart, values []row.Value) string {
	texts := make([]string, len(parts))
	for i, k := range parts {
		texts[i] = k.name + " = " + sqlvalue.Quote(values[i])
	}
	return strings.Join(texts, ", ")
}
