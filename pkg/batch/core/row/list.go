package row

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core/jsontext"
)

// listBit marks the kind of a list; the rest is the kind of its elements.
const listBit Kind = 0x20

const listPrefix = "list of "

// ListOf returns the kind of the lists of values of a simple kind. Lists of lists, of json and
// of bytes there are none.
func ListOf(elem Kind) Kind { return elem | listBit }

// Elem returns the kind of the elements of a list; false: the kind is none of lists.
func (k Kind) Elem() (Kind, bool) { return k &^ listBit, k.IsList() }

// IsList reports whether the kind is one of lists.
func (k Kind) IsList() bool { return k&listBit != 0 && isSimple(k&^listBit) }

// isSimple reports whether there are lists of the kind.
func isSimple(k Kind) bool {
	switch k {
	case String, Int, Float, DecimalKind, Bool, DateKind, Timestamp, UUIDKind:
		return true
	default:
		return false
	}
}

// ListNames returns the names of all kinds of lists.
func ListNames() []string {
	var names []string
	for k := String; int(k) < len(kindNames); k++ {
		if isSimple(k) {
			names = append(names, ListOf(k).String())
		}
	}
	return names
}

// ListValue returns a list of elements, each of the kind elem.
func ListValue(elem Kind, elements []Value) (Value, error) {
	text := []byte{'['}
	for i, e := range elements {
		if e.kind != elem {
			return Value{}, fmt.Errorf("element %d of a %s is %s", i+1, ListOf(elem), article(e.kind))
		}
		if err := e.Finite(); err != nil {
			return Value{}, err
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = appendElement(text, e)
	}
	return Value{kind: ListOf(elem), text: string(append(text, ']'))}, nil
}

// appendElement appends the JSON of an element.
func appendElement(dst []byte, e Value) []byte {
	switch e.kind {
	case Int, Float, DecimalKind, Bool:
		return e.AppendText(dst)
	default:
		return appendQuoted(dst, e.String())
	}
}

// appendQuoted appends a text as JSON.
func appendQuoted(dst []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x80 {
			quoted, err := json.Marshal(text)
			if err != nil { // a string has a JSON form
				return append(dst, `""`...)
			}
			return append(dst, quoted...)
		}
	}
	return append(append(append(dst, '"'), text...), '"')
}

// Len returns how many elements a list has; 0 of any other value.
func (v Value) Len() int {
	n := 0
	v.each(func(string) bool { n++; return true })
	return n
}

// Elements returns the elements of a list; nil of any other value.
func (v Value) Elements() []Value {
	elem, ok := v.kind.Elem()
	if !ok {
		return nil
	}
	elements := []Value{}
	f := Field{Name: "element", Kind: elem, Nulls: []string{}}
	v.each(func(raw string) bool {
		e, err := f.parseElement(raw)
		if err != nil { // cannot be: the list was made of such values
			return false
		}
		elements = append(elements, e)
		return true
	})
	return elements
}

// each calls f with the JSON of each element of a list, until it returns false.
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

// canonicalList is the list whose elements are canonical.
func canonicalList(v Value) Value {
	if v.kind != ListOf(DecimalKind) {
		return v
	}
	elements := v.Elements()
	for i := range elements {
		elements[i] = elements[i].Canonical()
	}
	list, err := ListValue(DecimalKind, elements)
	if err != nil { // cannot be: they are decimals
		return v
	}
	return list
}

// element is the field of the elements of a list.
func (f *Field) element() *Field {
	if f.elem != nil {
		return f.elem
	}
	kind, _ := f.Kind.Elem()
	return &Field{Name: f.Name, Kind: kind, Hidden: f.Hidden, Nulls: []string{}}
}

