package expression

import (
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"

	"github.com/surfin-batch/surfin/internal/gofield"
	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// ItemProgram is a checked expression over `item`, `meta` and the names of its ExpressionEnv. It is safe for
// concurrent use, each goroutine with its own [Frame].
type ItemProgram struct {
	text string
	root *typed
	uses map[string]evalFn
}

// CompileItem checks e against items of type in. An error is an *Error.
//
//   - item has the fields of in's schema; for a Go struct all fields that
//     expressions can hold, by schema name or Go name, and those of structs in it.
//     With an open schema every other name is a string column, looked up at run
//     time: absent or null, the item is invalid; of another kind, its text is taken.
//   - meta.line, meta.index and meta.row are ints, meta.path is a string.
//   - the names of e.Env are constants once e.Env.Values are there. A pointer type
//     in e.Env.Types says that the value may be nil.
func CompileItem(e registry.Expression, in item.Type) (*ItemProgram, error) {
	root, err := itemScope(e.Env, in)
	if err != nil {
		return nil, &Error{Msg: err.Error()}
	}
	c := &checker{text: e.Text, root: root, calendars: e.Env.Calendars, zone: zoneOf(e.Env.Zone)}
	t, err := c.compile()
	if err != nil {
		return nil, err
	}
	switch t.kind {
	case kindOpaque:
		return nil, t.unusable()
	case kindDuration:
		return nil, errorf(t.at, "a duration cannot be a value of an item: write string(...)")
	default:
	}
	return &ItemProgram{text: e.Text, root: t, uses: c.uses}, nil
}

// Text returns the expression as written.
func (p *ItemProgram) Text() string { return p.text }

// Kind is the type of the result; row.Null if it is always null.
func (p *ItemProgram) Kind() row.Kind { return p.root.kind }

// Nullable reports whether the result may be null.
func (p *ItemProgram) Nullable() bool { return p.root.nullable }

// Vars returns the dotted paths used, such as item.id and params.year, sorted.
func (p *ItemProgram) Vars() []string { return sortedNames(p.uses) }

// Used lists the variables and their values for messages: "item.cost = -3, params.least = 0".
func (p *ItemProgram) Used(f *Frame) string {
	var parts []string
	for _, path := range p.Vars() {
		text := "unknown"
		if v, err := p.uses[path](f); err == nil {
			text = v.String()
			if v.Kind() == row.String {
				text = quote(v.Str())
			}
		}
		parts = append(parts, path+" = "+text)
	}
	return strings.Join(parts, ", ")
}

// Offset is the byte of the text where the expression begins.
func (p *ItemProgram) Offset() int { return p.root.at }

// Require refuses, as an *Error, a program with another kind of result.
func (p *ItemProgram) Require(kind row.Kind) error {
	if p.root.kind != kind && p.root.kind != row.Null {
		return errorf(p.root.at, "%s is needed here, not %s", article(kind), article(p.root.kind))
	}
	return p.root.required()
}

// Eval computes the expression for the item in f's cell; an error is an invalid
// item with an *EvalError.
func (p *ItemProgram) Eval(f *Frame) (row.Value, error) {
	v, err := p.root.eval(f)
	if err != nil {
		return row.Value{}, exception.InvalidItem("", exception.ClassExpression, inText(p.text, err))
	}
	return v, nil
}

// Frame holds the state with which one goroutine evaluates programs: the cell of its chain. It is not safe
// for concurrent use.
type Frame struct {
	vars    map[string]any
	rows    *item.Cell[item.Row]
	cell    itemextra.AnyCell
	item    reflect.Value
	locals  []row.Value
	unknown func(path string) bool
	// unset are the slots of locals with an unknown value; only Try sets any.
	unset map[int]bool
}

// NewFrame makes a frame over cell, a *item.Cell.
func NewFrame(cell any) (*Frame, error) {
	if rows, ok := cell.(*item.Cell[item.Row]); ok {
		return &Frame{rows: rows}, nil
	}
	c, ok := cell.(itemextra.AnyCell)
	if !ok {
		return nil, fmt.Errorf("an expression received a %T, which is not a cell", cell)
	}
	return &Frame{cell: c, item: c.Value()}, nil
}

func (f *Frame) setLocal(slot int, v row.Value) {
	for len(f.locals) <= slot {
		f.locals = append(f.locals, row.Value{})
	}
	f.locals[slot] = v
}

func (f *Frame) meta() item.Meta {
	if f.rows != nil {
		return f.rows.Meta
	}
	return f.cell.Origin()
}

func metaScope() node {
	return namespace(map[string]node{
		"line": leaf(row.Int, false, "meta.line", func(int) evalFn {
			return func(f *Frame) (row.Value, error) { return row.IntValue(f.meta().Line), nil }
		}),
		"path": leaf(row.String, false, "meta.path", func(int) evalFn {
			return func(f *Frame) (row.Value, error) { return row.StringValue(f.meta().Path), nil }
		}),
		"index": leaf(row.Int, false, "meta.index", func(int) evalFn {
			return func(f *Frame) (row.Value, error) { return row.IntValue(f.meta().Index), nil }
		}),
		"row": leaf(row.Int, false, "meta.row", func(int) evalFn {
			return func(f *Frame) (row.Value, error) { return row.IntValue(f.meta().Row), nil }
		}),
	})
}

func itemFields(in item.Type) (node, error) {
	if in.GoType() != reflect.TypeFor[item.Row]() {
		t := in.GoType()
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			return node{}, fmt.Errorf("an item of type %s has no fields for an expression", in.Name())
		}
		return structFields(t, nil, false, "item"), nil
	}
	if in.Schema() == nil || in.Schema().IsOpen() {
		return openFields(in.Schema()), nil
	}
	return rowFields(in.Schema()), nil
}

