// Package lookup is the processor `lookup`: it adds to each row the fields of another row, found by a key
// in the rows of a reader (in memory) or in a table.
//
// It imports core with its folders, tx, internal/expression, internal/nearest and internal/sqlvalue.
package lookup

import (
	"context"
	"reflect"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Components describes `lookup`.
func Components() []registry.Component {
	return []registry.Component{{
		Kind: registry.KindProcessor, Name: "lookup", Config: reflect.TypeFor[config](),
		Summary: "Adds fields of another row that is found by a key.",
		Doc: `With ` + "`from`" + ` all rows of a reader are read when the step starts, and kept in memory: for files and tables of
some hundred thousand rows. Two rows with one key fail the step. With ` + "`table`" + ` the step queries the
table once for each key, and keeps the rows; it does so in the chunk's transaction only if
` + "`process_in_transaction`" + ` says so; two rows with one key make the item invalid. The columns of the
key need an index. For most of the rows of a large table a join in SQL is faster.

The memory is limited by ` + "`max_memory`" + `. A restart reads the rows again: items that were
committed before keep their values. A null in the key matches no row.`,
		Example: `job: enrich
flow:
- step: enrich
  chunk:
    reader: {csv: {path: in.csv, item: {id: int, species: string}}}
    processor:
      lookup:
        from: {csv: {path: species.csv, item: {species: string, size: string, weight: float}}}
        key: {species: item.species}
        take: [size]
        missing: null
    writer: {csv: out/strikes.csv}`,
		Types: func(cfg any, in item.Type) (item.Type, error) {
			p, err := compile(cfg.(*config), in)
			if err != nil {
				return nil, err
			}
			return item.RowOf("", p.schema), nil
		},
		New: func(ctx context.Context, cfg any, b registry.BuildContext) (any, error) {
			return newProcessor(ctx, *cfg.(*config), b)
		},
	}}
}
