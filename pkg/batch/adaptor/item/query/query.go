// Package query is the reader `query`: it reads the rows of a SELECT, page by page along a key.
//
// It imports core, tx, the driver's types and helpers of internal; gormdb gives it its connections.
package query

import (
	"context"
	"fmt"
	"reflect"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Components describes the reader.
func Components() []registry.Component {
	return []registry.Component{{
		Kind: registry.KindReader, Name: "query", Config: reflect.TypeFor[config](), Types: itemTypes,
		Summary: "reads the rows of a SELECT, page by page along a key",
		Doc: `Every page is one statement, ` + "`select ... from (sql) where (key) > (last key) order by key limit fetch`" + `,
on a connection outside the chunk's transaction. A restart continues after the last
committed key, however far it is. Rows that other sessions add after that key while the
step runs are read, rows before it are not.

The key must be unique and never null: a duplicate or a null fails the step, because rows
would be lost. The database decides whether two keys are equal: under a collation without accents
or case, or of types such as interval, numeric and jsonb, keys that look different may be equal.

Rows that no columns identify are read with ` + "`snapshot: true`" + `, in place of a key: one cursor reads all rows as they are
when the step begins, ` + "`fetch`" + ` rows at a time, while chunks commit. A restart after a commit is refused (rule C15m). PostgreSQL keeps
old row versions meanwhile, and SQLite its WAL file.

A column of ` + "`select *`" + ` of one table that ` + "`item`" + ` does not have is not read. The step stores a warning about it:
the column may be new in the table.

Without ` + "`item`" + ` the database describes the columns: integers are int, floating point is
float, boolean, date and timestamp are themselves, and all else is its text, numeric
(which is exact) too. On SQLite a computed column has the type that its first 100 values
have; cast it, or name an ` + "`item`" + `, if they vary. A value that does not fit its field
is an invalid item.

` + "`since: updated_at`" + ` reads incrementally. The greatest value that exists when the step begins is
fixed for all attempts of the instance: rows up to it are read, and the next instance reads the
rows after it. It starts from the newest COMPLETED instance that was created before this one; rows of
a failed one are read again by the next, so write them with ` + "`mode: upsert`" + `. A row that is
committed late with an older value than those already read (a long transaction, a slow clock, an
import) is never read: set ` + "`overlap`" + ` to the longest such delay. In the first instance a row in which the
column is null is an error, and later it is never read. On SQLite, which
compares texts, the column must have all times in the same format. A partitioned step cannot use it, and jobs that run at the same time should set ` + "`exclusive: job`" + `.`,
		Example: `job: export
parameters: {date: {type: date}}
flow:
- step: export
  chunk:
    reader:
      query:
        sql: select id, name from customer where born < ${params.date}
        key: [id]
        item: {id: int, name: string}
    writer: {csv: out/customers.csv}
- step: youngest_first
  chunk:
    reader: {query: {sql: select * from customer where born is not null, key: [born desc, id]}}
    writer: {csv: out/youngest.csv}
- step: visits  # whose rows nothing tells apart
  chunk:
    reader: {query: {sql: "select name, day from visit", snapshot: true}}
    writer: {table: {name: visit_copy, mode: replace, create: true}}`,
		New: func(_ context.Context, cfg any, b registry.BuildContext) (any, error) {
			c := cfg.(*config)
			db, err := b.FindDatabase(c.Database)
			if err != nil {
				return nil, err
			}
			c.zone = b.Zone
			r, err := newReader(db, *c, b.Out.Schema())
			if err != nil {
				return nil, err
			}
			r.previous, r.context = b.Previous, b.StepContext
			return b.Out.FromRecords(r)
		},
	}}
}

func itemTypes(cfg any, _ item.Type) (item.Type, error) {
	c := cfg.(*config)
	if c.Item == nil {
		open, err := row.Open()
		return item.RowOf("", open), err
	}
	schema := c.Item.Schema()
	if schema == nil {
		return nil, &registry.ConfigError{Key: "item", Err: fmt.Errorf("query reads rows, or structs of plain fields, which %s is not", c.Item.Name())}
	}
	return c.Item, c.check(schema)
}
