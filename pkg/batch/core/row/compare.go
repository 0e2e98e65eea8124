package row

import (
	"cmp"
	"strings"
)

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
