package table

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const (
	// sqliteValues is the approximate number of values in a statement: fewer cost more statements, and for
	// each value the driver searches the previous ones.
	sqliteValues = 100
	// sqliteVariables is the limit of bind variables per statement.
	sqliteVariables = 32766
)

type sqlite struct{ zone *time.Location }

func (e *sqlite) oneByOne(create string) string { return create }

func (e *sqlite) typeName(kind row.Kind) string {
	if kind.IsList() {
		return kind.String()
	}
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
	case row.JSONKind: // in a column of type json SQLite turns texts into numbers
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
	// 0 is a plain column, 2 and 3 are generated ones.
	rows, err := conn.QueryContext(ctx, `select name, type, hidden,
coalesce((select t.type = 'view' from pragma_table_list t where t.schema = ?2 collate nocase and t.name = ?1 collate nocase), false),
coalesce((select t.strict from pragma_table_list t where t.schema = ?2 collate nocase and t.name = ?1 collate nocase), false)
from pragma_table_xinfo(?1, ?2) where hidden <> 1 order by cid`, name, schema)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var c column
		var hidden int
		var strict bool
		if err := rows.Scan(&c.name, &c.typ, &hidden, &r.uncounted, &strict); err != nil {
			return r, err
		}
		if hidden != 0 {
			c.refused = "the database generates column " + c.name
		}
		if c.kind = sqlvalue.DeclaredKind(c.typ); c.kind == row.Timestamp || c.kind == row.ListOf(row.Timestamp) {
			c.zone = e.zone
		}
		if keepsAny := strict && strings.EqualFold(c.typ, "any"); !keepsAny && sqlvalue.HasNumericAffinity(c.typ) && (c.kind == row.Null || c.kind == row.BytesKind) {
			c.limit, c.binary = numericAffinity(), c.kind == row.Null
		}
		c.binary = c.binary || c.kind == row.DecimalKind || c.kind == row.JSONKind && !strings.Contains(strings.ToUpper(c.typ), "TEXT")
		r.columns = append(r.columns, c)
	}
	return r, rows.Err()
}

func (e *sqlite) newBatch() batch { return &sqliteBatch{} }

// They go to the driver's own connection, since database/sql would check them one by one.
type sqliteBatch struct {
	args    []driver.NamedValue
	records [][]row.Value
}

// SQLite would store a value unchanged that does not fit the declared type.
func (b *sqliteBatch) encode(p *plan, records [][]row.Value) error {
	b.records, b.args = records, slices.Grow(b.args[:0], len(records)*len(p.cols))
	size := p.perStatement() * len(p.cols)
	for n, record := range records {
		for i := range p.cols {
			v, err := p.value(record, i)
			if err != nil {
				return &item.RecordError{Index: n, Err: err}
			}
			b.args = append(b.args, driver.NamedValue{Ordinal: len(b.args)%size + 1, Value: sqlvalue.SQLite(v)})
		}
	}
	return nil
}

func (b *sqliteBatch) forget() {
	b.records = nil
	clear(b.args[:cap(b.args)])
	b.args = b.args[:0]
}

func (p *plan) perStatement() int {
	if mode := p.config.mode(); mode == modeUpdate || mode == modeDelete {
		return 1
	}
	return max(1, min(cmp.Or(p.config.Batch, sqliteValues/len(p.cols)), sqliteVariables/len(p.cols)))
}

func (b *sqliteBatch) send(ctx context.Context, conn tx.Conn, p *plan) error {
	rows := min(p.perStatement(), len(b.records))
	return conn.Raw(tx.Running(ctx, p.sqliteStatement(rows)), func(driverConn any) error {
		c, ok := driverConn.(driver.ExecerContext)
		if !ok {
			return fmt.Errorf("a statement needs a connection of SQLite's driver, not a %T", driverConn)
		}
		args, took := b.args, int64(0)
		for part := range slices.Chunk(b.records, rows) {
			n := len(part) * len(p.cols)
			result, err := c.ExecContext(ctx, p.sqliteStatement(len(part)), args[:n])
			if err != nil {
				return err
			}
			args = args[n:]
			changed, err := result.RowsAffected()
			if err != nil {
				return err
			}
			if changed == 0 && p.config.needsRows() {
				return p.missing(part[0])
			}
			took += changed
		}
		if mode := p.config.mode(); mode == modeInsert || mode == modeUpsert && p.changesRows() {
			return p.tookAll(took, len(b.records))
		}
		return nil
	})
}

func (p *plan) sqliteStatement(n int) string {
	if mode := p.config.mode(); mode == modeUpdate || mode == modeDelete {
		return p.oneStatement()
	}
	return p.rowsStatement(n)
}

// column i is ?i+1
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
	if p.config.mode() == modeUpdate {
		text = "update " + p.into + " set " + strings.Join(set, ", ")
	}
	text += " where " + strings.Join(where, " and ")
	p.texts[0] = text
	return text
}

// Rows with one key are upserted in their order, so the last wins.
func (p *plan) rowsStatement(n int) string {
	if text, ok := p.texts[n]; ok {
		return text
	}
	var b strings.Builder
	fmt.Fprintf(&b, "insert into %s (%s) values ", p.into, quotedList(p.names()))
	one := "(" + strings.TrimSuffix(strings.Repeat("?,", len(p.cols)), ",") + ")"
	b.WriteString(strings.TrimSuffix(strings.Repeat(one+",", n), ","))
	if p.config.mode() == modeUpsert {
		fmt.Fprintf(&b, " on conflict %s do %s", p.conflict(), p.action())
	}
	p.texts[n] = b.String()
	return p.texts[n]
}

func schemaOf(table string) (schema, name string) {
	if s, n, ok := strings.Cut(table, "."); ok {
		return s, n
	}
	return "main", table
}

func cutName(text string) (rest string, ok bool) {
	text = strings.TrimSpace(text)
	if text == "" {
		return "", false
	}
	closing := map[byte]byte{'"': '"', '`': '`', '\'': '\'', '[': ']'}[text[0]]
	if closing == 0 {
		i := strings.IndexAny(text, " \t\r\n\f(/-")
		if i <= 0 {
			return "", false
		}
		return text[i:], true
	}
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] != closing:
		case closing != ']' && i+1 < len(text) && text[i+1] == closing:
			i++
		default:
			return text[i+1:], true
		}
	}
	return "", false
}
