package row

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/fault"
	"github.com/surfin-batch/surfin/internal/jsontext"
)

// ListValue makes a list of elem or nulls. NaN, an infinity, a text not UTF-8, a year beyond 9999 is an error.
func ListValue(elem Kind, elements []Value) (Value, error) {
	text := []byte{'['}
	for i, e := range elements {
		if e.kind != elem && e.kind != Null {
			return Value{}, &ElementError{i, fmt.Errorf("%s in a %s", article(e.kind), ListOf(elem))}
		}
		if err := e.hasText(); err != nil {
			return Value{}, &ElementError{i, err}
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = appendElement(text, e)
	}
	return Value{kind: ListOf(elem), text: string(append(text, ']'))}, nil
}

// ElementError is in a list's element.
type ElementError struct {
	// Index is from 0.
	Index int
	Err   error
}

// Error returns the reason with the number of the element.
func (e *ElementError) Error() string { return fmt.Sprintf("element %d: %v", e.Index, e.Err) }

// Unwrap returns Err.
func (e *ElementError) Unwrap() error { return e.Err }

// FieldError adds the field, and an [ElementError]'s number: "field tags[3]: ...".
func FieldError(field string, err error) error {
	var of *ElementError
	if errors.As(err, &of) {
		return fault.At(fault.Place{Field: field}, fmt.Errorf("field %s[%d]: %w", field, of.Index, of.Err))
	}
	return fault.Named(field, "%w", err)
}

// It could not be read again.
func (v Value) hasText() error {
	const maxYear = 9999
	year := 0
	switch v.kind {
	case Float:
		return v.Finite()
	case String:
		if !utf8.ValidString(v.text) {
			return errors.New("the text is not UTF-8")
		}
	case DateKind:
		year = v.Date().Year()
	case Timestamp:
		year = v.Time().Year()
	default:
	}
	if year < 0 || year > maxYear {
		return fmt.Errorf("year %d is outside 0 to %d", year, maxYear)
	}
	return nil
}

func appendElement(dst []byte, e Value) []byte {
	switch e.kind {
	case Null:
		return append(dst, "null"...)
	case Int, Float, DecimalKind, Bool:
		return e.AppendText(dst)
	default:
		return appendQuoted(dst, e.String())
	}
}

// Only mandatory escapes: the text of a list is its value.
func appendQuoted(dst []byte, text string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := range len(text) {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, text[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(dst, text[from:]...), '"')
}

// Len is a list's; else 0.
func (v Value) Len() int {
	n := 0
	v.each(func(string) bool { n++; return true })
	return n
}

// Element i is from 0, or the end with -1; null if none.
func (v Value) Element(i int64) Value {
	if i < 0 {
		i += int64(v.Len())
	}
	var found Value
	if i < 0 {
		return found
	}
	v.each(func(raw string) bool {
		if i == 0 {
			found = v.element(raw)
		}
		i--
		return i >= 0
	})
	return found
}

// Elements include nulls; nil for other values.
func (v Value) Elements() []Value {
	if !v.kind.IsList() {
		return nil
	}
	elements := []Value{}
	v.each(func(raw string) bool {
		elements = append(elements, v.element(raw))
		return true
	})
	return elements
}

func (v Value) element(raw string) Value {
	elem, _ := v.kind.Elem()
	e, err := parseElement(elem, raw)
	if err != nil {
		panic(fmt.Sprintf("core: element %s of a %s: %v", raw, v.kind, err))
	}
	return e
}

func parseElement(kind Kind, raw string) (Value, error) {
	if raw == "null" {
		return Value{}, nil
	}
	text := raw
	if raw[0] == '"' {
		var err error
		if text, err = jsontext.Unquote([]byte(raw)); err != nil {
			return Value{}, err
		}
	}
	switch kind {
	case String, UUIDKind:
		return Value{kind: kind, text: text}, nil
	case Int:
		i, err := strconv.ParseInt(text, 10, 64)
		return IntValue(i), err
	case Float:
		x, err := ParseFloat(text)
		return FloatValue(x), err
	case DecimalKind:
		d, err := ParseDecimal(text)
		return DecimalValue(d), err
	case Bool:
		return BoolValue(text == "true"), nil
	case DateKind:
		d, err := ParseDate(text)
		return DateValue(d), err
	default:
		micros, _, ok := parseISOTime(text)
		if !ok {
			return Value{}, errors.New("it is not a timestamp")
		}
		return TimestampValue(time.UnixMicro(micros)), nil
	}
}

func (v Value) each(f func(raw string) bool) {
	if !v.kind.IsList() {
		return
	}
	for rest := v.text[1 : len(v.text)-1]; rest != ""; {
		end := 0
		if rest[0] == '"' {
			for end = 1; rest[end] != '"'; end++ {
				if rest[end] == '\\' {
					end++
				}
			}
			end++
		} else if end = strings.IndexByte(rest, ','); end < 0 {
			end = len(rest)
		}
		if !f(rest[:end]) || end == len(rest) {
			return
		}
		rest = rest[end+1:]
	}
}
