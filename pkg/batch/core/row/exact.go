package row

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/internal/jsontext"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// Returns reports whether v, read from text, is written the same. A timestamp's offset is not kept, but counts
// if the instant returns; blanks around do not, except in a string.
func (f *Field) Returns(text string, v Value) bool {
	var room [64]byte
	if string(f.AppendText(room[:0], v)) == text {
		return true
	}
	switch {
	case v.kind == Timestamp:
		return f.times().returns(text)
	case v.kind == ListOf(Timestamp) && f.Separator == "" && !strings.ContainsAny(text, " \t\r\n"):
		return f.lists().returns([]byte(text), v)
	}
	return false
}

// ReturnsJSON is Returns for JSON; escapes and blanks do not count.
func (f *Field) ReturnsJSON(raw []byte, v Value) bool {
	switch {
	case f.Kind == JSONKind:
		return true
	case f.Kind.IsList() && raw[0] == '[':
		return f.lists().returns(raw, v)
	case raw[0] == '"':
		text, err := jsontext.Unquote(raw)
		return err == nil && !f.writesBare() && (f.Kind == String || f.Returns(text, v))
	case f.Kind == String:
		return (raw[0] == '{' || raw[0] == '[') && v.text == string(raw)
	case f.Kind == DateKind || f.Kind == Timestamp:
		return f.Counts() && f.Returns(string(raw), v)
	}
	return bytes.Equal(v.AppendText(nil), raw)
}

func (f *Field) writesBare() bool {
	return f.Kind == Int || f.Kind == Float || f.Kind == DecimalKind || f.Kind == Bool || f.Counts()
}

func (f *Field) exactly(text string, v Value) (Value, error) {
	if f.Returns(text, v) {
		return v, nil
	}
	return Value{}, f.inexact(quoteShort(text), v)
}

// ExactJSON returns v unless Exact and not the same JSON: then an invalid item.
func (f *Field) ExactJSON(raw []byte, v Value) (Value, error) {
	if !f.Exact || v.IsNull() || f.ReturnsJSON(raw, v) {
		return v, nil
	}
	return Value{}, f.inexact(jsontext.Shorten(raw), v)
}

func (f *Field) inexact(shown string, v Value) error {
	if f.Hidden {
		return exception.InvalidItem("", exception.ClassParse, fmt.Errorf("field %s: the value would not be written as the same text (exact: true)", f.Name))
	}
	return exception.InvalidItem("", exception.ClassParse, fmt.Errorf("field %s: %s would become %s as %s (exact: true): string keeps the text",
		f.Name, shown, quoteShort(string(f.AppendText(nil, v))), article(f.Kind)))
}

// With an offset, and nothing finer than a microsecond.
func (f times) returns(text string) bool {
	if strings.TrimSpace(text) != text || f.epoch != 0 {
		return false
	}
	if f.layout != "" && !strings.Contains(f.layout, "Z07") || f.layout == "" && !hasOffset(text) {
		return false
	}
	point := strings.IndexByte(text, '.')
	if f.layout != "" && !strings.Contains(f.layout, ".0") || point < 0 {
		return point < 0
	}
	digits := text[point+1:]
	if end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		digits = digits[:end]
	}
	const microseconds = 6
	return len(strings.TrimRight(digits, "0")) <= microseconds
}

func hasOffset(text string) bool {
	return strings.HasSuffix(text, "Z") || strings.LastIndexAny(text, "+-") >= len("2006-01-02T15:04")
}

func (l lists) returns(doc []byte, v Value) bool {
	var raws []json.RawMessage
	elements, e := v.Elements(), l.element
	if err := json.Unmarshal(doc, &raws); err != nil || len(raws) != len(elements) {
		return false
	}
	for i, raw := range raws {
		if isNull := string(raw) == "null"; isNull || elements[i].IsNull() {
			if isNull != elements[i].IsNull() {
				return false
			}
		} else if !e.ReturnsJSON(raw, elements[i]) {
			return false
		}
	}
	return true
}
