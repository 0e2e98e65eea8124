package row

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/internal/jsontext"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

func (f *Field) element() *Field {
	if f.elem != nil {
		return f.elem
	}
	kind, _ := f.Kind.Elem()
	return &Field{Name: f.Name, Kind: kind, Nullable: true, Hidden: f.Hidden, Nulls: []string{}}
}

func (f *Field) elementAt(i int) *Field {
	e := *f.element()
	e.Name = fmt.Sprintf("%s[%d]", f.Name, i)
	return &e
}

func (f *Field) setElement() error {
	kind, ok := f.Kind.Elem()
	if !ok {
		if f.Separator != "" {
			return fmt.Errorf("field %q: a separator is for lists, not for %s: write type: list of string, or omit it", f.Name, f.Kind)
		}
		return nil
	}
	e := Field{
		Name: f.Name, Kind: kind, Nullable: true, Format: f.Format, Scale: f.Scale, Zone: f.Zone, Hidden: f.Hidden, Nulls: []string{},
		Trues: f.Trues, Falses: f.Falses, DecimalSeparator: f.DecimalSeparator, ThousandsSeparator: f.ThousandsSeparator, TrailingMinus: f.TrailingMinus,
	}
	if f.Coerce != CoerceError {
		e.Coerce = CoerceConvert
	}
	if f.Separator != "" && (f.Separator == f.DecimalSeparator || f.Separator == f.ThousandsSeparator) {
		return fmt.Errorf("field %q: the list and its numbers have the same separator: %q", f.Name, f.Separator)
	}
	schema, err := NewSchema(e)
	if err == nil {
		f.elem = schema.Field(0)
	}
	return err
}

// By the separator if set, else a JSON array or PostgreSQL's form.
func (f *Field) parseList(text string) (Value, error) {
	text = strings.TrimSpace(text)
	isJSON := strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]")
	if f.Separator != "" {
		if isJSON {
			if v, err := f.ParseArray([]byte(text)); err == nil {
				return v, nil
			}
		}
		return f.listOf(strings.Split(text, f.Separator))
	}
	switch {
	case isJSON:
		return f.ParseArray([]byte(text))
	case isArrayText(text):
		return f.parseArrayText(text)
	}
	return Value{}, f.misfit(text, `expected a JSON array such as [1, 2]; for a;b set separator: ";"`)
}

func (f *Field) listOf(texts []string) (Value, error) {
	e := f.element()
	elements := make([]Value, len(texts))
	for i, text := range texts {
		var err error
		if elements[i], err = e.Parse(text); err != nil {
			_, err = f.elementAt(i).Parse(text)
			return Value{}, err
		}
	}
	return f.list(elements)
}

func (f *Field) list(elements []Value) (Value, error) {
	v, err := ListValue(f.element().Kind, elements)
	if err != nil {
		return Value{}, exception.InvalidItem("", exception.ClassParse, FieldError(f.Name, err))
	}
	return v, nil
}

// ParseArray reads a JSON array strictly: each element has its kind's JSON type, or null. With Coerce,
// elements are converted.
func (f *Field) ParseArray(doc []byte) (Value, error) {
	var scan jsontext.Scanner
	if err := scan.Valid(doc); err != nil {
		return Value{}, f.misfit(string(doc), err.Error())
	}
	var raws []json.RawMessage
	if err := json.Unmarshal(doc, &raws); err != nil {
		return Value{}, f.misfit(string(doc), "expected a JSON array such as [1, 2]")
	}
	e := f.element()
	elements := make([]Value, len(raws))
	for i, raw := range raws {
		var err error
		if elements[i], err = e.parseElement(string(raw)); err != nil {
			_, err = f.elementAt(i).parseElement(string(raw))
			return Value{}, err
		}
	}
	return f.list(elements)
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
func (f *Field) appendList(dst []byte, v Value) []byte {
	if f.Separator == "" {
		return f.AppendArray(dst, v)
	}
	begin, e := len(dst), f.element()
	elements := v.Elements()
	for i, element := range elements {
		if i > 0 {
			dst = append(dst, f.Separator...)
		}
		text := string(e.AppendText(nil, element))
		if element.IsNull() || text == "" || strings.Contains(text, f.Separator) || strings.HasPrefix(text, "[") || strings.TrimSpace(text) != text {
			return f.AppendArray(dst[:begin], v)
		}
		dst = append(dst, text...)
	}
	if len(elements) == 0 || f.isNull(string(dst[begin:])) {
		return f.AppendArray(dst[:begin], v)
	}
	return dst
}

// AppendArray appends a JSON array in the field's format.
func (f *Field) AppendArray(dst []byte, v Value) []byte {
	e := f.element()
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
