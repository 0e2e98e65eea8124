package expression

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/calendar"
	"github.com/surfin-batch/surfin/internal/gofield"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Today is the name under which a [Scope] allows today(): a variable of type row.Date.
const Today = "today()"

// Now is the same for now(): a variable of type time.Time.
const Now = "now()"

// Zone is the name under which a [Scope] has the time zone of the job (rule D5).
const Zone = "zone()"

// Var is one name of a [Scope]: a value of Type, or a namespace of more names.
type Var struct {
	// Type is a simple value's type, or a pointer to one, which is nullable. Any other value can
	// only be passed through unchanged.
	Type     reflect.Type
	Nullable bool
	Fields   map[string]Var
	// Find and Names replace Fields if names are made on demand; Names lists all for hints.
	Find      func(name string) (Var, bool)
	Names     func() []string
	Calendars map[string]*calendar.Calendar
	// Zone is the clock of times without an offset and of parts of a time. nil is UTC.
	Zone *time.Location
	// Open means that every further name after the dot is a string.
	Open bool
}

// Scope is the set of names that an expression may use.
type Scope map[string]Var

// Error is a mistake in the text of an expression.
type Error struct {
	Offset int
	Msg    string
	Hint   string
}

// Error returns the message without the place.
func (e *Error) Error() string { return e.Msg }

// A duration is an int of nanoseconds; an opaque value never becomes a row value at all.
const (
	kindDuration row.Kind = 64 + iota
	kindOpaque
)

func kindName(k row.Kind) string {
	switch k {
	case kindDuration:
		return "duration"
	case kindOpaque:
		return "structured value"
	default:
		return k.String()
	}
}

func article(k row.Kind) string {
	switch k {
	case row.Null:
		return "nil"
	case row.Int:
		return "an int"
	case row.JSONKind, row.BytesKind:
		return kindName(k)
	default:
		return "a " + kindName(k)
	}
}

// GoType is the Go type of a result of kind k; nil for kinds without one.
func GoType(k row.Kind) reflect.Type {
	if elem, ok := k.Elem(); ok {
		return reflect.SliceOf(GoType(elem))
	}
	switch k {
	case row.String:
		return reflect.TypeFor[string]()
	case row.Int:
		return reflect.TypeFor[int64]()
	case row.Float:
		return reflect.TypeFor[float64]()
	case row.Bool:
		return reflect.TypeFor[bool]()
	case row.DateKind:
		return reflect.TypeFor[row.Date]()
	case row.Timestamp:
		return reflect.TypeFor[time.Time]()
	case row.DecimalKind:
		return reflect.TypeFor[row.Decimal]()
	case row.JSONKind:
		return reflect.TypeFor[row.JSON]()
	case row.UUIDKind:
		return reflect.TypeFor[row.UUID]()
	case row.BytesKind:
		return reflect.TypeFor[[]byte]()
	case kindDuration:
		return reflect.TypeFor[time.Duration]()
	default:
		return nil
	}
}

func kindOf(t reflect.Type) (kind row.Kind, nullable bool) {
	if t == nil {
		return kindOpaque, true
	}
	if t.Kind() == reflect.Pointer {
		kind, _ = kindOf(t.Elem())
		return kind, true
	}
	switch t {
	case reflect.TypeFor[row.Date]():
		return row.DateKind, false
	case reflect.TypeFor[time.Time]():
		return row.Timestamp, false
	case reflect.TypeFor[time.Duration]():
		return kindDuration, false
	case reflect.TypeFor[row.Decimal]():
		return row.DecimalKind, false
	}
	if kind, ok := gofield.TextKind(t); ok {
		return kind, false
	}
	switch t.Kind() {
	case reflect.String:
		return row.String, false
	case reflect.Bool:
		return row.Bool, false
	case reflect.Float32, reflect.Float64:
		return row.Float, false
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return row.Int, false
	default:
		return kindOpaque, t.Kind() == reflect.Interface || t.Kind() == reflect.Map || t.Kind() == reflect.Slice
	}
}

type node struct {
	value   *typed                         // without eval, which bind makes
	bind    func(at int) evalFn            // at: the place that names it, for errors
	members func(name string) (node, bool) // nil means a value
	names   func() []string                // the names that members knows, for hints
}

func leaf(kind row.Kind, nullable bool, path string, bind func(at int) evalFn) node {
	return node{value: &typed{kind: kind, nullable: nullable, path: path, fact: path}, bind: bind}
}

func constantLeaf(kind row.Kind, nullable bool, path string, v row.Value) node {
	n := leaf(kind, nullable, path, func(int) evalFn { return constantOf(v) })
	n.value.constant, n.value.value = true, v
	return n
}

func namespace(fields map[string]node) node {
	return node{
		members: func(name string) (node, bool) { n, ok := fields[name]; return n, ok },
		names:   func() []string { return sortedNames(fields) },
	}
}

