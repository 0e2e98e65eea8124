package row

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// ArrayText is a list in PostgreSQL's array form.
func ArrayText(v Value, text func(element Value) string) string {
	dst := []byte{'{'}
	for i, e := range v.Elements() {
		if i > 0 {
			dst = append(dst, ',')
		}
		switch e.kind {
		case Null:
			dst = append(dst, "NULL"...)
		case Int, Float, DecimalKind, Bool:
			dst = e.AppendText(dst)
		default:
			dst = append(dst, '"')
			for _, c := range []byte(text(e)) {
				if c == '"' || c == '\\' {
					dst = append(dst, '\\')
				}
				dst = append(dst, c)
			}
			dst = append(dst, '"')
		}
	}
	return string(append(dst, '}'))
}

var arrayBounds = regexp.MustCompile(`^\[-?\d+:-?\d+\]=`)

func isArrayText(text string) bool {
	return strings.HasSuffix(text, "}") && (strings.HasPrefix(text, "{") || arrayBounds.MatchString(text))
}

// nil for a null.
func cutElement(rest string) (element *string, length int, err error) {
	if rest[0] != '"' {
		if length = strings.IndexByte(rest, ','); length < 0 {
			length = len(rest)
		}
		text := rest[:length]
		switch {
		case strings.ContainsAny(text, "{}"):
			return nil, 0, errors.New("it has several dimensions, but lists of lists are not supported: use type json, with to_jsonb(x) in a query")
		case strings.EqualFold(text, "null"):
			return nil, length, nil
		case text == "":
			return nil, 0, errors.New("an element is missing before a comma")
		}
		return &text, length, nil
	}
	var b strings.Builder
	for length = 1; length < len(rest) && rest[length] != '"'; length++ {
		if rest[length] == '\\' && length+1 < len(rest) {
			length++
		}
		b.WriteByte(rest[length])
	}
	if length++; length > len(rest) {
		return nil, 0, errors.New("a quote is not closed")
	}
	text := b.String()
	if length < len(rest) && rest[length] != ',' {
		return nil, 0, fmt.Errorf("a comma is missing after element %s", strconv.Quote(text))
	}
	return &text, length, nil
}

func (l lists) parseArrayText(text string) (Value, error) {
	var elements []Value
	e := l.element
	text = strings.TrimPrefix(text, arrayBounds.FindString(text))
	for rest := text[1 : len(text)-1]; rest != ""; {
		part, length, err := cutElement(rest)
		if err == nil && length < len(rest) && length+1 == len(rest) {
			err = errors.New("an element is missing after the last comma")
		}
		if err != nil {
			return Value{}, l.field.misfit(text, err.Error())
		}
		v := Value{}
		if part != nil {
			if *part == "t" && e.Kind == Bool {
				*part = "true"
			} else if *part == "f" && e.Kind == Bool {
				*part = "false"
			}
			if v, err = e.Parse(*part); err != nil {
				_, err = l.at(len(elements)).Parse(*part)
				return Value{}, err
			}
		}
		elements = append(elements, v)
		rest = rest[min(length+1, len(rest)):]
	}
	return l.value(elements)
}
