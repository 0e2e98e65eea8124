package query

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type mysql struct {
	page       mysqlPage
	zeroIsNull bool
}

// The driver would change zero dates, and the server floats of more than 6 digits.
func (e *mysql) output(c *resultColumn) string {
	name := "q." + c.source()
	switch c.typ {
	case "DATE", "DATETIME", "TIMESTAMP", "TIME":
		return "cast(" + name + " as char)"
	case "BIT":
		return "(" + name + " + 0)"
	case "FLOAT":
		return "(" + name + " * 1e0)"
	}
	return name
}

func (e *mysql) describe(ctx context.Context, conn tx.Conn, text string, args []any) (columns []resultColumn, err error) {
	rows, err := conn.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, err
	}
	for _, t := range types {
		c := resultColumn{name: t.Name(), typ: t.DatabaseTypeName(), zeroIsNull: e.zeroIsNull}
		c.kind = mysqlKind(c.typ)
		c.exact = isExact(c.kind)
		if _, scale, ok := t.DecimalSize(); ok && c.typ == "DECIMAL" {
			c.scale = scale
		}
		columns = append(columns, c)
	}
	return columns, rows.Err()
}

func mysqlKind(typ string) row.Kind {
	switch strings.TrimPrefix(typ, "UNSIGNED ") {
	case "BIGINT":
		if typ == "UNSIGNED BIGINT" {
			return row.DecimalKind
		}
		return row.Int
	case "TINYINT", "SMALLINT", "MEDIUMINT", "INT", "YEAR", "BIT":
		return row.Int
	case "FLOAT", "DOUBLE":
		return row.Float
	case "DECIMAL":
		return row.DecimalKind
	case "DATE":
		return row.DateKind
	case "DATETIME", "TIMESTAMP":
		return row.Timestamp
	case "JSON":
		return row.JSONKind
	case "BINARY", "VARBINARY", "BLOB", "TINYBLOB", "MEDIUMBLOB", "LONGBLOB":
		return row.BytesKind
	}
	return row.String
}

func (e *mysql) fits(c *resultColumn) error {
	if c.typ == "GEOMETRY" || c.typ == "VECTOR" {
		return fmt.Errorf("column %s is of type %s, which no field has: write ST_AsText(%s) or the like", c.name, strings.ToLower(c.typ), c.name)
	}
	return nil
}

// judge refuses columns that MySQL sorts in one way and compares in another.
func (e *mysql) judge(_ context.Context, _ tx.Conn, _ string, _ []any, keys []*resultColumn) error {
	for _, c := range keys {
		switch c.typ {
		case "ENUM", "SET", "FLOAT", "JSON":
			return fmt.Errorf("column %s of type %s cannot be a key: MySQL sorts and compares it differently; choose another one, or cast it in the SQL", c.name, strings.ToLower(c.typ))
		}
	}
	return nil
}

func (e *mysql) answer() resultColumn { return resultColumn{} }

func (e *mysql) bind(v row.Value) any { return sqlvalue.MySQL(v) }

func (e *mysql) notNull(ctx context.Context, conn tx.Conn, of plainTable) (catalogued, error) {
	return readCatalogue(ctx, conn, `select column_name, is_nullable = 'NO' from information_schema.columns
		where table_schema = coalesce(nullif(?1, ''), database()) and table_name = ?2`, of.schema, of.table)
}

func (e *mysql) fetch(ctx context.Context, conn tx.Conn, columns []resultColumn, text string, args []any) (p page, err error) {
	rows, err := conn.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	return &e.page, e.page.fill(rows, columns, -1)
}

type mysqlCursor struct {
	sqliteCursor
	page *mysqlPage
}