func sortedNames[T any](m map[string]T) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		if name != Today && name != Now && name != Calendars && name != Zone {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func scopeNode(scope Var, prefix []string) node {
	return node{
		names: scope.all,
		members: func(name string) (node, bool) {
			v, ok := scope.member(name)
			if !ok {
				return node{}, false
			}
			path := append(slices.Clone(prefix), name)
			if v.Fields != nil || v.Find != nil || v.Open {
				return scopeNode(v, path), true
			}
			kind, nullable := kindOf(v.Type)
			nullable = nullable || v.Nullable
			n := leaf(kind, nullable, strings.Join(path, "."), lookup(path, kind, nullable))
			n.value.opaque = v.Type
			return n, true
		},
	}
}

func (v Var) member(name string) (Var, bool) {
	m, ok := v.Fields[name]
	if !ok && v.Find != nil {
		m, ok = v.Find(name)
	}
	if !ok && v.Open {
		return Var{Type: reflect.TypeFor[string](), Nullable: v.Nullable}, true
	}
	return m, ok
}

func (v Var) all() []string {
	names := sortedNames(v.Fields)
	if v.Names != nil {
		names = append(names, v.Names()...)
		slices.Sort(names)
	}
	return names
}

func lookup(path []string, kind row.Kind, nullable bool) func(at int) evalFn {
	dotted := strings.Join(path, ".")
	return func(at int) evalFn {
		return func(f *Frame) (row.Value, error) {
			if f.unknown != nil && f.unknown(dotted) {
				return row.Value{}, errUnknown
			}
			x, err := find(f.vars, path)
			if err != nil {
				return row.Value{}, failf(at, "%v", err)
			}
			v, err := fromGo(x, kind)
			if err != nil {
				return row.Value{}, failf(at, "%s: %v", dotted, err)
			}
			if v.IsNull() && !nullable {
				return row.Value{}, failf(at, "%s has no value", dotted)
			}
			return v, nil
		}
	}
}

func find(vars map[string]any, path []string) (any, error) {
	var x any = vars
	for i, name := range path {
		m, ok := x.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s is a %T, not a namespace", strings.Join(path[:i], "."), x)
		}
		x = m[name]
		if x == nil {
			return nil, nil
		}
	}
	return x, nil
}

func fromGo(x any, kind row.Kind) (row.Value, error) {
	if x == nil {
		return row.Value{}, nil
	}
	if text, ok := x.(string); ok && storedAsText(kind) { // as results of steps have it
		return (&row.Field{Name: "it", Kind: kind, Nullable: true, Nulls: []string{}}).Parse(text)
	}
	if is, _ := kindOf(reflect.TypeOf(x)); is != kind {
		return row.Value{}, fmt.Errorf("it is a %T, not %s", x, article(kind))
	}
	v, ok := fromReflect(reflect.ValueOf(x))
	if !ok {
		return row.Value{}, fmt.Errorf("%v does not fit a %s", x, kindName(kind))
	}
	return v, nil
}

func storedAsText(kind row.Kind) bool {
	switch kind {
	case row.DecimalKind, row.JSONKind, row.UUIDKind, row.BytesKind:
		return true
	default:
		return kind.IsList()
	}
}

func fromReflect(src reflect.Value) (row.Value, bool) {
	for src.Kind() == reflect.Pointer {
		if src.IsNil() {
			return row.Value{}, true
		}
		src = src.Elem()
	}
	kind, _ := kindOf(src.Type())
	if kind.IsList() {
		v, err := gofield.TextValue(src, kind)
		return v, err == nil
	}
	switch kind {
	case row.JSONKind, row.UUIDKind, row.BytesKind:
		v, err := gofield.TextValue(src, kind)
		return v, err == nil
	case row.String:
		return row.StringValue(src.String()), true
	case row.Bool:
		return row.BoolValue(src.Bool()), true
	case row.Float:
		if src.Kind() == reflect.Float32 {
			return row.FloatValue(row.Real(float32(src.Float()))), true
		}
		return row.FloatValue(src.Float()), true
	case row.DateKind:
		return row.DateValue(row.Date(src.Int())), true
	case kindDuration:
		return row.IntValue(src.Int()), true
	case row.Timestamp:
		if src.CanAddr() {
			return row.TimestampValue(*src.Addr().Interface().(*time.Time)), true
		}
		return row.TimestampValue(src.Interface().(time.Time)), true
	case row.DecimalKind:
		return row.DecimalValue(src.Interface().(row.Decimal)), true
	case row.Int:
		if !src.CanUint() {
			return row.IntValue(src.Int()), true
		}
		if u := src.Uint(); u <= 1<<63-1 {
			return row.IntValue(int64(u)), true
		}
	default:
	}
	return row.Value{}, false
}

func toGo(v row.Value, kind row.Kind) any {
	if kind == kindDuration && !v.IsNull() {
		return time.Duration(v.Int())
	}
	return v.Any()
}
