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

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// kind is the kind of a value, independent of its database's type names.
type kind int

const (
	null kind = iota
	number
	instant
	text
	blob
)

func (k kind) String() string { return [...]string{"null", "number", "time", "text", "blob"}[k] }

// value is a value of a row.
type value struct {
	kind kind
	// exact is the number unless it is whole and fits int.
	exact *big.Rat
	int   int64
	time  time.Time
	text  string
	blob  []byte
}

// decimal matches a decimal without an exponent, with which a short text can be a very long number.
var decimal = regexp.MustCompile(`^[-+]?[0-9]+(\.[0-9]+)?$`)

// longestDecimal is the maximum length of a text that is read as a number. It is not part of the pattern:
// compiling that many repetitions took a tenth of the start of every process.
const longestDecimal = 800

// valueOf reads a driver's value; numeric means that a text is a number to its database.
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
		return value{kind: text, text: row.FloatText(x)} // no number: NaN, an infinity
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

// asNumber reads a text as a number; if it is none, v is unchanged.
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

// asTime reads a text as a time; if it is none, v is unchanged.
func (v value) asTime() (value, bool) {
	if v.kind != text {
		return v, v.kind == instant
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999", time.DateOnly} {
		if t, err := time.Parse(layout, v.text); err == nil {
			return value{kind: instant, time: t.UTC().Truncate(time.Microsecond)}, true
		}
	}
	return v, false
}

func (v value) rat() *big.Rat {
	if v.exact != nil {
		return v.exact
	}
	return new(big.Rat).SetInt64(v.int)
}

// same reports whether two values are equal, whatever their types in the databases.
func same(a, b value) bool {
	if a.kind != b.kind {
		switch number, time := a.kind == number || b.kind == number, a.kind == instant || b.kind == instant; {
		case number && !time:
			a, _ = a.asNumber()
			b, _ = b.asNumber()
		case time && !number:
			a, _ = a.asTime()
			b, _ = b.asTime()
		}
	}
	return a.kind == b.kind && order(a, b) == 0
}

// order compares two values of one kind.
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

// String shows a value in a message, shortened.
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

// ratText is the decimal text of x; values and their sums are decimals.
func ratText(r *big.Rat) string {
	digits, _ := r.FloatPrec()
	return r.FloatString(digits)
}
