package row

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ArrayText returns the text of a list as PostgreSQL writes arrays; text is the text of an
// element.
func ArrayText(v Value, text func(element Value) string) string {
	dst := []byte{'{'}
	for i, e := range v.Elements() {
		if i > 0 {
			dst = append(dst, ',')
		}
		switch e.kind {
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

// cutArray cuts an array as PostgreSQL writes it into the texts of its elements.
func cutArray(text string) ([]string, error) {
	var elements []string
	for rest := text[1 : len(text)-1]; rest != ""; {
		element, length, err := cutElement(rest)
		if err != nil {
			return nil, err
		}
		elements = append(elements, element)
		if length == len(rest) {
			break
		}
		if rest = rest[length+1:]; rest == "" {
			return nil, errors.New("an element is missing behind the last comma")
		}
	}
	return elements, nil
}

// cutElement returns the first element of the rest of an array, and the length of its text.
func cutElement(rest string) (element string, length int, err error) {
	if rest[0] != '"' {
		if length = strings.IndexByte(rest, ','); length < 0 {
			length = len(rest)
		}
		element = rest[:length]
		switch {
		case strings.ContainsAny(element, "{}"):
			return "", 0, errors.New("a list has no list in it; say json, and to_jsonb(x) in the query")
		case strings.EqualFold(element, "null"):
			return "", 0, errors.New("a list has no null in it; write array_remove(x, null) in the query, or to_jsonb(x) and say json")
		}
		return element, length, nil
	}
	var b strings.Builder
	for length = 1; length < len(rest) && rest[length] != '"'; length++ {
		if rest[length] == '\\' && length+1 < len(rest) {
			length++
		}
		b.WriteByte(rest[length])
	}
	if length++; length > len(rest) {
		return "", 0, errors.New("a quote is not closed")
	}
	if length < len(rest) && rest[length] != ',' {
		return "", 0, fmt.Errorf("a comma is missing behind element %s", strconv.Quote(b.String()))
	}
	return b.String(), length, nil
}
