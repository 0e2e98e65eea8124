// Package merge is the reader `merge`: it joins the rows of two readers sorted by the same key. The right
// rows of one key are in memory.
//
// It imports core with its folders, internal/nearest and internal/sqlvalue.
package merge

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// config configures the reader.
type config struct {
	Left      registry.Nested `key:"left" kind:"reader" required:"true" doc:"The reader of the left rows, sorted by the key."`
	Right     registry.Nested `key:"right" kind:"reader" required:"true" doc:"The reader of the right rows, sorted by the key."`
	Key       []string        `key:"key" required:"true" doc:"The fields that are equal in rows that belong together; they have the same names and types on both sides and are never null."`
	Kind      string          `key:"kind" default:"inner" enum:"inner,left,full" doc:"Which rows to return: inner, keys that are on both sides; left, all rows of the left side; full, all rows of both sides. Without a matching row the other side's fields are null."`
	MaxMemory registry.Size   `key:"max_memory" default:"16MB" doc:"How much memory the right rows of one key may take; more fails the step."`
}

const (
	kindLeft         = "left"
	kindFull         = "full"
	rightPrefix      = "right_"
	defaultMaxMemory = 16 << 20
)

// Validate checks the options that need no item type.
func (c *config) Validate() error {
	var errs []error
	for i, name := range c.Key {
		if slices.Contains(c.Key[:i], name) {
			errs = append(errs, &registry.ConfigError{Key: "key", Err: fmt.Errorf("field %s is listed twice", name)})
		}
	}
	if len(c.Key) == 0 {
		errs = append(errs, &registry.ConfigError{Key: "key", Err: errors.New("no field is named")})
	}
	if c.MaxMemory < 0 {
		errs = append(errs, &registry.ConfigError{Key: "max_memory", Err: errors.New("it is negative")})
	}
	return errors.Join(errs...)
}

// Components describes the reader.
func Components() []registry.Component {
	return []registry.Component{{
		Kind: registry.KindReader, Name: "merge", Config: reflect.TypeFor[config](),
		Summary: "Joins the rows of two readers that are sorted by the same key.",
		Doc: `A row has the fields of its left row, and the fields of its right row except the key; a name that both have gets the
prefix right_ on the right. If a key has several rows on both sides, each left row is combined with each right row. ` + "`meta`" + ` is
taken from the left row, or from the right row if there is no left one.

Both sides must be sorted by the key, texts by their bytes (in PostgreSQL ` + "`order by name collate \"C\"`" + `); a key that
is less than the previous one fails the step. Rows that cannot be read are invalid items. A restart reads the rows of
the current key again. To look up values for each row in a table, use ` + "`lookup`" + `, which needs no order.`,
		Example: `job: join
flow:
- step: join
  chunk:
    reader:
      merge:
        key: [customer]
        kind: left
        left: {csv: {path: orders.csv, item: {id: int, customer: int, amount: decimal}}}
        right: {csv: {path: customers.csv, item: {customer: int, name: string}}}
    writer: {csv: out/orders.csv}`,
		Types: func(cfg any, _ item.Type) (item.Type, error) {
			p, err := compile(cfg.(*config))
			if err != nil {
				return nil, err
			}
			return item.RowOf("", p.schema), nil
		},
		New: func(ctx context.Context, cfg any, b registry.BuildContext) (any, error) {
			return newReader(ctx, *cfg.(*config), b)
		},
	}}
}

type plan struct {
	schema *row.Schema
	keys   [2][]int // on the left, on the right
	rest   []int
	left   int
}

func compile(cfg *config) (*plan, error) {
	p := &plan{}
	var schemas [2]*row.Schema
	for i, side := range []registry.Nested{cfg.Left, cfg.Right} {
		name := []string{"left", "right"}[i]
		rows, err := side.Types(nil)
		if err != nil {
			return nil, err
		}
		if rows.GoType() != reflect.TypeFor[item.Row]() || rows.Schema() == nil || rows.Schema().IsOpen() {
			return nil, &registry.ConfigError{Key: name, Err: errors.New("the fields of its rows are not known"), Hint: "name them: item: {id: int, name: string}"}
		}
		schemas[i] = rows.Schema()
	}
	for _, name := range cfg.Key {
		for i, schema := range schemas {
			at := schema.Index(name)
			switch {
			case at < 0:
				return nil, &registry.ConfigError{
					Key: "key", Err: fmt.Errorf("the %s rows have no field %s%s", []string{"left", "right"}[i], name, nearest.Hint(name, schema.Names())),
					Hint: "use the same name on both sides; `from` gives a field another name than it has in its source",
				}
			case schema.Field(at).Nullable:
				return nil, &registry.ConfigError{
					Key: "key", Err: fmt.Errorf("field %s of the %s rows may be null, but a key must not", name, []string{"left", "right"}[i]),
					Hint: "declare its type without null: a row without a value is then an invalid item",
				}
			}
			p.keys[i] = append(p.keys[i], at)
		}
		if left, right := schemas[0].Field(schemas[0].Index(name)), schemas[1].Field(schemas[1].Index(name)); left.Kind != right.Kind || left.Kind == row.Float {
			return nil, &registry.ConfigError{
				Key: "key", Err: fmt.Errorf("field %s is of type %s on the left, but %s on the right: both must have the same type, and not float", name, left.Kind, right.Kind),
				Hint: "give the field the same type in `item` of both sides: the type determines the order",
			}
		}
	}
	return p, p.fields(cfg, schemas)
}

func (p *plan) fields(cfg *config, schemas [2]*row.Schema) (err error) {
	var fields []row.Field
	for i := range schemas[0].Len() {
		f := *schemas[0].Field(i)
		f = row.Field{Name: f.Name, Kind: f.Kind, Nullable: f.Nullable || cfg.Kind == kindFull && !slices.Contains(p.keys[0], i)}
		fields = append(fields, f)
	}
	p.left = len(fields)
	for i := range schemas[1].Len() {
		if slices.Contains(p.keys[1], i) {
			continue
		}
		f := schemas[1].Field(i)
		name := f.Name
		if schemas[0].Index(name) >= 0 {
			name = rightPrefix + name
		}
		p.rest = append(p.rest, i)
		fields = append(fields, row.Field{Name: name, Kind: f.Kind, Nullable: f.Nullable || cfg.Kind == kindLeft || cfg.Kind == kindFull})
	}
	if p.schema, err = row.NewSchema(fields...); err != nil {
		return &registry.ConfigError{Key: "right", Err: err}
	}
	return nil
}
