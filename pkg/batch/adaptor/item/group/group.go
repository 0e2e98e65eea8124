// Package group is the reader `group`: it makes one row of consecutive rows that belong together, by a key
// or by the form of the first.
//
// It imports core with its folders, internal/expression and internal/nearest.
package group

import (
	"context"
	"reflect"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

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
