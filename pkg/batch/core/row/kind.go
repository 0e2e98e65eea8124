package row

import (
	"slices"
	"strconv"
	"strings"
)

// Kind is the type of a Value and of a schema's field.
type Kind uint8

// Null is a missing value's, never a field's.
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

// String is the job file's name.
func (k Kind) String() string {
	if elem, ok := k.Elem(); ok {
		return listPrefix + kindNames[elem]
	}
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// KindByName is String's inverse.
func KindByName(name string) (Kind, bool) {
	if of, ok := strings.CutPrefix(name, listPrefix); ok {
		elem, _ := KindByName(of)
		return ListOf(elem), isSimple(elem)
	}
	k := max(slices.Index(kindNames[:], name), 0)
	return Kind(k), k > 0
}

// KindNames are a field's kinds without lists, in order.
func KindNames() []string { return append([]string(nil), kindNames[String:]...) }

// listBit; the rest is the elements' kind.
const listBit = 0x20

const listPrefix = "list of "

// ListOf lists elem; not of lists, json or bytes.
func ListOf(elem Kind) Kind { return elem | listBit }

// Elem is a list's element kind; else k, false.
func (k Kind) Elem() (Kind, bool) { return k &^ listBit, k.IsList() }

// IsList reports whether the kind is a list.
func (k Kind) IsList() bool { return k&listBit != 0 && isSimple(k&^listBit) }

func isSimple(k Kind) bool {
	switch k {
	case String, Int, Float, DecimalKind, Bool, DateKind, Timestamp, UUIDKind:
		return true
	default:
		return false
	}
}

func article(k Kind) string {
	switch k {
	case Int:
		return "an int"
	case JSONKind, BytesKind:
		return k.String()
	default:
		return "a " + k.String()
	}
}

func quoteShort(text string) string {
	const maxLen = 60
	if len(text) > maxLen {
		text = text[:maxLen] + "…"
	}
	return strconv.Quote(text)
}
