package table

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/pgxconn"
	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// arrays are records as one array per column: in PostgreSQL's binary format if
// the type and all values have one, else as a text.
type arrays struct {
	values  [][]byte
	formats []int16
}

func (a *arrays) encode(p *plan, records [][]row.Value) error {
	if len(a.values) != len(p.cols) {
		a.values, a.formats = make([][]byte, len(p.cols)), make([]int16, len(p.cols))
	}
	for i := range p.cols {
		a.formats[i] = pgtype.BinaryFormatCode
		done, err := a.encodeBinary(p, i, records)
		if err == nil && !done {
			a.formats[i] = pgtype.TextFormatCode
			err = a.encodeText(p, i, records)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// encodeBinary returns false if a value has no binary form.
func (a *arrays) encodeBinary(p *plan, i int, records [][]row.Value) (done bool, err error) {
	const dimensions, lowerBound, nulls = 1, 1, 4
	element := p.cols[i].element()
	if element == 0 {
		return false, nil
	}
	dst := a.values[i][:0]
	for _, n := range [...]uint32{dimensions, 0, element, uint32(len(records)), lowerBound} { //nolint:gosec // a chunk has fewer
		dst = binary.BigEndian.AppendUint32(dst, n)
	}
	for n, record := range records {
		v, err := p.value(record, i)
		if err != nil {
			return false, &item.RecordError{Index: n, Err: err}
		}
		if v.IsNull() {
			binary.BigEndian.PutUint32(dst[nulls:], 1)
			dst = binary.BigEndian.AppendUint32(dst, math.MaxUint32)
			continue
		}
		from := len(dst)
		var ok bool
		if dst, ok = appendBinary(binary.BigEndian.AppendUint32(dst, 0), element, v); !ok {
			return false, nil
		}
		binary.BigEndian.PutUint32(dst[from:], uint32(len(dst)-from-4)) //nolint:gosec // PostgreSQL has no longer value
	}
	a.values[i] = dst
	return true, nil
}

// appendBinary returns false if the value has no binary form.
func appendBinary(dst []byte, element uint32, v row.Value) ([]byte, bool) {
	const day, micro = 10957, 946_684_800_000_000 // 2000-01-01, where PostgreSQL begins to count
	switch element {
	case pgtype.TextOID, pgtype.VarcharOID:
		if text, ok := sqlvalue.Text(v); ok {
			return append(dst, text...), true
		}
		return sqlvalue.AppendText(dst, v), true
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID:
		if v.Kind() == row.Int {
			return appendInt(dst, element, v.Int())
		}
	case pgtype.Float8OID:
		if v.Kind() == row.Float {
			return binary.BigEndian.AppendUint64(dst, math.Float64bits(v.Float())), true
		}
	case pgtype.BoolOID:
		if v.Kind() == row.Bool {
			if v.Bool() {
				return append(dst, 1), true
			}
			return append(dst, 0), true
		}
	case pgtype.DateOID:
		if v.Kind() == row.DateKind {
			return binary.BigEndian.AppendUint32(dst, uint32(int32(v.Date())-day)), true //nolint:gosec // two's complement is the format
		}
	case pgtype.TimestampOID, pgtype.TimestamptzOID:
		if v.Kind() == row.Timestamp {
			return binary.BigEndian.AppendUint64(dst, uint64(v.Time().UnixMicro()-micro)), true //nolint:gosec // as above
		}
	case pgtype.ByteaOID:
		if v.Kind() == row.BytesKind {
			return append(dst, v.Bytes()...), true
		}
	}
	return dst, false
}

// For values outside the type the server reports the mistake.
func appendInt(dst []byte, element uint32, n int64) ([]byte, bool) {
	switch {
	case element == pgtype.Int8OID:
		return binary.BigEndian.AppendUint64(dst, uint64(n)), true //nolint:gosec // two's complement is the format
	case element == pgtype.Int4OID && int64(int32(n)) == n: //nolint:gosec // a cut shows
		return binary.BigEndian.AppendUint32(dst, uint32(n)), true //nolint:gosec // as above
	case element == pgtype.Int2OID && int64(int16(n)) == n: //nolint:gosec // as above
		return binary.BigEndian.AppendUint16(dst, uint16(n)), true //nolint:gosec // as above
	}
	return dst, false
}

func (a *arrays) encodeText(p *plan, i int, records [][]row.Value) error {
	dst := append(a.values[i][:0], '{')
	for n, record := range records {
		v, err := p.value(record, i)
		if err != nil {
			return &item.RecordError{Index: n, Err: err}
		}
		if n > 0 {
			dst = append(dst, ',')
		}
		if v.IsNull() {
			dst = append(dst, "NULL"...)
		} else if text, ok := sqlvalue.Text(v); ok {
			dst = appendArrayText(dst, text)
		} else {
			dst = sqlvalue.AppendText(dst, v)
		}
	}
	a.values[i] = append(dst, '}')
	return nil
}

type arraysResult struct {
	rows   int64
	found  bool
	number int
	// repeated are the numbers, separated by commas, of the records with keys
	// that PostgreSQL takes for equal to earlier ones.
	repeated string
}

func (a *arrays) exec(ctx context.Context, conn tx.Conn, text string) (r arraysResult, err error) {
	err = pgxconn.RunFirst(ctx, conn, text, func(c *pgx.Conn, begin pgxconn.Begin) error {
		result, err := a.execOn(ctx, c, begin, text)
		if err != nil {
			return err
		}
		r.rows = result.CommandTag.RowsAffected()
		if len(result.Rows) == 0 {
			return nil
		}
		if len(result.Rows[0]) > 1 {
			r.repeated = string(result.Rows[0][1])
		}
		if result.Rows[0][0] == nil {
			return nil
		}
		r.found = true
		r.number, err = strconv.Atoi(string(result.Rows[0][0]))
		return err
	})
	return r, err
}

// A prepared one is executed in one round trip with begin.
func (a *arrays) execOn(ctx context.Context, c *pgx.Conn, begin pgxconn.Begin, text string) (*pgconn.Result, error) {
	keeps, kept := c.Config().DefaultQueryExecMode == pgx.QueryExecModeCacheStatement, preparedOn(c)
	if !keeps || !kept.has(text) {
		if err := begin.Exec(ctx, c); err != nil {
			return nil, err
		}
		begin = nil
	}
	if !keeps {
		result := c.PgConn().ExecParams(ctx, text, a.values, nil, a.formats, nil).Read()
		return result, result.Err
	}
	name, err := kept.prepare(ctx, c, text)
	if err != nil {
		return nil, err
	}
	result, err := begin.ExecPrepared(ctx, c, name, a.values, a.formats)
	if isStale(err) {
		return nil, errors.Join(err, kept.forget(ctx, c, text))
	}
	return result, err
}

type preparedTexts struct{ texts []string }

// A worker may write into endlessly many tables.
const maxPrepared = 64

// At the connection, since both have one lifetime.
func preparedOn(c *pgx.Conn) *preparedTexts {
	const key = "surfin.arrays"
	data := c.PgConn().CustomData()
	k, ok := data[key].(*preparedTexts)
	if !ok {
		k = &preparedTexts{}
		data[key] = k
	}
	return k
}

func (k *preparedTexts) has(text string) bool { return slices.Contains(k.texts, text) }

func (k *preparedTexts) prepare(ctx context.Context, c *pgx.Conn, text string) (name string, err error) {
	i := slices.Index(k.texts, text)
	if i < 0 && len(k.texts) >= maxPrepared {
		if err := k.forget(ctx, c, k.texts[0]); err != nil {
			return "", err
		}
	}
	statement, err := c.Prepare(ctx, text, text)
	if err != nil {
		return "", err
	}
	if i >= 0 {
		k.texts = slices.Delete(k.texts, i, i+1)
	}
	k.texts = append(k.texts, text)
	return statement.Name, nil
}

func (k *preparedTexts) forget(ctx context.Context, c *pgx.Conn, text string) error {
	k.texts = slices.DeleteFunc(k.texts, func(t string) bool { return t == text })
	return c.Deallocate(ctx, text)
}

func isStale(err error) bool {
	state := dberr.SQLState(err)
	return slices.Contains([]string{"0A000", "26000", "XX000"}, state) || strings.HasPrefix(state, "42")
}

// element is the type of the elements of the column's array, or 0 if it has no
// binary form here.
func (c *column) element() uint32 {
	if c.asText {
		return pgtype.TextOID
	}
	switch c.oid {
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.Float8OID, pgtype.TextOID, pgtype.VarcharOID,
		pgtype.BoolOID, pgtype.DateOID, pgtype.TimestampOID, pgtype.TimestamptzOID, pgtype.ByteaOID:
		return c.oid
	}
	return 0
}
