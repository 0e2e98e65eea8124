package row

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/internal/jsontext"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// ParseArray reads a JSON array strictly: each element has its kind's JSON type, or null. With Coerce,
// elements are converted.
func (f *Field) ParseArray(doc []byte) (Value, error) { return f.lists().parseArray(doc) }

// AppendArray appends a JSON array in the field's format.
func (f *Field) AppendArray(dst []byte, v Value) []byte { return f.lists().appendArray(dst, v) }

type lists struct{ field, element *Field }

func (f *Field) lists() lists {
	if f.elem != nil {
		return lists{f, f.elem}
	}
	kind, _ := f.Kind.Elem()
	return lists{f, &Field{Name: f.Name, Kind: kind, Nullable: true, Hidden: f.Hidden, Nulls: []string{}}}
}

func (l lists) at(i int) *Field {
	e := *l.element
	e.Name = fmt.Sprintf("%s[%d]", l.field.Name, i)
	return &e
}

// By the separator if set, else a JSON array or PostgreSQL's form.
func (l lists) parse(text string) (Value, error) {
	text = strings.TrimSpace(text)
	isJSON := strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]")
	if l.field.Separator != "" {
		if isJSON {
			if v, err := l.parseArray([]byte(text)); err == nil {
				return v, nil
			}
		}
		return parseAll(l, strings.Split(text, l.field.Separator), (*Field).Parse)
	}
	switch {
	case isJSON:
		return l.parseArray([]byte(text))
	case isArrayText(text):
		return l.parseArrayText(text)
	}
	return Value{}, l.field.misfit(text, `expected a JSON array such as [1, 2]; for a;b set separator: ";"`)
}

func parseAll[T string | json.RawMessage](l lists, texts []T, parse func(element *Field, text string) (Value, error)) (Value, error) {
	elements := make([]Value, len(texts))
	for i, text := range texts {
		var err error
		if elements[i], err = parse(l.element, string(text)); err != nil {
			_, err = parse(l.at(i), string(text))
			return Value{}, err
		}
	}
	return l.value(elements)
}

func (l lists) value(elements []Value) (Value, error) {
	v, err := ListValue(l.element.Kind, elements)
	if err != nil {
		return Value{}, exception.InvalidItem("", exception.ClassParse, FieldError(l.field.Name, err))
	}
	return v, nil
}

func (l lists) parseArray(doc []byte) (Value, error) {
	var scan jsontext.Scanner
	if err := scan.Valid(doc); err != nil {
		return Value{}, l.field.misfit(string(doc), err.Error())
	}
	var raws []json.RawMessage
	if err := json.Unmarshal(doc, &raws); err != nil {
		return Value{}, l.field.misfit(string(doc), "expected a JSON array such as [1, 2]")
	}
	return parseAll(l, raws, (*Field).parseElement)
}

func (f *Field) parseElement(raw string) (Value, error) {
	isText := raw[0] == '"'
	isNumber := raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9'
	fits := isText
	switch {
	case raw == "null":
		return Value{}, nil
	case raw[0] == '{':
		return Value{}, f.misfitJSON(raw, "a list has simple values: use type json for an array of objects, or `explode` to make items of it")
	case raw[0] == '[':
		return Value{}, f.misfitJSON(raw, "lists of lists are not supported: use type json")
	case f.Coerce != CoerceError:
		fits = true
	case f.Kind == Int || f.Kind == Float || f.Counts():
		fits = isNumber
	case f.Kind == DecimalKind:
		fits = isNumber || isText
	case f.Kind == Bool:
		fits = raw == "true" || raw == "false"
	}
	switch {
	case !fits && isText:
		return Value{}, f.misfitJSON(raw, "it is a text; coerce: convert accepts it")
	case !fits:
		return Value{}, f.misfitJSON(raw, "coerce: convert accepts other forms")
	case !isText && (f.DecimalSeparator != "" || f.ThousandsSeparator != ""):
		plain := *f
		plain.DecimalSeparator, plain.ThousandsSeparator = "", ""
		return plain.Parse(raw)
	case !isText:
		return f.Parse(raw)
	}
	text, err := jsontext.Unquote([]byte(raw))
	if err != nil {
		return Value{}, f.misfitJSON(raw, err.Error())
	}
	return f.Parse(text)
}

func (f *Field) misfitJSON(raw, why string) error {
	return exception.InvalidItem("", exception.ClassParse,
		fmt.Errorf("field %s: %s is not %s (%s)", f.Name, f.Quoted(jsontext.Shorten([]byte(raw))), article(f.Kind), why))
}

// As a JSON array if separators could not be read again.
func (l lists) append(dst []byte, v Value) []byte {
	if l.field.Separator == "" {
		return l.appendArray(dst, v)
	}
	begin, e := len(dst), l.element
	elements := v.Elements()
	for i, element := range elements {
		if i > 0 {
			dst = append(dst, l.field.Separator...)
		}
		text := string(e.AppendText(nil, element))
		if element.IsNull() || text == "" || strings.Contains(text, l.field.Separator) || strings.HasPrefix(text, "[") || strings.TrimSpace(text) != text {
			return l.appendArray(dst[:begin], v)
		}
		dst = append(dst, text...)
	}
	if len(elements) == 0 || l.field.IsNull(string(dst[begin:])) {
		return l.appendArray(dst[:begin], v)
	}
	return dst
}

func (l lists) appendArray(dst []byte, v Value) []byte {
	e := l.element
	if e.Format == "" {
		return append(dst, v.text...)
	}
	dst = append(dst, '[')
	for i, element := range v.Elements() {
		if i > 0 {
			dst = append(dst, ',')
		}
		switch text := string(e.AppendText(nil, element)); {
		case element.IsNull():
			dst = append(dst, "null"...)
		case e.Counts():
			dst = append(dst, text...)
		default:
			dst = appendQuoted(dst, text)
		}
	}
	return append(dst, ']')
}
