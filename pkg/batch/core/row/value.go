package row

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Kind is the type of a Value and of a schema's field.
type Kind uint8

// The kinds. Null is the kind of a missing value only, never of a field.
const (
	Null Kind = iota
	String
	Int
	Float
	DecimalKind
	Bool
	DateKind
	Timestamp
	JSONKind
	UUIDKind
	BytesKind
)

var kindNames = [...]string{Null: "null", String: "string", Int: "int", Float: "float", DecimalKind: "decimal", Bool: "bool", DateKind: "date", Timestamp: "timestamp", JSONKind: "json", UUIDKind: "uuid", BytesKind: "bytes"}

// String returns the name in a job file.
func (k Kind) String() string {
	if elem, ok := k.Elem(); ok {
		return listPrefix + kindNames[elem]
	}
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// KindByName returns the kind for a name in a job file.
func KindByName(name string) (Kind, bool) {
	if of, ok := strings.CutPrefix(name, listPrefix); ok {
		elem, _ := KindByName(of)
		return ListOf(elem), isSimple(elem)
	}
	for k := String; int(k) < len(kindNames); k++ {
		if kindNames[k] == name {
			return k, true
		}
	}
	return Null, false
}

// KindNames returns the names of all kinds that a field may have, except lists, in order.
func KindNames() []string { return append([]string(nil), kindNames[String:]...) }

// Value is one typed, possibly null value. The zero Value is null. It is 32 bytes and holds scalars
// without allocating. Equal compares values; == does too, except for decimals, where it distinguishes
// 1.5 from 1.50, and for JSON, where it compares texts.
type Value struct {
	kind  Kind
	scale uint16 // of a decimal
	num   uint64
	// text holds a string, JSON, uuid or list, the bytes, or the digits of a decimal that num cannot
	// hold.
	text string
}

// StringValue returns a string value.
func StringValue(s string) Value { return Value{kind: String, text: s} }

// IntValue returns an int value.
func IntValue(i int64) Value { return Value{kind: Int, num: uint64(i)} }

// FloatValue returns a float value. A negative zero becomes 0 (rule D7): some databases do not keep it,
// and == of two values compares bits.
func FloatValue(f float64) Value {
	if f == 0 {
		f = 0
	}
	return Value{kind: Float, num: math.Float64bits(f)}
}

// BoolValue returns a bool value.
func BoolValue(b bool) Value {
	if b {
		return Value{kind: Bool, num: 1}
	}
	return Value{kind: Bool}
}

// DateValue returns a date value.
func DateValue(d Date) Value { return Value{kind: DateKind, num: uint64(int64(d))} }

// TimestampValue returns a timestamp, in UTC and truncated to microseconds (D5).
func TimestampValue(t time.Time) Value { return Value{kind: Timestamp, num: uint64(t.UnixMicro())} }

// DecimalValue returns a decimal value, which keeps its scale.
func DecimalValue(d Decimal) Value {
	return Value{kind: DecimalKind, scale: d.scale, num: uint64(d.num), text: d.digits}
}

// JSONValue returns the value of a JSON text.
func JSONValue(j JSON) Value { return Value{kind: JSONKind, text: string(j)} }

// UUIDValue returns a uuid.
func UUIDValue(u UUID) Value { return Value{kind: UUIDKind, text: u.String()} }

// BytesValue returns a copy of b as a value.
func BytesValue(b []byte) Value { return Value{kind: BytesKind, text: string(b)} }

// BytesText returns the bytes of a text as a value.
func BytesText(b string) Value { return Value{kind: BytesKind, text: b} }

// Kind returns the value's kind; Null for a null.
func (v Value) Kind() Kind { return v.kind }

// IsNull reports whether the value is null.
func (v Value) IsNull() bool { return v.kind == Null }

// Str, Int, Float, Bool, Date, Time, Decimal, JSON, UUID and Bytes return the payload of a value
// of that kind, and the kind's zero value otherwise.
func (v Value) Str() string {
	if v.kind != String {
		return ""
	}
	return v.text
}

// Int returns the payload of an int.
func (v Value) Int() int64 {
	if v.kind != Int {
		return 0
	}
	return int64(v.num)
}

// Float returns the payload of a float.
func (v Value) Float() float64 {
	if v.kind != Float {
		return 0
	}
	return math.Float64frombits(v.num)
}

// Bool returns the payload of a bool.
func (v Value) Bool() bool { return v.kind == Bool && v.num != 0 }

// Date returns the payload of a date.
func (v Value) Date() Date {
	if v.kind != DateKind {
		return 0
	}
	return Date(int64(v.num))
}

// Time returns the payload of a timestamp, in UTC.
func (v Value) Time() time.Time {
	if v.kind != Timestamp {
		return time.Time{}
	}
	return time.UnixMicro(int64(v.num)).UTC()
}

// Decimal returns the payload of a decimal.
func (v Value) Decimal() Decimal {
	if v.kind != DecimalKind {
		return Decimal{}
	}
	return Decimal{digits: v.text, num: int64(v.num), scale: v.scale}
}

// JSON returns the payload of a JSON value.
func (v Value) JSON() JSON {
	if v.kind != JSONKind {
		return ""
	}
	return JSON(v.text)
}

// UUID returns the payload of a uuid.
func (v Value) UUID() UUID {
	if v.kind != UUIDKind {
		return UUID{}
	}
	return uuidOf(v.text)
}

// Bytes returns the payload of bytes, as a string of these bytes.
func (v Value) Bytes() string {
	if v.kind != BytesKind {
		return ""
	}
	return v.text
}

// Size returns the number of bytes that the value holds in addition to its own 32.
func (v Value) Size() int { return len(v.text) }

// Clone returns the value with a text of its own: a reader's text may be part of a larger one, which it
// keeps in memory.
func (v Value) Clone() Value {
	v.text = strings.Clone(v.text)
	return v
}

// Equal reports whether both are of one kind and the same value: 1.5 and 1.50 are, and
// {"a":1,"b":2} and {"b":2,"a":1.0}. A NaN equals itself.
func (v Value) Equal(w Value) bool {
	if v == w {
		return true
	}
	if v.kind != w.kind {
		return false
	}
	switch v.kind {
	case DecimalKind:
		return v.Decimal().Equal(w.Decimal())
	case JSONKind:
		return v.JSON().Equal(w.JSON())
	default:
		return v.kind.IsList() && canonicalList(v) == canonicalList(w)
	}
}

// Canonical returns the value that maps equal values to one map key: a decimal without trailing zeros,
// also in a list, JSON in its canonical text, any other value unchanged.
func (v Value) Canonical() Value {
	switch v.kind {
	case DecimalKind:
		return DecimalValue(v.Decimal().Reduce())
	case JSONKind:
		return JSONValue(v.JSON().Canonical())
	default:
		return canonicalList(v)
	}
}

// Any returns nil, string, int64, float64, bool, Date, time.Time, Decimal, JSON, UUID or []byte; for a
// list a slice of one of them, or a slice of pointers if an element is null. It boxes: hot paths switch
// on Kind instead.
func (v Value) Any() any {
	switch v.kind {
	case Null:
		return nil
	case String:
		return v.text
	case Int:
		return v.Int()
	case Float:
		return v.Float()
	case Bool:
		return v.Bool()
	case DateKind:
		return v.Date()
	case Timestamp:
		return v.Time()
	case DecimalKind:
		return v.Decimal()
	case JSONKind:
		return v.JSON()
	case UUIDKind:
		return v.UUID()
	case BytesKind:
		return []byte(v.text)
	}
	return anyList(v)
}

// ValueOf is the inverse of Any; it also takes int, int32 and float32.
func ValueOf(x any) (Value, error) {
	switch x := x.(type) {
	case nil:
		return Value{}, nil
	case string:
		return StringValue(x), nil
	case []byte:
		return BytesValue(x), nil
	case JSON:
		return JSONValue(x), nil
	case UUID:
		return UUIDValue(x), nil
	case int64:
		return IntValue(x), nil
	case int:
		return IntValue(int64(x)), nil
	case int32:
		return IntValue(int64(x)), nil
	case float64:
		return FloatValue(x), nil
	case float32:
		return FloatValue(Real(x)), nil
	case bool:
		return BoolValue(x), nil
	case Date:
		return DateValue(x), nil
	case time.Time:
		return TimestampValue(x), nil
	case Decimal:
		return DecimalValue(x), nil
	case Value:
		return x, nil
	}
	if v, is, err := listOfAny(x); is {
		return v, err
	}
	return Value{}, fmt.Errorf("a %T is not a row value (allowed: %s, lists, null)", x, strings.Join(KindNames(), ", "))
}

// AppendText appends the value's canonical text: the form in parameters, CSV, JSON and text columns
// (rule D7). A null appends nothing.
func (v Value) AppendText(dst []byte) []byte {
	switch v.kind {
	case Null:
		return dst
	case String, JSONKind, UUIDKind:
		return append(dst, v.text...)
	case Int:
		return strconv.AppendInt(dst, v.Int(), 10)
	case Float:
		return appendFloat(dst, v.Float())
	case Bool:
		return strconv.AppendBool(dst, v.Bool())
	case DateKind:
		return v.Date().Append(dst)
	case Timestamp:
		return appendTimestamp(dst, int64(v.num))
	case DecimalKind:
		return v.Decimal().AppendText(dst)
	case BytesKind:
		return base64.StdEncoding.AppendEncode(dst, []byte(v.text))
	}
	return append(dst, v.text...) // a list
}

// TimestampLayout is the canonical text of a timestamp: UTC, microseconds.
const TimestampLayout = "2006-01-02T15:04:05.999999Z07:00"

// String returns the canonical text, "null" for a null.
func (v Value) String() string {
	switch v.kind {
	case Null:
		return "null"
	case String, JSONKind, UUIDKind:
		return v.text
	default:
		if v.kind.IsList() {
			return v.text
		}
		return string(v.AppendText(nil))
	}
}
