package sqlvalue

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Convert returns v as a value of the kind that a column declares; false if it does
// not fit. Nothing is lost: a float fits an int if it is whole, an int a bool if it is
// 0 or 1, a timestamp a date if it is midnight, an int a float if the float is exactly
// it, a decimal an int if it is whole and a float if it has no more digits than a float keeps.
func Convert(v row.Value, kind row.Kind) (row.Value, bool) {
	f := row.Field{Kind: kind, Nulls: []string{}}
	var err error
	switch from := v.Kind(); {
	case from == kind, from == row.Null:
		return v, true
	case from == row.Int && kind == row.Float:
		_, exact := row.FloatOf(v.Int())
		return v, exact
	case kind == row.String:
		return row.StringValue(string(AppendText(make([]byte, 0, 32), v))), true
	case from == row.String:
		v, err = f.Parse(v.Str())
	case from == row.Int:
		v, err = FitInt(&f, v.Int())
	case from == row.Float:
		v, err = FitFloat(&f, v.Float())
	case from == row.DecimalKind:
		return convertDecimal(v.Decimal(), kind)
	case from == row.Timestamp:
		v, err = fitTime(&f, v.Time())
	case from == row.DateKind && kind == row.Timestamp:
		return row.TimestampValue(v.Date().Time()), true
	case from == row.Bool && kind == row.Int:
		n := int64(0)
		if v.Bool() {
			n = 1
		}
		return row.IntValue(n), true
	default:
		return v, false
	}
	return v, err == nil
}

func convertDecimal(d row.Decimal, kind row.Kind) (row.Value, bool) {
	switch kind {
	case row.Int:
		i, _, whole := d.Int()
		return row.IntValue(i), whole
	case row.Float:
		x, ok := d.Float()
		return row.FloatValue(x), ok && d.Reduce().Digits() <= ExactDigits
	default:
		return row.DecimalValue(d), false
	}
}

// Quote shows a value in a message: a text in quotes, shortened.
func Quote(v row.Value) string {
	const maxLen = 60
	text := v.String()
	if v.Kind() != row.String {
		return text
	}
	if len(text) > maxLen {
		text = strings.ToValidUTF8(text[:maxLen], "") + "…"
	}
	return strconv.Quote(text)
}

// DeclaredKind is what a declared type of SQLite means, after its own rules of
// affinity; Null where any value may be in the column, and for a blob.
func DeclaredKind(typ string) row.Kind {
	name, _, _ := strings.Cut(strings.ToUpper(typ), "(")
	name = strings.TrimSpace(name)
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(name, p) {
				return true
			}
		}
		return false
	}
	switch {
	case name == "DATE":
		return row.DateKind
	case strings.HasPrefix(name, "TIMESTAMP"), name == "DATETIME":
		return row.Timestamp
	case strings.HasPrefix(name, "BOOL"):
		return row.Bool
	case has("INT"):
		return row.Int
	case has("CHAR", "CLOB", "TEXT"):
		return row.String
	case has("REAL", "FLOA", "DOUB"):
		return row.Float
	case has("DEC", "NUMERIC", "MONEY"):
		return row.DecimalKind
	}
	return row.Null
}

// declaredScale finds the scale of a declared type, such as decimal(12,2).
var declaredScale = regexp.MustCompile(`\(\s*\d+\s*,\s*(\d{1,3})\s*\)`)

// DeclaredScale returns the number of digits behind the point that a declared type such as
// decimal(12,2) has; false: it is no decimal, or has no scale.
func DeclaredScale(typ string) (scale int, ok bool) {
	found := declaredScale.FindStringSubmatch(typ)
	if found == nil || DeclaredKind(typ) != row.DecimalKind {
		return 0, false
	}
	scale, err := strconv.Atoi(found[1])
	return scale, err == nil
}
