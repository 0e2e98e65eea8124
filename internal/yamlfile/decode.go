package yamlfile

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/nearest"
)

// Form decodes a type with its own form; on a mistake it leaves v unchanged.
type Form func(d *Decoder, n *Node, f Field, v reflect.Value)

// Value is the value of a scalar.
type Value struct {
	Text  string
	Typed any
}

// Decoder fills values by tags, and reports every problem.
type Decoder struct {
	*Collector
	Forms map[reflect.Type]Form
	// Scalar returns a scalar's value for want; false sets nothing. nil means the text.
	Scalar func(n *Node, f Field, want reflect.Type) (Value, bool)
	// Meant returns the probable key, or a hint to another struct; empty if unknown.
	Meant func(key string, in reflect.Type) (own, hint string)

	bad bool // a node with a reported problem was met
}

// Decode fills the settable v from n, called what in messages, and reports success.
func (d *Decoder) Decode(n *Node, what string, v reflect.Value) bool {
	before := d.Reports()
	d.bad = false
	d.value(n, Field{Key: what, Type: v.Type()}, v)
	return d.Reports() == before && !d.bad
}

// Reported marks the decoding as bad.
func (d *Decoder) Reported() { d.bad = true }

// Default sets v to the defaults in its own tags, with the position of n.
func (d *Decoder) Default(n *Node, what string, v reflect.Value) bool {
	empty := n.Beside(Map)
	return d.Decode(empty, what, v)
}

// Field decodes n as the value of field f.
func (d *Decoder) Field(n *Node, f Field, v reflect.Value) { d.value(n, f, v) }

type ordered interface {
	element() reflect.Type
	add(key *Node, value reflect.Value)
}

func (d *Decoder) value(n *Node, f Field, v reflect.Value) {
	if n.Bad {
		d.bad = true
		return
	}
	if form, ok := d.Forms[v.Type()]; ok {
		form(d, n, f, v)
		return
	}
	if o, ok := v.Addr().Interface().(ordered); ok {
		d.ordered(n, f, o)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		before := d.Reports()
		d.value(n, f, p.Elem())
		// A broken value is left nil, so that it is not judged again; of a struct, the valid fields are kept.
		_, form := d.Forms[p.Elem().Type()]
		if d.Reports() == before || !form && p.Elem().Kind() == reflect.Struct {
			v.Set(p)
		}
	case reflect.Struct:
		d.structure(n, f, v)
	case reflect.Slice:
		d.list(n, f, v)
	case reflect.Map:
		d.mapping(n, f, v)
	default:
		d.scalar(n, f, v)
	}
}

// Expect reports a node of another kind than kind.
func (d *Decoder) Expect(n *Node, kind Kind, f Field) bool {
	switch {
	case n.Bad:
		d.bad = true
		return false
	case n.Kind == Scalar && n.Empty:
		d.Add(n, fmt.Sprintf("%s has no value", f.Key), "expected "+kind.String())
		return false
	case n.Kind != kind:
		d.Add(n, fmt.Sprintf("%s takes %s, not %s", f.Key, kind, n.Kind), f.form(n, kind))
		return false
	}
	return true
}

func (d *Decoder) list(n *Node, f Field, v reflect.Value) {
	if !d.Expect(n, List, f) {
		return
	}
	items := reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items))
	inner := f
	if f.Item != "" {
		inner.Key = f.Item
	}
	for i, item := range n.Items {
		inner.Program = f.Program && i == 0
		d.value(item, inner, items.Index(i))
	}
	v.Set(items)
}

func (d *Decoder) mapping(n *Node, f Field, v reflect.Value) {
	if !d.Expect(n, Map, f) {
		return
	}
	m := reflect.MakeMapWithSize(v.Type(), len(n.Entries))
	for _, e := range n.Entries {
		value := reflect.New(v.Type().Elem()).Elem()
		inner := f
		inner.Key = f.Key + "." + e.Key.Text
		d.value(e.Value, inner, value)
		m.SetMapIndex(reflect.ValueOf(e.Key.Text).Convert(v.Type().Key()), value)
	}
	v.Set(m)
}

func (d *Decoder) ordered(n *Node, f Field, o ordered) {
	if !d.Expect(n, Map, f) {
		return
	}
	for _, e := range n.Entries {
		value := reflect.New(o.element()).Elem()
		d.value(e.Value, Field{Key: e.Key.Text, Type: o.element()}, value)
		o.add(e.Key, value)
	}
}

