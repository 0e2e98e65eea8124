// Package sqlvalue is the one form in which row values and parameters are sent to a database.
//
// PostgreSQL gets text that the column's type reads for itself; bytes are \x and hex, lists arrays.
// SQLite gets int64, float64, text and blobs: dates as yyyy-MM-dd, timestamps as
// yyyy-MM-ddTHH:mm:ss.SSSSSSZ (UTC and of one length, so that text order is time order), bools as 0
// and 1, the rest as text. MySQL gets the same, except for timestamps (yyyy-MM-dd HH:mm:ss.SSSSSS) and
// whole decimals, which are numbers, since it compares a text with a number as floats.
//
// It imports core/row, core/exception, tx and the standard library.
package sqlvalue

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Check reports values that not every database can hold: NaN, infinities, years outside 1 to
// 9999, text with a NUL or not UTF-8.
func Check(v row.Value) error {
	switch v.Kind() {
	case row.Float:
		return v.Finite()
	case row.DateKind:
		return checkYear(v.Date())
	case row.Timestamp:
		return checkYear(row.DayOfMicros(v.Time().UnixMicro()))
	case row.String:
		return CheckText(v.Str())
	case row.JSONKind:
		return checkJSON(v.JSON())
	case row.Null, row.Int, row.Bool, row.DecimalKind, row.UUIDKind, row.BytesKind:
		return nil
	}
	for i, e := range v.Elements() { // of a list
		if err := Check(e); err != nil {
			return &row.ElementError{Index: i, Err: err}
		}
	}
	return nil
}

// CheckText reports text with a NUL or that is not UTF-8.
func CheckText(s string) error {
	if isPlain(s) {
		return nil
	}
	if strings.IndexByte(s, 0) >= 0 {
		return errors.New("the text has a NUL character, which a database cannot store")
	}
	if !utf8.ValidString(s) {
		return errors.New("the text is not UTF-8")
	}
	return nil
}

func isPlain(s string) bool {
	const high, ones = 0x8080808080808080, 0x0101010101010101
	for ; len(s) >= 8; s = s[8:] {
		x := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		if x&high != 0 || (x-ones)&high != 0 {
			return false
		}
	}
	for i := range len(s) {
		if s[i]-1 >= utf8.RuneSelf-1 {
			return false
		}
	}
	return true
}

// checkJSON reports a NUL in JSON: jsonb and extracted text cannot hold it.
func checkJSON(j row.JSON) error {
	text := string(j)
	for at := strings.Index(text, nul); at >= 0; {
		slashes := 0
		for slashes < at && text[at-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return errors.New("a text in it has a NUL character, which a database cannot store")
		}
		next := strings.Index(text[at+len(nul):], nul)
		if next < 0 {
			return nil
		}
		at += len(nul) + next
	}
	return nil
}

const nul = `\u0000`

const (
	minDay = row.Date(-719162) // 0001-01-01
	maxDay = row.Date(2932896) // 9999-12-31
)

func checkYear(d row.Date) error {
	if d < minDay || d > maxDay {
		return fmt.Errorf("year %d is outside 1 to 9999", d.Year())
	}
	return nil
}

// AppendText appends a checked ([Check]) value's text for a text column; null appends nothing.
func AppendText(dst []byte, v row.Value) []byte {
	switch v.Kind() {
	case row.DateKind:
		return v.Date().Append(dst)
	case row.Timestamp:
		return row.AppendMicros(dst, v.Time().UnixMicro())
	default:
		return v.AppendText(dst)
	}
}

// Text returns PostgreSQL's text of a value that COPY or an array may have to escape; else false:
// see [AppendText].
func Text(v row.Value) (string, bool) {
	switch v.Kind() {
	case row.String, row.JSONKind, row.UUIDKind:
		return v.String(), true
	case row.BytesKind:
		return row.HexText(v.Bytes()), true
	case row.Null, row.Int, row.Float, row.DecimalKind, row.Bool, row.DateKind, row.Timestamp:
		return "", false
	}
	return row.ArrayText(v, func(e row.Value) string { return string(AppendText(nil, e)) }), true
}

// SQLite returns v for SQLite: nil, int64, float64, string or []byte; v must have passed [Check].
func SQLite(v row.Value) any {
	switch v.Kind() {
	case row.Null:
		return nil
	case row.Int:
		return v.Int()
	case row.Float:
		return v.Float()
	case row.Bool:
		if v.Bool() {
			return int64(1)
		}
		return int64(0)
	case row.String, row.JSONKind, row.UUIDKind:
		return v.String()
	case row.BytesKind:
		return []byte(v.Bytes())
	default:
		return string(AppendText(make([]byte, 0, 32), v))
	}
}

// MySQL returns v for MySQL: nil, int64, uint64, float64, string or []byte; v must have passed [Check].
func MySQL(v row.Value) any {
	switch v.Kind() {
	case row.Timestamp:
		return v.Time().UTC().Format("2006-01-02 15:04:05.000000")
	case row.DecimalKind:
		text := v.Decimal().String()
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
		if n, err := strconv.ParseUint(text, 10, 64); err == nil {
			return n
		}
		return text
	default:
		return SQLite(v)
	}
}

// Postgres returns v for PostgreSQL: nil or a string, sent as text.
func Postgres(v row.Value) any {
	if v.IsNull() {
		return nil
	}
	if text, ok := Text(v); ok {
		return text
	}
	return string(AppendText(make([]byte, 0, 32), v))
}

// Bind returns the form of the database's values.
func Bind(d tx.Dialect) func(row.Value) any {
	switch d {
	case tx.Postgres:
		return Postgres
	case tx.MySQL:
		return MySQL
	case tx.SQLite:
	}
	return SQLite
}

// Args converts bind variables with bind; a duration becomes seconds.
func Args(args []any, bind func(row.Value) any) ([]any, error) {
	out := make([]any, len(args))
	for i, arg := range args {
		if d, ok := arg.(time.Duration); ok {
			arg = d.Seconds()
		}
		v, err := row.ValueOf(arg)
		if err == nil {
			err = Check(v)
		}
		if err != nil {
			return nil, fmt.Errorf("bind variable %d: %w", i+1, err)
		}
		out[i] = bind(v)
	}
	return out, nil
}
