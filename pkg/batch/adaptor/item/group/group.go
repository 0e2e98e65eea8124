// Package group is the reader `group`: it makes one row of consecutive rows that belong together, by a key
// or by the form of the first.
//
// It imports core with its folders, internal/expression and internal/nearest.
package group

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// config is the configuration of `group`.
type config struct {
	Reader    registry.Nested      `key:"reader" kind:"reader" required:"true" doc:"The reader of the rows."`
	Processor []registry.Nested    `key:"processor" kind:"processor" doc:"Processors for the rows before they are grouped, as a list, in order."`
	Key       []string             `key:"key" doc:"The fields that are equal in all rows of a group; they come first in the group's row."`
	Starts    registry.Expression  `key:"starts" doc:"A bool expression that is true for the first row of a group, instead of a key."`
	Sorted    bool                 `key:"sorted" default:"false" doc:"Whether a key that is less than the previous one fails the step, so that no key has two groups; texts are compared by their bytes."`
	MaxGroup  registry.Size        `key:"max_group" default:"1MB" doc:"How much text join and list may collect in a group; a larger one is an invalid item."`
	Fields    registry.Expressions `key:"fields" rest:"true" doc:"The other fields of the group's row: count(), sum(x), min(x), max(x), first(x), last(x), join(x, ', ') or list(x), where x is an expression over item and meta of each row."`
}

const defaultMaxGroup = 1 << 20

// Validate checks the options that need no item type.
func (c *config) Validate() error {
	var errs []error
	bad := func(key, format string, args ...any) {
		errs = append(errs, &registry.ConfigError{Key: key, Err: fmt.Errorf(format, args...)})
	}
	switch {
	case len(c.Key) == 0 && c.Starts.Text == "":
		bad("key", "which rows belong together is not set: write key: [FIELD], or starts: EXPRESSION")
	case len(c.Key) > 0 && c.Starts.Text != "":
		bad("starts", "key is set, too: remove one of the two")
	case c.Sorted && len(c.Key) == 0:
		bad("sorted", "it applies to a key, but key is not set: omit it")
	}
	for i, name := range c.Key {
		if slices.Contains(c.Key[:i], name) {
			bad("key", "field %s is listed twice", name)
		}
	}
	if c.Starts.Text != "" && len(c.Fields) == 0 {
		bad("starts", "a group's row needs a field, such as lines: list(item.line)")
	}
	if c.MaxGroup < 0 {
		bad("max_group", "it is negative")
	}
	return errors.Join(errs...)
}

// Components describes `group`.
func Components() []registry.Component {
	return []registry.Component{{
		Kind: registry.KindReader, Name: "group", Config: reflect.TypeFor[config](),
		Summary: "Combines consecutive rows that belong together into one: totals by key, records of several lines.",
		Doc: `A group ends when the key changes, when a row starts the next group (` + "`starts`" + `), and at the
end of the data. Rows are grouped in the order of input: if they are not sorted by the key, it has
several groups (` + "`sorted: true`" + ` rejects that). It is a reader, not a processor, because the row of a group is known
only when the next one has begun: the items of the step, its counters and its skips are groups.
` + "`meta.line`" + ` of a group comes from its first row.

` + "`count()`" + ` counts rows, ` + "`count(x)`" + ` values; ` + "`sum`" + `, ` + "`min`" + `, ` + "`max`" + ` and ` + "`join`" + ` ignore nulls (a sum without values is 0);
` + "`first`" + ` and ` + "`last`" + ` do not. ` + "`list`" + ` is a JSON array, as text. For values of only some rows write
` + "`sum(item.kind == 'A' ? item.amount : 0)`" + `.

A row that cannot be read, or that a processor rejects, is an invalid item of its own (a skipped read),
and its group continues without it. An int that overflows makes its group invalid. A restart reads the
rows of the current group again.`,
		Example: `job: shops
flow:
- step: shops
  chunk:
    reader:
      group:
        reader: {csv: {path: sales.csv, item: {shop: string, day: date, amount: float}}}
        processor:
        - filter: item.amount > 0
        key: [shop]
        sales: count()
        total: sum(item.amount)
        last_day: max(item.day)
    writer: {csv: out/shops.csv}`,
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
	rows   item.Type
	key    []*expression.ItemProgram
	starts *expression.ItemProgram // nil: there is a key
	sorted bool
	most   int
	fields []aggregate
	schema *row.Schema
}

func compile(cfg *config) (*plan, error) {
	rows, err := cfg.Reader.Types(nil)
	if err != nil {
		return nil, err
	}
	for _, p := range cfg.Processor {
		if rows, err = p.Types(rows); err != nil {
			return nil, err
		}
	}
	p := &plan{rows: rows, sorted: cfg.Sorted, most: int(cfg.MaxGroup)}
	if p.most == 0 {
		p.most = defaultMaxGroup
	}
	var fields []row.Field
	var errs []error
	for _, name := range cfg.Key {
		program, err := expression.CompileItem(registry.Expression{Text: fmt.Sprintf("item[%q]", name)}, rows)
		if err != nil {
			hint := ""
			if s := rows.Schema(); s != nil {
				hint = nearest.Hint(name, s.Names())
			}
			errs = append(errs, &registry.ConfigError{Key: "key", Err: fmt.Errorf("the rows have no field %s%s", name, hint)})
			continue
		}
		p.key = append(p.key, program)
		fields = append(fields, row.Field{Name: name, Kind: program.Kind(), Nullable: program.Nullable()})
	}
	if cfg.Starts.Text != "" {
		if p.starts, err = expression.CompileItem(cfg.Starts, rows); err == nil {
			err = p.starts.Require(row.Bool)
		}
		if err != nil {
			errs = append(errs, &registry.ConfigError{Key: "starts", Err: err})
		}
	}
	for _, e := range cfg.Fields {
		a, err := newAggregate(e, rows)
		if err != nil {
			errs = append(errs, &registry.ConfigError{Key: "fields." + e.Name, Err: err})
			continue
		}
		p.fields, fields = append(p.fields, a), append(fields, a.field)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	p.schema, err = row.NewSchema(fields...)
	if err != nil {
		return nil, &registry.ConfigError{Key: "fields", Err: err}
	}
	return p, nil
}