func (d *Decoder) structure(n *Node, f Field, v reflect.Value) {
	keys := FieldsOf(v.Type())
	if keys.at != nil {
		v.FieldByIndex(keys.at).Set(reflect.ValueOf(At{Node: n}))
	}
	if main, ok := keys.Main(); ok && !n.Empty && n.Kind != Map {
		d.value(n, main, v.FieldByIndex(main.Index))
		d.defaults(n, f, keys, v, func(key string) bool { return key == main.Key })
		return
	}
	if !d.Expect(n, Map, f) {
		return
	}
	rest, hasRest := keys.Rest()
	others := restOf(n, keys)
	if !hasRest {
		d.unknown(others, f, keys, v.Type())
	} else if len(others.Entries) > 0 {
		d.value(others, rest, v.FieldByIndex(rest.Index))
	}
	for _, e := range n.Entries {
		if field, ok := keys.Find(e.Key.Text); ok && !e.Key.Bad {
			d.value(e.Value, field, v.FieldByIndex(field.Index))
		}
	}
	d.defaults(n, f, keys, v, func(key string) bool {
		return n.Get(key) != nil && key != rest.Key || hasRest && key == rest.Key && len(others.Entries) > 0
	})
}

func restOf(n *Node, keys Keys) *Node {
	rest := n.Beside(Map)
	for _, e := range n.Entries {
		if _, known := keys.Find(e.Key.Text); !known && !e.Key.Bad {
			rest.Entries = append(rest.Entries, e)
		}
	}
	if len(rest.Entries) > 0 {
		rest.Line, rest.Col = rest.Entries[0].Key.Line, rest.Entries[0].Key.Col
	}
	return rest
}

func (d *Decoder) unknown(n *Node, f Field, keys Keys, in reflect.Type) {
	for _, e := range n.Entries {
		key := e.Key.Text
		own, hint := d.meant(key, in)
		if own != "" {
			hint = "did you mean " + own + "?"
		}
		switch {
		case keys.Ignore != "" && strings.HasPrefix(key, keys.Ignore):
		case slices.Contains(keys.Later, key):
			d.Add(e.Key, fmt.Sprintf("%s: this version does not support it yet", key), "")
		default:
			d.Add(e.Key, fmt.Sprintf("unknown key %q in %s", key, f.Key), cmp.Or(hint, Suggest(key, keys.Names())))
		}
	}
}

func (d *Decoder) meant(key string, in reflect.Type) (own, hint string) {
	if d.Meant == nil {
		return "", ""
	}
	return d.Meant(key, in)
}

func (d *Decoder) defaults(n *Node, f Field, keys Keys, v reflect.Value, there func(key string) bool) {
	for _, field := range keys.Fields {
		switch {
		case there(field.Key):
		case field.HasDefault:
			d.byDefault(n, field, v.FieldByIndex(field.Index))
		case d.plainStruct(field.Type):
			d.absent(n, field, v.FieldByIndex(field.Index))
		case field.Required && !d.excused(n, keys, v.Type(), field.Key):
			d.Add(n, fmt.Sprintf("%s needs the key %q", f.Key, field.Key), field.Doc)
		}
	}
}

func (d *Decoder) plainStruct(t reflect.Type) bool {
	_, form := d.Forms[t]
	return t.Kind() == reflect.Struct && !form
}

func (d *Decoder) absent(n *Node, f Field, v reflect.Value) {
	if f.Required {
		d.Add(n, fmt.Sprintf("the key %q is missing", f.Key), f.Doc)
		return
	}
	for _, field := range FieldsOf(f.Type).Fields {
		switch inner := v.FieldByIndex(field.Index); {
		case field.HasDefault:
			d.byDefault(n, field, inner)
		case d.plainStruct(field.Type):
			field.Required = false
			d.absent(n, field, inner)
		}
	}
}

func (d *Decoder) excused(n *Node, keys Keys, in reflect.Type, key string) bool {
	return slices.ContainsFunc(restOf(n, keys).Entries, func(e Entry) bool {
		own, _ := d.meant(e.Key.Text, in)
		return own == key || slices.Contains(keys.Later, e.Key.Text) || nearest.Name(e.Key.Text, keys.Names()) == key
	})
}

func (d *Decoder) byDefault(n *Node, f Field, v reflect.Value) {
	text := n.WithText(f.Default)
	if kind := v.Kind(); kind == reflect.Slice || kind == reflect.Map || kind == reflect.Struct {
		doc, problems := Parse("default of "+f.Key, []byte(f.Default))
		if err := problems.Err(); err != nil || doc.Root == nil {
			d.Add(n, fmt.Sprintf("%s: its default %q is not valid: %v", f.Key, f.Default, err), "this is a mistake in the component")
			return
		}
		text = doc.Root
		moveTo(text, n)
	}
	d.value(text, f, v)
}

func moveTo(n, at *Node) {
	n.Line, n.Col, n.style, n.doc, n.use = at.Line, at.Col, folded, at.doc, at.use
	for _, item := range n.Items {
		moveTo(item, at)
	}
	for _, e := range n.Entries {
		moveTo(e.Key, at)
		moveTo(e.Value, at)
	}
}