func (e *mysql) cursor(ctx context.Context, conn tx.Conn, columns []resultColumn, text string, args []any) (cursor, error) {
	ctx, cancel := context.WithCancel(ctx)
	rows, err := conn.QueryContext(ctx, text, args...) //nolint:sqlclosecheck,rowserrcheck // close and next do
	if err != nil {
		cancel()
		return nil, err
	}
	return &mysqlCursor{sqliteCursor{page: &e.page.sqlitePage, columns: columns, rows: rows, cancel: cancel}, &e.page}, nil
}

func (c *mysqlCursor) next(ctx context.Context, n int) (page, error) {
	_, err := c.sqliteCursor.next(ctx, n)
	return c.page, err
}

// The connection is given up: otherwise the driver would read the rows that are left.
func (c *mysqlCursor) close() error {
	c.cancel()
	_ = c.rows.Close() //nolint:errcheck // it was cancelled
	return nil
}

type mysqlPage struct{ sqlitePage }

var errZeroDate = errors.New("is a zero date of MySQL: exclude it, or set `zero_dates: null`")

func (p *mysqlPage) raw(at, column int) (row.Value, error) {
	c := &p.columns[column]
	switch x := p.cells[at*len(p.columns)+column].(type) {
	case []byte:
		if c.kind == row.BytesKind {
			return row.BytesValue(x), nil
		}
		return c.rawText(string(x))
	case string:
		return c.rawText(x)
	case uint64:
		return c.rawText(strconv.FormatUint(x, 10))
	default:
		return row.ValueOf(x)
	}
}

func (c *resultColumn) rawText(text string) (row.Value, error) {
	switch c.kind {
	case row.DecimalKind:
		d, err := row.ParseDecimal(text)
		return row.DecimalValue(d), err
	case row.DateKind, row.Timestamp:
		t, err := mysqlTime(text)
		if err == nil && c.kind == row.DateKind {
			return row.DateValue(row.DateOf(t)), nil
		}
		return row.TimestampValue(t), err
	default:
		return row.StringValue(text), nil
	}
}

func mysqlTime(text string) (time.Time, error) {
	if strings.HasPrefix(text, "0000-") || len(text) >= len(time.DateOnly) && (text[5:7] == "00" || text[8:10] == "00") {
		return time.Time{}, fmt.Errorf("%s %w", text, errZeroDate)
	}
	layout := "2006-01-02 15:04:05.999999"
	if len(text) == len(time.DateOnly) {
		layout = time.DateOnly
	}
	return time.Parse(layout, text)
}

func (p *mysqlPage) value(at, column int) (row.Value, error) {
	c := &p.columns[column]
	f, x := c.field, p.cells[at*len(p.columns)+column]
	switch cell := x.(type) {
	case []byte:
		if c.kind == row.BytesKind {
			break
		}
		x = string(cell)
	case uint64:
		x = strconv.FormatUint(cell, 10)
	case float64:
		if c.typ == "FLOAT" {
			x = row.Real(float32(cell))
		}
	}
	text, isText := x.(string)
	switch {
	case !isText:
	case c.kind == row.DateKind || c.kind == row.Timestamp:
		return c.time(text)
	case c.kind == row.DecimalKind && f.Kind != row.String:
		if i, err := row.ParseDecimal(text); err == nil {
			if n, _, whole := i.Int(); whole {
				return sqlvalue.Fit(f, n)
			}
		}
	}
	return sqlvalue.Fit(f, x)
}

// time is the value of a date or a time without a zone, which is UTC (rule D5).
func (c *resultColumn) time(text string) (row.Value, error) {
	f := c.field
	if c.stored != nil {
		f = c.stored
	}
	t, err := mysqlTime(text)
	switch {
	case errors.Is(err, errZeroDate) && c.zeroIsNull:
		return f.Missing()
	case err != nil:
		return row.Value{}, sqlvalue.Unheld(f, err)
	case f.Kind == row.Timestamp || f.Kind == row.DateKind:
		return sqlvalue.Fit(f, t)
	case c.kind == row.DateKind:
		return f.Parse(text)
	}
	return f.Parse(string(row.AppendMicros(nil, t.UnixMicro())))
}
