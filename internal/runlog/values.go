package runlog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"unicode/utf8"
)

// maxValue and maxValues bound the attributes of a line.
const (
	maxValue  = 8 << 10
	maxValues = 100
)

// values encodes attributes as a JSON object.
type values struct {
	mask func(string) string
	buf  bytes.Buffer
	n    int
}

func newValues(mask func(string) string) *values { return &values{mask: mask} }

func (v *values) add(a slog.Attr) {
	value := a.Value.Resolve()
	if value.Kind() == slog.KindGroup && a.Key == "" {
		for _, inner := range value.Group() {
			v.add(inner)
		}
		return
	}
	if v.n++; a.Key == "" || v.n > maxValues {
		return
	}
	v.separate()
	v.buf.Write(quoted(a.Key))
	v.buf.WriteByte(':')
	v.buf.Write(v.encode(value))
}

func (v *values) separate() {
	if v.buf.Len() == 0 {
		v.buf.WriteByte('{')
		return
	}
	v.buf.WriteByte(',')
}

func (v *values) encode(value slog.Value) []byte {
	switch value.Kind() {
	case slog.KindGroup:
		inner := newValues(v.mask)
		for _, a := range value.Group() {
			inner.add(a)
		}
		if inner.buf.Len() == 0 {
			return []byte("{}")
		}
		return []byte(inner.text())
	case slog.KindBool, slog.KindInt64, slog.KindUint64, slog.KindFloat64, slog.KindTime:
		if text, err := json.Marshal(value.Any()); err == nil {
			return text
		}
	case slog.KindAny:
		switch value.Any().(type) {
		case error, fmt.Stringer:
		default:
			text, err := json.Marshal(value.Any())
			if masked := v.mask(string(text)); err == nil && len(masked) <= maxValue && json.Valid([]byte(masked)) {
				return []byte(masked)
			}
		}
	case slog.KindString, slog.KindDuration, slog.KindLogValuer:
	}
	return quoted(cut(v.mask(value.String()), maxValue))
}

func quoted(text string) []byte {
	b, err := json.Marshal(text)
	if err != nil { // cannot happen
		return []byte(`""`)
	}
	return b
}

func (v *values) text() string {
	if v.buf.Len() == 0 {
		return ""
	}
	return v.buf.String() + "}"
}

// cut shortens a text, which is masked.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
