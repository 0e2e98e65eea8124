package keyrange

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// storage describes how the keys are stored. The zero value holds for all of them: it is slow, but correct.
type storage struct {
	// indexed: an index begins with the key, so a database steps through it. PostgreSQL has false: without statistics of a
	// new table it would read the whole table for each step.
	indexed bool
	// blocks of a table that can be sampled; 0 means that it cannot.
	blocks int64
}

// Foreign tables cannot be sampled, so the blocks count only if every child is a table.
const describePostgres = `select false, case when c.relkind in ('r', 'm') and not c.relhassubclass then pg_relation_size(c.oid)
  when c.relkind = 'p' then (select case when bool_and(t.relkind in ('r', 'p')) then sum(pg_relation_size(t.oid))::bigint end
    from pg_partition_tree(c.oid) p join pg_class t on t.oid = p.relid) end / current_setting('block_size')::bigint
from pg_class c where c.oid = to_regclass($1)`

const describeMySQL = `select count(*) > 0, null from information_schema.statistics
where table_schema = coalesce(?, database()) and table_name = ? and column_name = ? and seq_in_index = 1 and index_type = 'BTREE'`

// An INTEGER PRIMARY KEY of SQLite is the table itself.
const describeSQLite = `select exists (select 1 from pragma_index_list(?2, ?1) l join pragma_index_info(l.name, ?1) i
  where l.partial = 0 and i.seqno = 0 and i.name = ?3 collate nocase)
or exists (select 1 from pragma_table_info(?2, ?1) group by 1 = 1
  having sum(pk > 0) = 1 and sum(pk > 0 and name = ?3 collate nocase and type = 'INTEGER' collate nocase) = 1), null`

// describe reads the catalog.
func (k *keys) describe(ctx context.Context) (of storage, err error) {
	if k.where != "" {
		return of, nil
	}
	var schema any
	table := k.name
	if s, t, has := strings.Cut(k.name, "."); has {
		schema, table = s, t
	}
	var text string
	var args []any
	switch k.dialect {
	case tx.Postgres:
		text, args = describePostgres, []any{k.table}
	case tx.MySQL:
		text, args = describeMySQL, []any{schema, table, k.column}
	case tx.SQLite:
		text, args = describeSQLite, []any{schema, table, k.column}
	}
	var blocks sql.NullInt64
	err = k.conn.QueryRowContext(ctx, text, args...).Scan(&of.indexed, &blocks)
	if errors.Is(err, sql.ErrNoRows) {
		return of, nil
	}
	of.blocks = blocks.Int64
	return of, err
}
