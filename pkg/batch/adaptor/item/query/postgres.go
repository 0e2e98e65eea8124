package query

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/pgxconn"
	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type postgres struct{ page postgresPage }

func (e *postgres) output(c *resultColumn) string { return "q." + c.source() }

func (e *postgres) bind(v row.Value) any { return sqlvalue.Postgres(v) }

func binaryFormats() pgx.QueryResultFormatsByOID {
	return pgx.QueryResultFormatsByOID{
		pgtype.Int2OID: 1, pgtype.Int4OID: 1, pgtype.Int8OID: 1, pgtype.Float4OID: 1, pgtype.Float8OID: 1,
		pgtype.BoolOID: 1, pgtype.DateOID: 1, pgtype.TimestampOID: 1, pgtype.TimestamptzOID: 1, pgtype.ByteaOID: 1,
	}
}

func kindOf(oid uint32) row.Kind {
	switch oid {
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID:
		return row.Int
	case pgtype.Float4OID, pgtype.Float8OID:
		return row.Float
	case pgtype.BoolOID:
		return row.Bool
	case pgtype.DateOID:
		return row.DateKind
	case pgtype.TimestampOID, pgtype.TimestamptzOID:
		return row.Timestamp
	case pgtype.NumericOID:
		return row.DecimalKind
	case pgtype.JSONOID, pgtype.JSONBOID:
		return row.JSONKind
	case pgtype.UUIDOID:
		return row.UUIDKind
	case pgtype.ByteaOID:
		return row.BytesKind
	}
	if list := sqlvalue.ListKind(oid); list != row.Null {
		return list
	}
	return row.String
}

// A text may hold anything, every other type must convert exactly.
func (e *postgres) fits(c *resultColumn) error {
	want := c.field.Kind
	switch {
	case c.kind.IsList() && c.field.Coerce == row.CoerceError && !want.IsList() && want != row.JSONKind && want != row.String:
		return fmt.Errorf("column %s is of type %s, which does not fit field %s: %s (it is %s, or json)", c.name, c.typ, c.field.Name, c.field.Type(), c.kind)
	case c.kind == want, c.isText(), c.kind == row.Int && (want == row.Float || want == row.DecimalKind), c.kind == row.Float && want == row.DecimalKind:
		return nil
	case c.kind != row.Null && (c.field.Coerce != row.CoerceError || c.kind == row.Int && c.field.Counts()):
		return nil
	}
	return fmt.Errorf("column %s is of type %s, which does not fit field %s: %s", c.name, c.typ, c.field.Name, c.field.Type())
}

func (e *postgres) describe(ctx context.Context, conn tx.Conn, text string, args []any) ([]resultColumn, error) {
	var columns []resultColumn
	err := pgxconn.Run(ctx, conn, text, func(c *pgx.Conn) error {
		// A statement cached before a migration would be wrong.
		rows, err := c.Query(ctx, text, append([]any{pgx.QueryExecModeDescribeExec}, args...)...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for _, f := range rows.FieldDescriptions() {
			column := resultColumn{name: f.Name, oid: f.DataTypeOID, kind: kindOf(f.DataTypeOID), typ: fmt.Sprintf("oid %d", f.DataTypeOID)}
			if t, ok := c.TypeMap().TypeForOID(f.DataTypeOID); ok {
				column.typ = t.Name
			}
			columns = append(columns, column)
		}
		rows.Close()
		return rows.Err()
	})
	return columns, err
}

type postgresPage struct {
	columns []resultColumn
	bytes   []byte
	text    string
	cells   []cell
}

// from is -1 for a null
type cell struct{ from, to int32 }

func (e *postgres) fetch(ctx context.Context, conn tx.Conn, columns []resultColumn, text string, args []any) (page, error) {
	p := &e.page
	p.columns = columns
	err := pgxconn.Run(ctx, conn, text, func(c *pgx.Conn) error {
		err := p.fetch(ctx, c, text, args)
		if dberr.SQLState(err) == "0A000" {
			// A migration changed a type since the statement was prepared; outside a transaction it may be
			// prepared again.
			err = p.fetch(ctx, c, text, args)
		}
		return err
	})
	return p, err
}

func (p *postgresPage) fetch(ctx context.Context, c *pgx.Conn, text string, args []any) error {
	return p.fill(c.Query(ctx, text, append([]any{binaryFormats()}, args...)...))
}

func (p *postgresPage) fill(rows pgx.Rows, err error) error {
	p.bytes, p.cells = p.bytes[:0], p.cells[:0]
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		for _, value := range rows.RawValues() {
			at := cell{from: -1}
			if value != nil {
				at.from = int32(len(p.bytes))
				p.bytes = append(p.bytes, value...)
				at.to = int32(len(p.bytes))
			}
			p.cells = append(p.cells, at)
		}
		if len(p.bytes) > math.MaxInt32/2 {
			return errors.New("a page has more than 1 GB: lower `fetch`")
		}
	}
	rows.Close()
	p.text = string(p.bytes)
	if err := rows.Err(); err != nil {
		return err
	}
	return p.sameTypes(rows.FieldDescriptions())
}

func (p *postgresPage) sameTypes(fields []pgconn.FieldDescription) error {
	for i := range p.columns {
		if c := &p.columns[i]; fields[i].DataTypeOID != c.oid {
			return fmt.Errorf("column %s changed its type while it was read", c.name)
		}
	}
	return nil
}