// setElement makes the field of the elements, which has what the list says of its values.
func (f *Field) setElement() error {
	kind, ok := f.Kind.Elem()
	if !ok {
		if f.Separator != "" {
			return fmt.Errorf("field %q: a separator is for lists, not for %s", f.Name, f.Kind)
		}
		return nil
	}
	e := Field{
		Name: f.Name, Kind: kind, Format: f.Format, Scale: f.Scale, Zone: f.Zone, Hidden: f.Hidden, Nulls: []string{},
		DecimalSeparator: f.DecimalSeparator, ThousandsSeparator: f.ThousandsSeparator,
	}
	if f.Coerce != CoerceError {
		e.Coerce = CoerceConvert
	}
	if f.Separator != "" && (f.Separator == f.DecimalSeparator || f.Separator == f.ThousandsSeparator) {
		return fmt.Errorf("field %q: the separator of the list is that of its numbers, too: %q", f.Name, f.Separator)
	}
	schema, err := NewSchema(e)
	if err == nil {
		f.elem = schema.Field(0)
	}
	return err
}

// parseList reads the text of a list: elements between separators where the field has one, else
// a JSON array, or an array as PostgreSQL writes it.
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
	if strings.HasPrefix(text, "{") && strings.HasSuffix(text, "}") {
		elements, err := cutArray(text)
		if err != nil {
			return Value{}, f.misfit(text, err.Error())
		}
		if f.element().Kind == Bool {
			for i, e := range elements {
				elements[i] = cmp.Or(map[string]string{"t": "true", "f": "false"}[e], e)
			}
		}
		return f.listOf(elements)
	}
	if !isJSON {
		return Value{}, f.misfit(text, `expected a JSON array such as [1, 2]; for a;b say separator: ";"`)
	}
	return f.ParseArray([]byte(text))
}

// listOf reads elements as texts.
func (f *Field) listOf(texts []string) (Value, error) {
	e := f.element()
	elements := make([]Value, len(texts))
	for i, text := range texts {
		var err error
		if elements[i], err = e.Parse(text); err != nil {
			return Value{}, atElement(i, err)
		}
	}
	return ListValue(e.Kind, elements)
}

func atElement(i int, err error) error { return fmt.Errorf("element %d: %w", i+1, err) }

// ParseArray reads a JSON array as a list. It is read strictly, and its elements are of the type
// in which JSON has values of their kind: no number is a text, and null is no element.
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
			return Value{}, atElement(i, err)
		}
	}
	return ListValue(e.Kind, elements)
}

// parseElement reads the JSON of an element.
func (f *Field) parseElement(raw string) (Value, error) {
	isText := raw[0] == '"'
	isNumber := raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9'
	ok := isText
	switch {
	case raw == "null":
		return Value{}, f.misfit(raw, "a list has no null in it; leave it out, or say json")
	case raw[0] == '{' || raw[0] == '[':
		return Value{}, f.misfit(raw, "a list has simple values; say json")
	case f.Coerce != CoerceError:
		ok = true
	case f.Kind == Int || f.Kind == Float || f.Counts():
		ok = isNumber
	case f.Kind == DecimalKind:
		ok = isNumber || isText
	case f.Kind == Bool:
		ok = raw == "true" || raw == "false"
	}
	if !ok {
		return Value{}, f.misfit(raw, "")
	}
	if !isText {
		return f.Parse(raw)
	}
	text, err := jsontext.Unquote([]byte(raw))
	if err != nil {
		return Value{}, f.misfit(raw, err.Error())
	}
	return f.Parse(text)
}

// appendList appends a list as the field has it: with separators, or as a JSON array where
// those could not be read again.
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
		if strings.Contains(text, f.Separator) || strings.HasPrefix(text, "[") || text == "" || strings.TrimSpace(text) != text {
			return f.AppendArray(dst[:begin], v)
		}
		dst = append(dst, text...)
	}
	if len(elements) == 0 {
		return append(dst, "[]"...)
	}
	return dst
}

// AppendArray appends a list as a JSON array, its elements in the field's format.
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
		if text := string(e.AppendText(nil, element)); e.Counts() {
			dst = append(dst, text...)
		} else {
			dst = appendQuoted(dst, text)
		}
	}
	return append(dst, ']')
}
