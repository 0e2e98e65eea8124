// Package sqlvalue is the one form in which row values and parameters meet a
// database, whichever component sends them.
//
// PostgreSQL gets text that the type of the column or bind variable reads for
// itself, so one text serves a date, a timestamp and a text column alike; bytes are \x and
// hex. SQLite gets int64, float64, text and blobs: dates as yyyy-MM-dd, timestamps as
// yyyy-MM-ddTHH:mm:ss.SSSSSSZ (always UTC and of one length, so that their order
// as text is their order in time), bools as 0 and 1, JSON and uuids as their text.
//
// It imports core/row, core/exception and the standard library.
package sqlvalue

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Check reports a value that not every database holds: NaN and infinities, years
// outside 1 to 9999 (their text does not sort, or is refused), text with a NUL or
// that is not UTF-8.
func Check(v row.Value) error {
	switch v.Kind() {
	case row.Float:
		return v.Finite()
	case row.DateKind:
		return checkYear(v.Date())
	case row.Timestamp:
		return checkYear(dayOf(v.Time().UnixMicro()))
	case row.String:
		return CheckText(v.Str())
	case row.JSONKind:
		return checkJSON(v.JSON())
	case row.Null, row.Int, row.Bool, row.DecimalKind, row.UUIDKind, row.BytesKind:
	}
	return nil
}

// CheckText reports text with a NUL or that is not UTF-8.
func CheckText(s string) error {
	if strings.IndexByte(s, 0) >= 0 {
		return errors.New("the text has a NUL character, which a database does not hold")
	}
	if !utf8.ValidString(s) {
		return errors.New("the text is not UTF-8")
	}
	return nil
}

// checkJSON reports a NUL in a text of JSON: jsonb does not hold it, and nothing that reads the
// text out of the JSON would.
func checkJSON(j row.JSON) error {
	text := string(j)
	for at := strings.Index(text, nul); at >= 0; {
		slashes := 0
		for slashes < at && text[at-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return errors.New("a text in it has a NUL character, which a database does not hold")
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

// AppendText appends the text of a value as a column of text has it; a null appends nothing. v
// must have passed [Check].
func AppendText(dst []byte, v row.Value) []byte {
	switch v.Kind() {
	case row.DateKind:
		return appendDate(dst, v.Date())
	case row.Timestamp:
		return appendTimestamp(dst, v.Time().UnixMicro())
	default:
		return v.AppendText(dst)
	}
}

// Text returns the text that PostgreSQL reads for a value whose text may have characters with a
// meaning of their own in COPY or in an array; false: AppendText has none.
func Text(v row.Value) (string, bool) {
	switch v.Kind() {
	case row.String, row.JSONKind, row.UUIDKind:
		return v.String(), true
	case row.BytesKind:
		return row.HexText(v.Bytes()), true
	default:
		return "", false
	}
}

// SQLite returns what SQLite stores for v: nil, int64, float64, string or []byte. v must
// have passed [Check].
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

// Postgres returns what PostgreSQL reads for v: nil or a string, which pgx sends
// as text for a bind variable of any type.
func Postgres(v row.Value) any {
	if v.IsNull() {
		return nil
	}
	if text, ok := Text(v); ok {
		return text
	}
	return string(AppendText(make([]byte, 0, 32), v))
}

// Args turns bind variables, as expressions answer them, into what bind (SQLite
// or Postgres) makes of them. A duration becomes a number of seconds.
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

const microsPerDay = 24 * 60 * 60 * 1_000_000

func dayOf(micros int64) row.Date {
	day := micros / microsPerDay
	if micros%microsPerDay < 0 {
		day--
	}
	return row.Date(day)
}

// appendDate and appendTimestamp write the digits themselves: time.AppendFormat
// costs several times as much, and every value of a load passes here.
func appendDate(dst []byte, d row.Date) []byte {
	y, m, day := civil(int(d))
	return append(dst, '0'+byte(y/1000), '0'+byte(y/100%10), '0'+byte(y/10%10), '0'+byte(y%10), '-',
		'0'+byte(m/10), '0'+byte(m%10), '-', '0'+byte(day/10), '0'+byte(day%10))
}

func appendTimestamp(dst []byte, micros int64) []byte {
	day := dayOf(micros)
	rest := micros - int64(day)*microsPerDay
	dst = appendDate(dst, day)
	fraction := int(rest % 1_000_000)
	s := int(rest / 1_000_000)
	dst = append(dst, 'T', '0'+byte(s/36000), '0'+byte(s/3600%10), ':', '0'+byte(s/600%6), '0'+byte(s/60%10), ':',
		'0'+byte(s/10%6), '0'+byte(s%10), '.')
	for unit := 100_000; unit > 0; unit /= 10 {
		dst = append(dst, '0'+byte(fraction/unit%10))
	}
	return append(dst, 'Z')
}

// civil returns the Gregorian date of a day counted from 1970-01-01, by eras of
// 400 years that begin on 1 March.
func civil(day int) (year, month, dayOfMonth int) {
	const daysPerEra = 146_097
	day += 719_468
	era := day / daysPerEra
	if day < 0 {
		era = (day - daysPerEra + 1) / daysPerEra
	}
	doe := day - era*daysPerEra
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	year, month, dayOfMonth = yoe+era*400, mp+3, doy-(153*mp+2)/5+1
	if month > 12 {
		month -= 12
		year++
	}
	return year, month, dayOfMonth
}
