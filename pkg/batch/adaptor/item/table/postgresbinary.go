package table

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/surfin-batch/surfin/internal/pgxconn"
	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// COPY takes values as texts, or in the binary form of their columns' types. The binary form costs the server and the
// client less, but it is not checked: eight bytes of a bigint are also a timestamp. So the table is locked first as
// COPY does it, and then its columns must have the types of the plan, which the lock keeps. If they have others, the
// chunk is sent as texts in the same transaction.

// nameForBinary returns "" unless all columns have one.
func nameForBinary(p *plan, table *relation) string {
	if !p.onPostgres || !p.copies || slices.ContainsFunc(p.cols, func(c column) bool { return c.copied() == 0 }) {
		return ""
	}
	return table.qualified
}

func (p *plan) copiesBinary() bool { return p.qualified != "" && !p.changed.Load() }

// copied is the column's type if a binary COPY may have its values, else 0.
func (c *column) copied() uint32 {
	switch {
	case c.asText:
		return 0
	case c.oid == pgtype.NumericOID, c.oid == pgtype.UUIDOID, c.oid == pgtype.JSONOID, c.oid == pgtype.JSONBOID, c.oid == pgtype.BPCharOID:
		return c.oid
	}
	return c.element()
}

// copyBinary writes nothing, and returns false, if the table has changed.
func (b *postgresBatch) copyBinary(ctx context.Context, c *pgx.Conn, begin pgxconn.Begin, p *plan) (took int64, same bool, err error) {
	text := fmt.Sprintf("copy %s (%s) from stdin (format binary)", p.qualified, p.list())
	took, err = slices.Concat(begin, p.sameTable()).CopyFrom(ctx, c, bytes.NewReader(b.buf), text)
	if !isOtherTable(err) || c.PgConn().Exec(ctx, "rollback to savepoint surfin_same").Close() != nil {
		return took, true, err // of a trigger, if there is no savepoint any more
	}
	p.changed.Store(true)
	return 0, false, nil
}

func (p *plan) list() string {
	const columnList = -1
	text, ok := p.texts[columnList]
	if !ok {
		text = quotedList(p.names())
		p.texts[columnList] = text
	}
	return text
}

// sameTable locks the table, and fails if its columns are not of the types of the plan any more. A name without its
// schema could mean a type, such as money.
func (p *plan) sameTable() pgxconn.Begin {
	if p.same == nil {
		now, planned := make([]string, len(p.cols)), make([]string, len(p.cols))
		for i := range p.cols {
			now[i] = fmt.Sprintf("pg_catalog.pg_typeof((null::%s).%s)", p.qualified, quoted(p.cols[i].name))
			planned[i] = fmt.Sprint(p.cols[i].oid)
		}
		p.same = pgxconn.Begin{
			"savepoint surfin_same",
			"lock table only " + p.qualified + " in row exclusive mode",
			fmt.Sprintf("select case when array[%s]::oid[] = '{%s}' then 1 else pg_catalog.current_setting('%s')::int end", strings.Join(now, ","), strings.Join(planned, ","), changedSetting),
			"release savepoint surfin_same",
		}
	}
	return p.same
}

// A setting that no server has: reading it is an error that no value of an item can cause.
const changedSetting = "surfin.table_has_changed"

// isOtherTable recognizes the errors of sameTable. A COPY as texts has its own for a table that is gone.
func isOtherTable(err error) bool {
	const undefinedObject, undefinedColumn, undefinedTable, undefinedSchema = "42704", "42703", "42P01", "3F000"
	var pg *pgconn.PgError
	switch {
	case !errors.As(err, &pg):
		return false
	case pg.Code == undefinedObject:
		return strings.Contains(pg.Message, changedSetting)
	}
	return pg.Code == undefinedColumn || pg.Code == undefinedTable || pg.Code == undefinedSchema
}

// encodeBinary returns false if a value has no binary form.
func (b *postgresBatch) encodeBinary(p *plan) (done bool, err error) {
	dst := append(b.buf[:0], "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"...)
	defer func() { b.buf = dst }()
	for n, record := range b.records {
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(p.cols))) //nolint:gosec // a table has at most 1600 columns
		for i := range p.cols {
			v, err := p.value(record, i)
			if err != nil {
				return false, &item.RecordError{Index: n, Err: err}
			}
			if v.IsNull() {
				dst = binary.BigEndian.AppendUint32(dst, math.MaxUint32)
				continue
			}
			from, ok := len(dst), false
			if dst, ok = appendCopied(binary.BigEndian.AppendUint32(dst, 0), p.cols[i].oid, v); !ok {
				return false, nil
			}
			binary.BigEndian.PutUint32(dst[from:], uint32(len(dst)-from-4)) //nolint:gosec // PostgreSQL has no longer value
		}
	}
	dst = binary.BigEndian.AppendUint16(dst, math.MaxUint16)
	return true, nil
}

// appendCopied returns false if the value has no binary form.
func appendCopied(dst []byte, oid uint32, v row.Value) ([]byte, bool) {
	switch {
	case oid == pgtype.BPCharOID:
		return appendBinary(dst, pgtype.TextOID, v)
	case oid == pgtype.NumericOID && v.Kind() == row.DecimalKind:
		return appendNumeric(dst, v.Decimal()), true
	case oid == pgtype.UUIDOID && v.Kind() == row.UUIDKind:
		u := v.UUID()
		return append(dst, u[:]...), true
	case oid == pgtype.JSONOID || oid == pgtype.JSONBOID:
		text, ok := sqlvalue.Text(v)
		if oid == pgtype.JSONBOID {
			dst = append(dst, 1) // the version of the form
		}
		return append(dst, text...), ok
	}
	return appendBinary(dst, oid, v)
}

// appendNumeric appends the digits in groups of four around the decimal point: the number of groups, the power of 10,000
// of the first one, the sign, and the scale.
func appendNumeric(dst []byte, d row.Decimal) []byte {
	const group, negative = 4, 0x4000
	var room [64]byte
	text := d.AppendText(room[:0])
	sign := uint16(0)
	if text[0] == '-' {
		sign, text = negative, text[1:]
	}
	whole, fraction := text, []byte(nil)
	if d.Scale() > 0 {
		whole, fraction = text[:len(text)-d.Scale()-1], text[len(text)-d.Scale():]
	}
	before, after := (len(whole)+group-1)/group, (len(fraction)+group-1)/group
	for _, n := range [...]uint16{uint16(before + after), uint16(before - 1), sign, uint16(d.Scale())} { //nolint:gosec // at most 1000 digits
		dst = binary.BigEndian.AppendUint16(dst, n)
	}
	for at := len(whole) - before*group; at < len(whole); at += group {
		dst = binary.BigEndian.AppendUint16(dst, digits(whole[max(at, 0):at+group]))
	}
	for at := 0; at < len(fraction); at += group {
		part := fraction[at:min(at+group, len(fraction))]
		n := digits(part)
		for range group - len(part) {
			n *= 10
		}
		dst = binary.BigEndian.AppendUint16(dst, n)
	}
	return dst
}

func digits(text []byte) (n uint16) {
	for _, c := range text {
		n = n*10 + uint16(c-'0')
	}
	return n
}
