package compare

import (
	"bytes"
	"cmp"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

type kind int

const (
	null kind = iota
	number
	instant
	text
	blob
)

func (k kind) String() string { return [...]string{"null", "number", "time", "text", "blob"}[k] }

type value struct {
	kind kind
	// the number unless it is whole and fits int
	exact *big.Rat
	int   int64
	time  time.Time
	text  string
	blob  []byte
	// day: the midnight of a date in UTC; bare: of a `timestamp` of PostgreSQL, which has no time zone.
	day, bare bool
}

// With an exponent a short text can be a very long number.
var decimal = regexp.MustCompile(`^[-+]?[0-9]+(\.[0-9]+)?$`)

// It is not in the pattern: compiling that many repetitions took a tenth of the start of every process.
const longestDecimal = 800

// numeric means that a text is a number to its database.
func valueOf(x any, numeric bool) value {
	switch x := x.(type) {
	case nil:
		return value{}
	case int64:
		return value{kind: number, int: x}
	case bool:
		if x {
			return value{kind: number, int: 1}
		}
		return value{kind: number}
	case float64:
		if i, whole := row.IntOf(x); whole {
			return value{kind: number, int: i}
		}
		if exact, ok := new(big.Rat).SetString(row.FloatText(x)); ok {
			return value{kind: number, exact: exact}
		}
		return value{kind: text, text: row.FloatText(x)} // NaN, an infinity
	case time.Time:
		return value{kind: instant, time: x.UTC().Truncate(time.Microsecond)}
	case []byte:
		return value{kind: blob, blob: bytes.Clone(x)}
	case string:
		v := value{kind: text, text: x}
		if numeric {
			v, _ = v.asNumber()
		}
		return v
	}
	return value{kind: text, text: fmt.Sprint(x)}
}

func (v value) asNumber() (value, bool) {
	if v.kind == number {
		return v, true
	}
	if v.kind != text || len(v.text) > longestDecimal || !decimal.MatchString(v.text) {
		return v, false
	}
	if i, err := strconv.ParseInt(v.text, 10, 64); err == nil {
		return value{kind: number, int: i}, true
	}
	exact, ok := new(big.Rat).SetString(v.text)
	if !ok {
		return v, false
	}
	if exact.IsInt() && exact.Num().IsInt64() {
		return value{kind: number, int: exact.Num().Int64()}, true
	}
	return value{kind: number, exact: exact}, true
}

// A text without an offset is in the zone.
func (v value) asTime(zone *time.Location) value {
	if v.kind != text {
		return v
	}
	if t, isDay, ok := sqlvalue.WrittenTime(v.text, zone); ok {
		return value{kind: instant, time: t, day: isDay}
	}
	return v
}

// A `timestamp` of PostgreSQL keeps local times as they are (rule D8a).
func (v value) clock(zone *time.Location) *time.Location {
	if v.bare {
		return nil
	}
	return zone
}

// A date compared with a time is the first instant of that day.
func begun(a, b value, zone *time.Location) (value, value) {
	switch {
	case a.kind != instant || b.kind != instant || a.day == b.day:
	case a.day:
		a = value{kind: instant, time: row.DateOf(a.time).Begins(b.clock(zone))}
	default:
		b, a = begun(b, a, zone)
	}
	return a, b
}

func (v value) rat() *big.Rat {
	if v.exact != nil {
		return v.exact
	}
	return new(big.Rat).SetInt64(v.int)
}

// Local times are in the zone.
func same(a, b value, zone *time.Location) bool {
	if a.kind != b.kind {
		switch number, time := a.kind == number || b.kind == number, a.kind == instant || b.kind == instant; {
		case number && !time:
			a, _ = a.asNumber()
			b, _ = b.asNumber()
		case time && !number:
			a, b = a.asTime(b.clock(zone)), b.asTime(a.clock(zone))
		}
	}
	a, b = begun(a, b, zone)
	return a.kind == b.kind && order(a, b) == 0
}

func order(a, b value) int {
	switch a.kind {
	case null:
	case number:
		if a.exact == nil && b.exact == nil {
			return cmp.Compare(a.int, b.int)
		}
		return a.rat().Cmp(b.rat())
	case instant:
		return a.time.Compare(b.time)
	case text:
		return strings.Compare(a.text, b.text)
	case blob:
		return bytes.Compare(a.blob, b.blob)
	}
	return 0
}

func (v value) String() string {
	const most = 60
	switch v.kind {
	case null:
		return "null"
	case number:
		return ratText(v.rat())
	case instant:
		return v.time.Format(time.RFC3339Nano)
	case blob:
		return fmt.Sprintf("a blob of %d bytes", len(v.blob))
	case text:
	}
	if len(v.text) > most {
		return strconv.Quote(strings.ToValidUTF8(v.text[:most], "") + "…")
	}
	return strconv.Quote(v.text)
}

// Values and their sums are decimals.
func ratText(r *big.Rat) string {
	digits, _ := r.FloatPrec()
	return r.FloatString(digits)
}
