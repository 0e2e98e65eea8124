package query

import (
	"context"
	"errors"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func (e *postgres) notNull(ctx context.Context, conn tx.Conn, of plainTable) (catalogued, error) {
	name := quoted(of.table)
	if of.schema != "" {
		name = quoted(of.schema) + "." + name
	}
	return readCatalogue(ctx, conn, `select a.attname, a.attnotnull from pg_catalog.pg_attribute a
		where a.attrelid = pg_catalog.to_regclass($1) and a.attnum > 0 and not a.attisdropped`, name)
}

// A primary key of SQLite may hold nulls, except for an integer primary key (the rowid), and in a table
// without rowids.
func (e *sqlite) notNull(ctx context.Context, conn tx.Conn, of plainTable) (catalogued, error) {
	schema := any(nil)
	if of.schema != "" {
		schema = of.schema
	}
	known, err := readCatalogue(ctx, conn, `select name, "notnull" or pk > 0 and not exists (select 1 from pragma_index_list(?1, ?2) i
		where i.origin = 'pk' and not exists (select 1 from pragma_table_list(?1) t where t.wr and (?2 is null or t.schema = ?2)))
		from pragma_table_xinfo(?1, ?2) where hidden <> 1`, of.table, schema)
	if err != nil || len(known.has) == 0 {
		return known, err
	}
	var rowid bool
	err = conn.QueryRowContext(ctx, `select exists (select 1 from pragma_table_xinfo(?1, ?2) where pk > 0)
		and not exists (select 1 from pragma_index_list(?1, ?2) i where i.origin = 'pk')`, of.table, schema).Scan(&rowid)
	known.rowid = &rowid
	return known, err
}

func readCatalogue(ctx context.Context, conn tx.Conn, text string, args ...any) (known catalogued, err error) {
	known = catalogued{has: map[string]bool{}, notNull: map[string]bool{}}
	rows, err := conn.QueryContext(ctx, text, args...)
	if err != nil {
		return known, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var name string
		var notNull bool
		if err := rows.Scan(&name, &notNull); err != nil {
			return known, err
		}
		known.has[name], known.notNull[name] = true, notNull
	}
	return known, rows.Err()
}
