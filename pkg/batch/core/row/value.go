package row

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Value is a typed, possibly null value of 32 bytes, scalars without allocation; zero is null. Compare with
// Equal: == distinguishes decimals 1.5 and 1.50, and JSON texts.
type Value struct {
	kind  Kind
	scale uint16
	num   uint64
	// text is a string, JSON, uuid or list, bytes, or digits that num cannot hold.
	text string
}

// StringValue returns a string value.
func StringValue(s string) Value { return Value{kind: String, text: s} }

// IntValue returns an int value.
func IntValue(i int64) Value { return Value{kind: Int, num: uint64(i)} }

// FloatValue makes -0 0 (rule D7): some databases do not keep it, and == compares bits.
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

// TimestampValue is in UTC, truncated to microseconds (D5).
func TimestampValue(t time.Time) Value { return Value{kind: Timestamp, num: uint64(t.UnixMicro())} }

// DecimalValue keeps the scale.
func DecimalValue(d Decimal) Value {
	return Value{kind: DecimalKind, scale: d.scale, num: uint64(d.num), text: d.digits}
}

// JSONValue returns the value of a JSON text.
func JSONValue(j JSON) Value { return Value{kind: JSONKind, text: string(j)} }

// UUIDValue returns a uuid.
func UUIDValue(u UUID) Value { return Value{kind: UUIDKind, text: u.String()} }

// BytesValue copies b.
func BytesValue(b []byte) Value { return Value{kind: BytesKind, text: string(b)} }

// BytesText is bytes from a text.
func BytesText(b string) Value { return Value{kind: BytesKind, text: b} }

// Kind returns the value's kind; Null for a null.
func (v Value) Kind() Kind { return v.kind }

// IsNull reports whether the value is null.
func (v Value) IsNull() bool { return v.kind == Null }

// Str returns, like Int and so on, the payload of that kind, else zero.
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

// Size is the bytes in addition to its own 32.
func (v Value) Size() int { return len(v.text) }

// Clone owns its text: a reader's may be part of a larger one, kept in memory.
func (v Value) Clone() Value {
	v.text = strings.Clone(v.text)
	return v
}

// Finite reports NaN and infinities, which have no text.
func (v Value) Finite() error {
	if v.kind != Float {
		return nil
	}
	if x := v.Float(); x-x != 0 {
		return fmt.Errorf("%v is not a finite number", x)
	}
	return nil
}

// AppendText appends the canonical text (rule D7); nothing for a null.
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
	return append(dst, v.text...)
}

// String is the canonical text, or "null".
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

// TimestampLayout is UTC, microseconds.
const TimestampLayout = "2006-01-02T15:04:05.999999Z07:00"
