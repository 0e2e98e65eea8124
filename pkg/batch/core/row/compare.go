package row

import (
	"cmp"
	"encoding/binary"
	"strings"
)

// Equal compares values of one kind: 1.5 and 1.50, {"a":1,"b":2} and {"b":2,"a":1.0}. A NaN equals itself.
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

// Canonical maps equal values to one map key.
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

func canonicalList(v Value) Value {
	if v.kind != ListOf(DecimalKind) {
		return v
	}
	elements := v.Elements()
	for i := range elements {
		elements[i] = elements[i].Canonical()
	}
	list, err := ListValue(DecimalKind, elements)
	if err != nil {
		return v
	}
	return list
}

// Compare orders values of one kind: null first, false before true, texts, uuids and bytes by bytes. JSON and
// lists have a meaningless order.
func Compare(a, b Value) int {
	if a.IsNull() || b.IsNull() {
		return cmp.Compare(bit(!a.IsNull()), bit(!b.IsNull()))
	}
	switch a.kind {
	case Int:
		return cmp.Compare(a.Int(), b.Int())
	case Float:
		return cmp.Compare(a.Float(), b.Float())
	case DecimalKind:
		return a.Decimal().Cmp(b.Decimal())
	case Bool:
		return cmp.Compare(bit(a.Bool()), bit(b.Bool()))
	case DateKind:
		return cmp.Compare(a.Date(), b.Date())
	case Timestamp:
		return a.Time().Compare(b.Time())
	case ListOf(DecimalKind):
		return strings.Compare(canonicalList(a).text, canonicalList(b).text)
	case JSONKind:
		return strings.Compare(string(a.JSON().Canonical()), string(b.JSON().Canonical()))
	case String, UUIDKind, BytesKind, Null:
	}
	return strings.Compare(a.text, b.text)
}

func bit(is bool) int {
	if is {
		return 1
	}
	return 0
}

// AppendKey appends a map key, equal for equal values only, also in sequence. Not for storage.
func AppendKey(dst []byte, v Value) []byte {
	v = v.Canonical()
	dst = append(dst, byte(v.kind))
	at := len(dst)
	dst = v.AppendText(append(dst, 0, 0, 0, 0))
	binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4)) //nolint:gosec // a value is shorter than 4 GB
	return dst
}