func rowFields(s *row.Schema) node {
	return node{
		names: s.Names,
		members: func(name string) (node, bool) {
			i := s.Index(name)
			if i < 0 {
				return node{}, false
			}
			field := s.Field(i)
			kind, nullable := field.Kind, field.Nullable
			return leaf(kind, nullable, "item."+name, func(at int) evalFn {
				return func(f *Frame) (row.Value, error) {
					if i < f.rows.Item.Len() {
						if v := f.rows.Item.At(i); v.Kind() == kind || (nullable && v.IsNull()) {
							return v, nil
						}
					}
					return row.Value{}, misfit(at, f.rows.Item, name, kind)
				}
			}), true
		},
	}
}

func misfit(at int, r item.Row, name string, kind row.Kind) error {
	v, ok := r.Get(name)
	switch {
	case !ok:
		return failf(at, "the item has no field %s%s", name, columns(r))
	case v.IsNull():
		return failf(at, "item.%s is null, but its type is %s", name, kind)
	}
	return failf(at, "item.%s is %s, but its type is %s", name, article(v.Kind()), kind)
}

func columns(r item.Row) string {
	if r.Schema() == nil {
		return ""
	}
	return " (there is " + strings.Join(r.Schema().Names(), ", ") + ")"
}

type columnPlace struct {
	schema *row.Schema
	index  int
}

func openFields(s *row.Schema) node {
	return node{
		names: func() []string { return nil },
		members: func(name string) (node, bool) {
			kind, nullable := row.String, false
			if s != nil && s.Index(name) >= 0 {
				field := s.Field(s.Index(name))
				kind, nullable = field.Kind, field.Nullable
			}
			var seen atomic.Pointer[columnPlace]
			return leaf(kind, nullable, "item."+name, func(at int) evalFn {
				return func(f *Frame) (row.Value, error) {
					item := f.rows.Item
					place := seen.Load()
					if place == nil || place.schema != item.Schema() {
						if item.Schema() == nil || item.Schema().Index(name) < 0 {
							return row.Value{}, failf(at, "the item has no column %s%s", name, columns(item))
						}
						place = &columnPlace{item.Schema(), item.Schema().Index(name)}
						seen.Store(place)
					}
					v := item.At(place.index)
					switch {
					case v.Kind() == kind || (nullable && v.IsNull()):
						return v, nil
					case kind == row.String && !v.IsNull():
						return row.StringValue(v.String()), nil
					}
					return row.Value{}, misfit(at, item, name, kind)
				}
			}), true
		},
	}
}

func structFields(t reflect.Type, index []int, nullable bool, prefix string) node {
	return node{
		names: func() []string {
			var names []string
			for i := range t.NumField() {
				if name := gofield.Name(t.Field(i)); name != "" {
					names = append(names, name)
				}
			}
			return names
		},
		members: func(name string) (node, bool) {
			for i := range t.NumField() {
				sf := t.Field(i)
				if canonical := gofield.Name(sf); canonical == "" || (canonical != name && sf.Name != name) {
					continue
				}
				at := append(append([]int(nil), index...), i)
				return structField(sf, at, nullable, prefix+"."+gofield.Name(sf)), true
			}
			return node{}, false
		},
	}
}

func structField(sf reflect.StructField, index []int, nullable bool, path string) node {
	kind, isPointer := kindOf(sf.Type)
	nullable = nullable || isPointer || sf.Type.Kind() == reflect.Slice
	if kind == kindOpaque {
		t := sf.Type
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() == reflect.Struct {
			return structFields(t, index, nullable, path)
		}
	}
	n := leaf(kind, nullable, path, func(at int) evalFn {
		return func(f *Frame) (row.Value, error) { return readField(f.item, index, path, nullable, kind, at) }
	})
	n.value.opaque = sf.Type
	return n
}

func readField(item reflect.Value, index []int, path string, nullable bool, kind row.Kind, at int) (row.Value, error) {
	for item.Kind() == reflect.Pointer {
		if item.IsNil() {
			return row.Value{}, failf(at, "the item is nil")
		}
		item = item.Elem()
	}
	for _, i := range index {
		if item.Kind() == reflect.Pointer {
			if item.IsNil() {
				return row.Value{}, nil
			}
			item = item.Elem()
		}
		item = item.Field(i)
	}
	v, ok := fromReflect(item)
	if !ok || (v.IsNull() && !nullable) {
		return row.Value{}, failf(at, "%s does not fit %s", path, article(kind))
	}
	return v, nil
}
