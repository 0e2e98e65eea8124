package item

import (
	"encoding/json"
	"strconv"
)

// Position is the position of a stream: small JSON, opaque to the engine, nil at the start. It is
// stored with every committed chunk (at most 8 KB, rule D4).
type Position []byte

// JSON returns the position as a JSON value, null if there is none.
func (p Position) JSON() json.RawMessage {
	if len(p) == 0 {
		return json.RawMessage("null")
	}
	return json.RawMessage(p)
}

// Meta is the origin of an item: `meta.line`, `meta.path`, `meta.index` and `meta.row` of expressions.
type Meta struct {
	// Path is the file or table read; empty if unknown.
	Path string
	// Line is the 1-based line (files) or ordinal (queries) of the item; 0 if unknown.
	Line int64
	// Index is the 1-based number of the array element that is or contains the item; 0 if the source is
	// not an array.
	Index int64
	// Row is the 1-based number of the item among those made from one element or line; 0 if each makes
	// one.
	Row int64
}

// String returns "path:line, element INDEX, row ROW", or the known parts of it.
func (m Meta) String() string {
	place := m.Path
	if m.Line != 0 {
		if place += ":"; m.Path == "" {
			place = "line "
		}
		place += strconv.FormatInt(m.Line, 10)
	}
	for _, of := range []struct {
		name   string
		number int64
	}{{"element ", m.Index}, {"row ", m.Row}} {
		if of.number == 0 {
			continue
		}
		if place != "" {
			place += ", "
		}
		place += of.name + strconv.FormatInt(of.number, 10)
	}
	return place
}
