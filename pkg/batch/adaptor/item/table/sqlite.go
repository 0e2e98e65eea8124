package table

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const (
	// sqliteRows is the number of rows per INSERT: more gain nothing.
	sqliteRows = 64
	// sqliteVariables is the limit of bind variables per statement.
	sqliteVariables = 32766
)

// sqlite writes with multi-row statements, prepared once per transaction.
type sqlite struct{ args []any }

// oneByOne has nothing to do: there is one writer.
func (e *sqlite) oneByOne(create string) string { return create }

func (e *sqlite) typeName(kind row.Kind) string {
	switch kind {
	case row.Int:
		return "integer"
	case row.Float:
		return "real"
	case row.Bool:
		return "boolean"
	case row.DateKind:
		return "date"
	case row.Timestamp:
		return "timestamp"
	case row.DecimalKind:
		return "decimal"
	case row.JSONKind: // text: in a column of type json SQLite makes numbers of texts
		return "json text"
	case row.UUIDKind:
		return "uuid"
	case row.BytesKind:
		return "blob"
	case row.String, row.Null:
	}
	return "text"
}

func (e *sqlite) describe(ctx context.Context, conn tx.Conn, table string) (r relation, err error) {
	schema, name := schemaOf(table)
	// hidden: 0 is a plain column, 2 and 3 are generated ones.
	rows, err := conn.QueryContext(ctx, "select name, type, hidden from pragma_table_xinfo(?1, ?2) where hidden <> 1 order by cid", name, schema)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var c column
		var hidden int
		if err := rows.Scan(&c.name, &c.typ, &hidden); err != nil {
			return r, err
		}
		if hidden != 0 {
			c.refused = "the database generates column " + c.name
		}
		c.kind = sqlvalue.DeclaredKind(c.typ)
		c.binary = c.kind == row.DecimalKind || c.kind == row.JSONKind && !strings.Contains(strings.ToUpper(c.typ), "TEXT")
		r.columns = append(r.columns, c)
	}
	return r, rows.Err()
}

func (e *sqlite) write(ctx context.Context, conn tx.Conn, p *plan, records [][]row.Value) error {
	defer func() { clear(e.args[:cap(e.args)]) }()
	if mode := p.config.mode(); mode == Update || mode == Delete {
		return e.each(ctx, conn, p, records)
	}
	size := sqliteRows
	if p.config.Batch > 0 {
		size = p.config.Batch
	}
	size = max(1, min(size, sqliteVariables/len(p.cols)))
	full := len(records) / size
	if full > 1 {
		stmt, err := conn.PrepareContext(ctx, p.rowsStatement(size))
		if err != nil {
			return err
		}
		err = e.batches(ctx, p, records[:full*size], size, stmt.ExecContext)
		if err = errors.Join(err, stmt.Close()); err != nil {
			return err
		}
		records = records[full*size:]
	}
	for part := range slices.Chunk(records, size) {
		text := p.rowsStatement(len(part))
		if err := e.batches(ctx, p, part, len(part), func(ctx context.Context, args ...any) (sql.Result, error) {
			return conn.ExecContext(ctx, text, args...)
		}); err != nil {
			return err
		}
	}
	return nil
}

// batches executes once per size records, which they are a multiple of.
func (e *sqlite) batches(ctx context.Context, p *plan, records [][]row.Value, size int, exec func(context.Context, ...any) (sql.Result, error)) error {
	for part := range slices.Chunk(records, size) {
		e.args = e.args[:0]
		for _, record := range part {
			if err := e.bind(p, record); err != nil {
				return err
			}
		}
		if _, err := exec(ctx, e.args...); err != nil {
			return err
		}
	}
	return nil
}

// bind appends the record's values. SQLite would store a value that does not fit the
// declared type as it is; the plan has made it fit, or refused it.
func (e *sqlite) bind(p *plan, record []row.Value) error {
	for i := range p.cols {
		v, err := p.value(record, i)
		if err != nil {
			return err
		}
		e.args = append(e.args, sqlvalue.SQLite(v))
	}
	return nil
}

// each executes a prepared statement per record, in order.
func (e *sqlite) each(ctx context.Context, conn tx.Conn, p *plan, records [][]row.Value) (err error) {
	stmt, err := conn.PrepareContext(ctx, p.oneStatement())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stmt.Close()) }()
	for _, record := range records {
		e.args = e.args[:0]
		if err := e.bind(p, record); err != nil {
			return err
		}
		result, err := stmt.ExecContext(ctx, e.args...)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		if err != nil {
			return err
		}
		if n == 0 && p.config.needsRows() {
			return p.missing(record)
		}
	}
	return nil
}

// oneStatement updates or deletes by the key of one record; column i is ?i+1.
func (p *plan) oneStatement() string {
	if text, ok := p.texts[0]; ok {
		return text
	}
	var set, where []string
	for i, c := range p.cols {
		equal := fmt.Sprintf("%s = ?%d", quoted(c.name), i+1)
		if p.isKey(i) {
			where = append(where, equal)
		} else {
			set = append(set, equal)
		}
	}
	text := "delete from " + p.into
	if p.config.mode() == Update {
		text = "update " + p.into + " set " + strings.Join(set, ", ")
	}
	text += " where " + strings.Join(where, " and ")
	p.texts[0] = text
	return text
}

// rowsStatement inserts or upserts n rows. Rows with one key are upserted in
// their order, so the last wins.
func (p *plan) rowsStatement(n int) string {
	if text, ok := p.texts[n]; ok {
		return text
	}
	var b strings.Builder
	fmt.Fprintf(&b, "insert into %s (%s) values ", p.into, quotedList(p.names()))
	one := "(" + strings.TrimSuffix(strings.Repeat("?,", len(p.cols)), ",") + ")"
	b.WriteString(strings.TrimSuffix(strings.Repeat(one+",", n), ","))
	if p.config.mode() == Upsert {
		fmt.Fprintf(&b, " on conflict (%s) do ", quotedList(p.config.Key))
		var set []string
		for i, c := range p.cols {
			if !p.isKey(i) {
				set = append(set, quoted(c.name)+" = excluded."+quoted(c.name))
			}
		}
		if len(set) == 0 {
			b.WriteString("nothing")
		} else {
			b.WriteString("update set " + strings.Join(set, ", "))
		}
	}
	p.texts[n] = b.String()
	return p.texts[n]
}
