// Package table is the writer `table`: it inserts, upserts, updates or deletes rows of a table, or refills
// it, in the chunk's transaction.
//
// It imports core, tx, the driver's types and helpers of internal; gormdb gives it its connections.
package table

import (
	"context"
	"fmt"
	"reflect"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Components describes the writer.
func Components() []registry.Component {
	return []registry.Component{{
		Kind: registry.KindWriter, Name: "table", Config: reflect.TypeFor[config](), Types: itemTypes,
		Summary: "inserts, upserts, updates or deletes rows of a table, or refills it",
		Doc: `Rows are written in the chunk's transaction, together with its position: after a crash
every row is there exactly once. The kind of the table decides how rows are written, and
never the size of the chunk. PostgreSQL gets COPY for inserts into tables and partitioned
tables, in binary form if all columns have one, and one statement over arrays for every other mode, and for views, foreign tables
and tables with rules or row-level security; SQLite gets multi-row statements. A view or a
column that accepts no values (generated, ` + "`generated always as identity`" + `, computed by a
view) is an error at the start of the step.

Fields find their columns by name. A field without a column is an error, unless
` + "`schema`" + ` says ignore or add; a column without a field gets its default. If a key is in a chunk more than once, the last item
wins. An absent table is an error that prints the CREATE TABLE, unless ` + "`create: true`" + `, which
creates it in the transaction of the first rows, or at the end of a step without rows.

` + "`mode: truncate`" + ` empties the table in the transaction of its first rows, once in all attempts
of the step, and then inserts: readers see a part of the rows meanwhile. It is TRUNCATE on
PostgreSQL, and DELETE if a foreign key refers to the table. ` + "`mode: replace`" + ` inserts into a
second table (surfin_..., with the same unique indexes, checks and foreign keys), and exchanges
all rows in one transaction when every item has its verdict: readers see the old rows or all
new ones. The table itself stays, and so do its indexes, constraints, grants, views, sequences and
triggers; rows that others wrote meanwhile are removed. Every row is written twice. A step without
items empties the table in both modes, and a restart resumes where it was. Both are refused for a view,
in a partitioned step, and with another writer to the table; replace is refused if a foreign key of another
table refers to it. A redrive of skipped items adds to the table. A step that is never restarted leaves its
surfin_... table in the database.

An upsert by a partial unique index names its predicate: ` + "`where: deleted_at is null`" + `. With ` + "`delete_missing`" + `, rows whose
key no item has are deleted (hard), or marked in a column (soft), in the last transaction of the step; until then the
keys of the items are in a table surfin_..._keys, so that a restart knows the keys of earlier attempts. Nothing is deleted after a
skip, or if the input has no rows, unless ` + "`delete_all: true`" + ` says so; a warning says why. It is refused in a partitioned step.

Rows that a trigger, a rule or a conflict clause of the table leaves out of an insert or upsert are not counted as
written, and the step fails at its end; ` + "`left_out: ignore`" + ` is for triggers that put rows elsewhere.

A text is parsed by the type of its column, in the same way on both databases, whatever the server's settings: a date is
yyyy-MM-dd, a time without an offset is UTC. A value that the column would change is an invalid item: 12.345 for
numeric(10,2), a fraction of a second for timestamp(0), a time of day for a date, ` + "`now`" + `, blanks beyond varchar(n), and
01569 for a column of SQLite that converts texts to numbers (its type is STRING, for example). The key of an upsert is the
value that its column stores.

SQLite stores dates as yyyy-MM-dd, timestamps as yyyy-MM-ddTHH:mm:ss.SSSSSSZ, bools
as 0 and 1. A column of text accepts every value as its text, 1000000 for the float 1e6. A value of
a different kind from its column is accepted if nothing is lost (a whole float in an int
column, 0 and 1 in a bool column and back, midnight in a date column) and is an invalid item otherwise.
Infinite floats, years outside 1 to 9999, and text with a NUL are invalid items.`,
		Example: example,
		New:     build,
	}}
}

const example = `job: load
flow:
- step: load
  chunk:
    reader: {csv: {path: in.csv, item: {id: int, name: string}}}
    writer: {table: {name: customer, mode: upsert, key: [id], create: true}}
- step: members  # of a file that has all of them, each time
  chunk:
    reader: {csv: {path: members.csv, item: {id: int, name: string, email: string}}}
    writer:
      table:
        name: member
        mode: upsert
        key: [id]
        where: left_at is null  # create unique index ... on member (id) where left_at is null
        schema: add             # a column email, where there is none
        delete_missing: soft    # who is not in the file any more
        deleted: left_at
- step: prices
  chunk:
    reader: {csv: {path: prices.csv, item: {id: int, price: decimal, remark: string}}}
    writer: {table: {name: price, mode: upsert, key: [id], schema: ignore, left_out: ignore, delete_missing: hard, delete_all: true}}`

func build(ctx context.Context, cfg any, b registry.BuildContext) (any, error) {
	c := cfg.(*config)
	c.zone = b.Zone
	db, err := b.FindDatabase(c.Database)
	if err != nil {
		return nil, err
	}
	if c.refills() {
		return refillOf(ctx, db, *c, b)
	}
	if c.DeleteMissing != "" && b.RedriveOf == 0 {
		return missingSync(db, *c, b)
	}
	w, err := newWriter(db, *c, b.In.Schema())
	if err != nil {
		return nil, err
	}
	w.context = b.StepContext
	if c.Create {
		return b.In.ToRecords(creator{w})
	}
	return b.In.ToRecords(w)
}

func itemTypes(cfg any, in item.Type) (item.Type, error) {
	c := cfg.(*config)
	schema := in.Schema()
	if schema == nil {
		return nil, fmt.Errorf("table writes rows, or structs of plain fields, but receives %s", in.Name())
	}
	if err := c.check(schema); err != nil {
		return nil, err
	}
	return in, nil
}
