package sqlvalue

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Convert returns v as a value of a column's kind; false if it does not fit. Nothing is lost: a
// float fits an int if whole, an int a bool if 0 or 1, a timestamp a date at midnight, an int or a
// decimal a float if exact, a number or a bool JSON. A text fits if it is one value of the kind
// (see parseText); \x and hex are bytes.
func Convert(v row.Value, kind row.Kind) (row.Value, bool) { return ConvertIn(v, kind, nil) }

// ConvertIn is Convert in a time zone (rule D5); nil is UTC.
func ConvertIn(v row.Value, kind row.Kind, zone *time.Location) (row.Value, bool) {
	f := row.Field{Kind: kind, Zone: zone, Nullable: kind == row.JSONKind, Nulls: []string{}} // JSON's null is null
	var err error
	switch from := v.Kind(); {
	case from == kind, from == row.Null:
		return v, true
	case from == row.Int && kind == row.Float:
		_, exact := row.FloatOf(v.Int())
		return v, exact
	case kind == row.String:
		return row.StringValue(string(AppendText(make([]byte, 0, 32), v))), true
	case from == row.String && kind == row.BytesKind && !row.IsHexText(v.Str()):
		return v, true
	case from == row.String:
		return parseText(&f, v.Str())
	case kind == row.JSONKind:
		return toJSON(v)
	case kind.IsList():
		return toList(v, &f)
	case from == row.Int:
		v, err = FitInt(&f, v.Int())
	case from == row.Float:
		v, err = FitFloat(&f, v.Float())
	case from == row.DecimalKind:
		return convertDecimal(v.Decimal(), kind)
	case from == row.Timestamp:
		v, err = fitTime(&f, v.Time())
	case from == row.DateKind && kind == row.Timestamp:
		return row.TimestampValue(v.Date().Begins(zone)), true
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

func toJSON(v row.Value) (row.Value, bool) {
	switch v.Kind() {
	case row.Int, row.Float, row.DecimalKind, row.Bool:
		return row.JSONValue(row.JSON(v.String())), true
	default:
		return row.JSONValue(row.JSON(v.String())), v.Kind().IsList()
	}
}

func toList(v row.Value, f *row.Field) (row.Value, bool) {
	if v.Kind() == row.JSONKind {
		list, err := f.ParseArray([]byte(v.JSON()))
		return list, err == nil
	}
	elem, _ := f.Kind.Elem()
	elements := v.Elements()
	for i, e := range elements {
		var ok bool
		if elements[i], ok = ConvertIn(e, elem, f.Zone); !ok {
			return v, false
		}
	}
	list, err := row.ListValue(elem, elements)
	return list, err == nil && v.Kind().IsList()
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
	if len(text) > maxLen {
		text = strings.ToValidUTF8(text[:maxLen], "") + "…"
	}
	if v.Kind() != row.String {
		return text
	}
	return strconv.Quote(text)
}

// DeclaredKind is the kind of SQLite's declared type, by affinity and PostgreSQL's names; Null for
// any.
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
	if kind, ok := row.KindByName(strings.ToLower(name)); ok && kind.IsList() {
		return kind
	}
	switch {
	case name == "DATE":
		return row.DateKind
	case strings.HasPrefix(name, "TIMESTAMP"), name == "DATETIME":
		return row.Timestamp
	case strings.HasPrefix(name, "BOOL"):
		return row.Bool
	case strings.HasPrefix(name, "JSON"): // "json text", too
		return row.JSONKind
	case name == "UUID":
		return row.UUIDKind
	case name == "BLOB", name == "BYTEA":
		return row.BytesKind
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

// HasNumericAffinity reports whether SQLite turns number-like texts into numbers, apart from
// integer and real affinity.
func HasNumericAffinity(typ string) bool {
	typ = strings.ToUpper(typ)
	for _, part := range [...]string{"INT", "CHAR", "CLOB", "TEXT", "BLOB", "REAL", "FLOA", "DOUB"} {
		if strings.Contains(typ, part) {
			return false
		}
	}
	return typ != ""
}

var declaredScale = regexp.MustCompile(`\(\s*\d+\s*,\s*(\d{1,3})\s*\)`)

// DeclaredScale returns the scale of decimal(12,2); false if none.
func DeclaredScale(typ string) (scale int, ok bool) {
	found := declaredScale.FindStringSubmatch(typ)
	if found == nil || DeclaredKind(typ) != row.DecimalKind {
		return 0, false
	}
	scale, err := strconv.Atoi(found[1])
	return scale, err == nil
}