func (p *postgresPage) len() int { return len(p.cells) / len(p.columns) }

func (p *postgresPage) value(at, column int) (row.Value, error) {
	c := &p.columns[column]
	f := c.field
	cell := p.cells[at*len(p.columns)+column]
	if cell.from < 0 {
		return f.Missing()
	}
	if c.isText() {
		text := p.text[cell.from:cell.to]
		if f.Kind == row.String && f.Nulls == nil {
			return row.StringValue(text), nil
		}
		if c.kind.IsList() {
			return arrayOf(c, text)
		}
		return f.Parse(text)
	}
	if c.kind == row.BytesKind {
		return bytesOf(f, p.text[cell.from:cell.to])
	}
	v, err := decode(c, p.bytes[cell.from:cell.to])
	switch {
	case err != nil:
		return f.Coerced("", err)
	case v.Kind() != f.Kind && (f.Coerce != row.CoerceError || f.Counts()):
		return f.Parse(v.String())
	case v.Kind() == f.Kind:
	case v.Kind() == row.Int:
		v, err = sqlvalue.FitInt(f, v.Int())
	case v.Kind() == row.Float && f.Kind == row.DecimalKind:
		v, err = sqlvalue.FitFloat(f, v.Float())
	}
	if err != nil {
		return f.Coerced("", err)
	}
	return f.Known(v)
}

func bytesOf(f *row.Field, b string) (row.Value, error) {
	v := row.BytesText(b)
	if f.Kind != row.BytesKind {
		return f.Parse(v.String())
	}
	return f.Known(v)
}

func (p *postgresPage) raw(at, column int) (row.Value, error) {
	c := &p.columns[column]
	cell := p.cells[at*len(p.columns)+column]
	switch {
	case cell.from < 0:
		return row.Value{}, nil
	case c.isText():
		return row.StringValue(p.text[cell.from:cell.to]), nil
	case c.kind == row.BytesKind:
		return row.BytesText(p.text[cell.from:cell.to]), nil
	}
	return decode(c, p.bytes[cell.from:cell.to])
}

const epochDays = 10957

func decode(c *resultColumn, b []byte) (row.Value, error) {
	switch c.oid {
	case pgtype.Int2OID:
		return row.IntValue(int64(int16(binary.BigEndian.Uint16(b)))), nil
	case pgtype.Int4OID:
		return row.IntValue(int64(int32(binary.BigEndian.Uint32(b)))), nil
	case pgtype.Int8OID:
		return row.IntValue(int64(binary.BigEndian.Uint64(b))), nil
	case pgtype.Float4OID:
		return checked(c, row.FloatValue(row.Real(math.Float32frombits(binary.BigEndian.Uint32(b)))))
	case pgtype.Float8OID:
		return checked(c, row.FloatValue(math.Float64frombits(binary.BigEndian.Uint64(b))))
	case pgtype.BoolOID:
		return row.BoolValue(b[0] != 0), nil
	case pgtype.DateOID:
		days := int32(binary.BigEndian.Uint32(b))
		if days == math.MaxInt32 || days == math.MinInt32 {
			return row.Value{}, sqlvalue.Misfit(c.field, "an infinite date")
		}
		return checked(c, row.DateValue(row.Date(int64(days)+epochDays)))
	case pgtype.TimestampOID, pgtype.TimestamptzOID:
		micros := int64(binary.BigEndian.Uint64(b))
		if micros == math.MaxInt64 || micros == math.MinInt64 {
			return row.Value{}, sqlvalue.Misfit(c.field, "an infinite timestamp")
		}
		return checked(c, row.TimestampValue(time.UnixMicro(micros+epochDays*24*60*60*1_000_000)))
	}
	return row.Value{}, sqlvalue.Misfit(c.field, "a value of type "+c.typ)
}

func checked(c *resultColumn, v row.Value) (row.Value, error) {
	if err := sqlvalue.Check(v); err != nil {
		return row.Value{}, sqlvalue.Unheld(c.field, err)
	}
	return v, nil
}

type postgresCursor struct {
	page *postgresPage
	conn tx.Conn
	name string
}

func (e *postgres) cursor(ctx context.Context, conn tx.Conn, columns []resultColumn, text string, args []any) (cursor, error) {
	e.page.columns = columns
	c := &postgresCursor{page: &e.page, conn: conn, name: quoted("surfin_" + rand.Text()[:8])}
	statement := fmt.Sprintf("declare %s no scroll cursor for %s", c.name, text)
	err := pgxconn.Run(ctx, conn, statement, func(p *pgx.Conn) error {
		_, err := p.Exec(ctx, statement, append([]any{pgx.QueryExecModeDescribeExec}, args...)...)
		return err
	})
	return c, err
}

func (c *postgresCursor) next(ctx context.Context, n int) (page, error) {
	statement := fmt.Sprintf("fetch forward %d from %s", n, c.name)
	err := pgxconn.Run(ctx, c.conn, statement, func(p *pgx.Conn) error {
		return c.page.fill(p.Query(ctx, statement, binaryFormats(), pgx.QueryExecModeDescribeExec))
	})
	return c.page, err
}

func (c *postgresCursor) close() error { return nil }
