package draft

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type tableColumn struct {
	name, typ string
	notNull   bool
	// key is its position in the key, from 0; -1 if it is not in it.
	key int
}

// InferTable reads the fields of a table or view from the catalog, and its key: the primary
// key, else a unique index over columns that are never null. It reads no row. If not found,
// the error names similar ones.
func InferTable(ctx context.Context, db tx.Database, table string) (*Shape, error) {
	columns, err := columnsOf(ctx, db, table)
	if err != nil {
		return nil, fmt.Errorf("describe the table %s: %w", table, err)
	}
	if len(columns) == 0 {
		return nil, absent(ctx, db, table)
	}
	s := &Shape{Path: "table:" + table, Format: formatTable, Table: table, Whole: true}
	given, key, ordered := names{}, make([]string, len(columns)), true
	for _, c := range columns {
		f := c.field(db.Dialect(), given)
		s.Fields = append(s.Fields, f)
		if c.key >= 0 {
			key[c.key] = f.Name
		}
		ordered = ordered && (c.key < 0 || f.Type != row.Bool.String())
	}
	for _, k := range key {
		if k != "" && ordered { // a bool has no order
			s.Key = append(s.Key, k)
		}
	}
	return s, nil
}

// HasRows reports whether the table exists and has a row.
func HasRows(ctx context.Context, db tx.Database, table string) (bool, error) {
	columns, err := columnsOf(ctx, db, table)
	if err != nil || len(columns) == 0 {
		return false, err
	}
	var one int
	err = db.Conn().QueryRowContext(ctx, "select 1 from "+db.Dialect().Quote(table)+" limit 1").Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// Along makes these columns the key that orders the reading of the table.
func (s *Shape) Along(columns []string) error {
	var key []string
	for _, c := range columns {
		found := ""
		var all []string
		for i := range s.Fields {
			if all = append(all, s.Fields[i].source()); s.Fields[i].source() == c {
				found = s.Fields[i].Name
			}
		}
		if found == "" {
			return fmt.Errorf("%s has no column %s%s", s.Path, c, nearest.Hint(c, all))
		}
		key = append(key, found)
	}
	if len(key) > 0 {
		s.Key = key
	}
	return nil
}

func (f *Field) source() string {
	if f.From != "" {
		return f.From
	}
	return f.Name
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (c *tableColumn) field(d tx.Dialect, given names) Field {
	kind := c.kind(d)
	f := Field{Name: c.name, Type: kind.String(), Nullable: !c.notNull}
	if !identifier.MatchString(c.name) || given[c.name] {
		f.Name, f.From = given.of(c.name), c.name
	}
	given[f.Name] = true
	if kind == row.Null {
		f.Type, f.Convert, f.Note = row.String.String(), true, "the column has no declared type: its values are read as texts"
	}
	if kind == row.DecimalKind || kind == row.ListOf(row.DecimalKind) {
		f.Scale = c.scale()
	}
	return f
}

func (c *tableColumn) kind(d tx.Dialect) row.Kind {
	if d != tx.Postgres {
		return sqlvalue.DeclaredKind(c.typ)
	}
	if elem, ok := strings.CutSuffix(c.typ, "[]"); ok {
		return listKind(tableColumn{typ: elem})
	}
	name, _, _ := strings.Cut(c.typ, "(")
	switch {
	case c.typ == "smallint", c.typ == "integer", c.typ == "bigint":
		return row.Int
	case c.typ == "real", c.typ == "double precision":
		return row.Float
	case c.typ == "boolean":
		return row.Bool
	case c.typ == "date":
		return row.DateKind
	case strings.HasPrefix(c.typ, "timestamp"):
		return row.Timestamp
	case name == "numeric":
		return row.DecimalKind
	case c.typ == "json", c.typ == "jsonb":
		return row.JSONKind
	case c.typ == "uuid":
		return row.UUIDKind
	case c.typ == "bytea":
		return row.BytesKind
	}
	return row.String
}

func listKind(elem tableColumn) row.Kind {
	name, _, _ := strings.Cut(elem.typ, "(")
	kind := elem.kind(tx.Postgres)
	isText := name == "text" || name == "character varying" || name == "character"
	if list := row.ListOf(kind); list.IsList() && (kind != row.String || isText) {
		return list
	}
	return row.String
}

var precision = regexp.MustCompile(`\(\s*\d+\s*,\s*(\d+)\s*\)`)

func (c *tableColumn) scale() *int {
	found := precision.FindStringSubmatch(c.typ)
	if found == nil {
		return nil
	}
	n, err := strconv.Atoi(found[1])
	if err != nil { // more digits than possible
		return nil
	}
	return &n
}

const columnsPostgres = `
select a.attname, format_type(base.type, base.typmod), a.attnotnull or base.filled, coalesce(k.place, -1)
from pg_catalog.pg_class c
join pg_catalog.pg_attribute a on a.attrelid = c.oid
join lateral (
  with recursive of(type, typmod, filled, depth) as (
    select a.atttypid, a.atttypmod, false, 0
    union all
    select case when t.typtype = 'd' then t.typbasetype else b.typarray end, case when t.typtype = 'd' then t.typtypmod else e.typtypmod end,
      of.filled or t.typnotnull, of.depth + 1
    from of
    join pg_catalog.pg_type t on t.oid = of.type
    left join pg_catalog.pg_type e on e.oid = t.typelem and t.typcategory = 'A' and e.typtype = 'd'
    left join pg_catalog.pg_type b on b.oid = e.typbasetype
    where t.typtype = 'd' or b.typarray > 0)
  select type, typmod, filled from of order by depth desc limit 1) base on true
left join lateral (
  select i.indexrelid from pg_catalog.pg_index i
  where i.indrelid = c.oid and i.indisunique and i.indisvalid and i.indimmediate and i.indpred is null and i.indexprs is null
    and not exists (select from pg_catalog.pg_attribute n
      where n.attrelid = c.oid and n.attnum = any(i.indkey) and not n.attnotnull)
  order by i.indisprimary desc, i.indnkeyatts, i.indexrelid limit 1) best on true
left join lateral (
  select u.place - 1 as place from pg_catalog.pg_index i, unnest(i.indkey) with ordinality u(number, place)
  where i.indexrelid = best.indexrelid and u.number = a.attnum and u.place <= i.indnkeyatts) k on true
where c.oid = to_regclass($1) and c.relkind in ('r', 'p', 'v', 'm', 'f') and a.attnum > 0 and not a.attisdropped
order by a.attnum`

const columnsSQLite = `select name, type, "notnull" or pk > 0, pk - 1 from pragma_table_xinfo(?1, ?2) where hidden <> 1 order by cid`

const uniqueSQLite = `
select l.name, i.name from pragma_index_list(?1, ?2) l, pragma_index_info(l.name, ?2) i
where l."unique" and not l.partial order by l.seq, i.seqno`

func columnsOf(ctx context.Context, db tx.Database, table string) ([]tableColumn, error) {
	if db.Dialect() == tx.Postgres {
		return scanned(ctx, db.Conn(), columnsPostgres, tx.Postgres.Quote(table))
	}
	name, schema := table, "main"
	if s, n, ok := strings.Cut(table, "."); ok {
		name, schema = n, s
	}
	columns, err := scanned(ctx, db.Conn(), columnsSQLite, name, schema)
	for i := range columns {
		if columns[i].key >= 0 {
			return columns, err
		}
	}
	if err != nil || len(columns) == 0 {
		return columns, err
	}
	return columns, uniqueKey(ctx, db.Conn(), columns, name, schema)
}

func scanned(ctx context.Context, conn tx.Conn, query string, args ...any) (columns []tableColumn, err error) {
	rows, err := conn.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var c tableColumn
		if err := rows.Scan(&c.name, &c.typ, &c.notNull, &c.key); err != nil {
			return nil, err
		}
		columns = append(columns, c)
	}
	return columns, rows.Err()
}

func uniqueKey(ctx context.Context, conn tx.Conn, columns []tableColumn, name, schema string) (err error) {
	rows, err := conn.QueryContext(ctx, uniqueSQLite, name, schema)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var order []string
	indexes := map[string][]int{}
	for rows.Next() {
		var index string
		var of sql.NullString // null for an expression
		if err := rows.Scan(&index, &of); err != nil {
			return err
		}
		if indexes[index] == nil {
			order = append(order, index)
		}
		at := -1
		for i, c := range columns {
			if of.Valid && c.name == of.String && c.notNull {
				at = i
			}
		}
		indexes[index] = append(indexes[index], at)
	}
	for _, index := range order {
		if slices.Min(indexes[index]) < 0 {
			continue
		}
		for place, at := range indexes[index] {
			columns[at].key = place
		}
		break
	}
	return rows.Err()
}

func absent(ctx context.Context, db tx.Database, table string) (err error) {
	query := `select name from sqlite_master where type in ('table', 'view') and name not like 'sqlite_%' order by name`
	if db.Dialect() == tx.Postgres {
		query = `select case when pg_catalog.pg_table_is_visible(c.oid) then c.relname else n.nspname || '.' || c.relname end
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'v', 'm', 'f') and n.nspname not in ('pg_catalog', 'information_schema') order by 1`
	}
	rows, err := db.Conn().QueryContext(ctx, query)
	if err != nil {
		return fmt.Errorf("list the tables: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var all []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return fmt.Errorf("list the tables: %w", err)
		}
		if !strings.HasPrefix(name, "surfin_") { // tables of the history
			all = append(all, name)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("list the tables: %w", err)
	}
	return fmt.Errorf("there is no table %s%s", table, nearest.Hint(table, all))
}
