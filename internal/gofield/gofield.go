// Package gofield relates the fields of Go structs to the values of rows: their names, their kinds, and how a
// value enters a field and leaves it.
//
// It imports core/row and core/exception only.
package gofield

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/fault"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Name returns the name of a Go struct's field in schemas and expressions: its tag `batch:"name"`,
// or its name in lower snake case; empty if it is left out (`batch:"-"`, or not exported).
func Name(f reflect.StructField) string {
	name := f.Tag.Get("batch")
	switch {
	case !f.IsExported() || name == "-":
		return ""
	case name == "":
		return snakeCase(f.Name)
	}
	return name
}

func snakeCase(name string) string {
	var b strings.Builder
	runes := []rune(name)
	upper := func(i int) bool { return i >= 0 && i < len(runes) && runes[i] >= 'A' && runes[i] <= 'Z' }
	for i, r := range runes {
		if upper(i) && i > 0 && (!upper(i-1) || (i+1 < len(runes) && !upper(i+1))) {
			b.WriteByte('_')
		}
		b.WriteString(strings.ToLower(string(r)))
	}
	return b.String()
}

// KindOf returns the kind of the values of a Go type; false if it has none.
func KindOf(t reflect.Type) (row.Kind, bool) {
	switch t {
	case reflect.TypeFor[row.Date]():
		return row.DateKind, true
	case reflect.TypeFor[time.Time]():
		return row.Timestamp, true
	case reflect.TypeFor[row.Decimal]():
		return row.DecimalKind, true
	}
	if kind, ok := TextKind(t); ok {
		return kind, true
	}
	switch t.Kind() {
	case reflect.String:
		return row.String, true
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return row.Int, true
	case reflect.Float32, reflect.Float64:
		return row.Float, true
	case reflect.Bool:
		return row.Bool, true
	default:
		return row.Null, false
	}
}

// TextKind returns the kind of a Go type for json, a uuid, bytes or a list: row.JSON and
// json.RawMessage, an array of 16 bytes (row.UUID, and the type of most libraries), a slice of bytes, a
// slice of simple values or of pointers to them; a nil pointer is null.
func TextKind(t reflect.Type) (row.Kind, bool) {
	switch {
	case t == reflect.TypeFor[row.JSON](), t == reflect.TypeFor[json.RawMessage]():
		return row.JSONKind, true
	case t.Kind() == reflect.Array && t.Len() == len(row.UUID{}) && t.Elem().Kind() == reflect.Uint8:
		return row.UUIDKind, true
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return row.BytesKind, true
	case t.Kind() == reflect.Slice:
		return sliceKind(t.Elem())
	}
	return row.Null, false
}

// sliceKind returns the kind of slices of a type, or of pointers to it.
func sliceKind(elem reflect.Type) (row.Kind, bool) {
	if elem.Kind() == reflect.Pointer {
		elem = elem.Elem()
	}
	if elem.Kind() == reflect.Slice || elem.Kind() == reflect.Pointer {
		return row.Null, false
	}
	kind, ok := KindOf(elem)
	if list := row.ListOf(kind); ok && list.IsList() {
		return list, true
	}
	return row.Null, false
}

// Value returns the value of a Go value that is not of a [TextKind].
func Value(src reflect.Value, kind row.Kind) row.Value {
	switch kind {
	case row.String:
		return row.StringValue(src.String())
	case row.Float:
		if src.Kind() == reflect.Float32 {
			return row.FloatValue(row.Real(float32(src.Float())))
		}
		return row.FloatValue(src.Float())
	case row.Bool:
		return row.BoolValue(src.Bool())
	case row.DateKind:
		return row.DateValue(row.Date(src.Int()))
	case row.Timestamp:
		return row.TimestampValue(*src.Addr().Interface().(*time.Time))
	case row.DecimalKind:
		return row.DecimalValue(*src.Addr().Interface().(*row.Decimal))
	default:
	}
	if src.CanUint() {
		return row.IntValue(int64(src.Uint()))
	}
	return row.IntValue(src.Int())
}

// TextValue returns the value of a Go value of a [TextKind]; a nil slice is null. Invalid JSON is an
// error.
func TextValue(src reflect.Value, kind row.Kind) (row.Value, error) {
	if src.Kind() == reflect.Slice && src.IsNil() {
		return row.Value{}, nil
	}
	switch kind {
	case row.UUIDKind:
		var u row.UUID
		reflect.Copy(reflect.ValueOf(&u).Elem(), src)
		return row.UUIDValue(u), nil
	case row.BytesKind:
		return row.BytesValue(src.Bytes()), nil
	default:
	}
	if kind.IsList() {
		return listValue(src, kind)
	}
	text := src.String
	if src.Kind() == reflect.Slice {
		text = func() string { return string(src.Bytes()) }
	}
	j, err := row.ParseJSON(text())
	switch {
	case err != nil:
		return row.Value{}, fmt.Errorf("it is not json (%w)", err)
	case j == "null":
		return row.Value{}, nil
	}
	return row.JSONValue(j), nil
}

func listValue(src reflect.Value, kind row.Kind) (row.Value, error) {
	elem, _ := kind.Elem()
	elements := make([]row.Value, src.Len())
	for i := range elements {
		e := src.Index(i)
		if e.Kind() == reflect.Pointer {
			if e.IsNil() {
				continue
			}
			e = e.Elem()
		}
		switch {
		case elem == row.UUIDKind:
			var err error
			if elements[i], err = TextValue(e, elem); err != nil {
				return row.Value{}, &row.ElementError{Index: i, Err: err}
			}
		case e.CanUint() && e.Uint() > math.MaxInt64:
			return row.Value{}, &row.ElementError{Index: i, Err: fmt.Errorf("%d does not fit an int", e.Uint())}
		default:
			elements[i] = Value(e, elem)
		}
	}
	return row.ListValue(elem, elements)
}

// Set sets a Go value that is not of a [TextKind], and reports whether the value fits. dst is addressable, like the items of a slice.
func Set(dst reflect.Value, v row.Value) bool {
	switch dst.Kind() {
	case reflect.String:
		dst.SetString(v.Str())
	case reflect.Float32, reflect.Float64:
		if dst.OverflowFloat(v.Float()) {
			return false
		}
		dst.SetFloat(v.Float())
	case reflect.Bool:
		dst.SetBool(v.Bool())
	case reflect.Struct:
		switch place := dst.Addr().Interface().(type) { // dst.Set would allocate
		case *row.Decimal:
			*place = v.Decimal()
		case *time.Time:
			*place = v.Time()
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if v.Int() < 0 || dst.OverflowUint(uint64(v.Int())) {
			return false
		}
		dst.SetUint(uint64(v.Int()))
	default:
		n := v.Int()
		if v.Kind() == row.DateKind {
			n = int64(v.Date())
		}
		if dst.OverflowInt(n) {
			return false
		}
		dst.SetInt(n)
	}
	return true
}

// SetText sets a Go value of a [TextKind] that is not a list.
func SetText(dst reflect.Value, v row.Value) {
	switch {
	case v.Kind() == row.UUIDKind:
		reflect.Copy(dst, reflect.ValueOf(v.UUID()))
	case v.Kind() == row.BytesKind:
		dst.SetBytes([]byte(v.Bytes()))
	case dst.Kind() == reflect.Slice:
		dst.SetBytes([]byte(v.JSON()))
	default:
		dst.SetString(string(v.JSON()))
	}
}

// SetList sets a slice. A null element needs a slice of pointers.
func SetList(dst reflect.Value, f *row.Field, v row.Value) error {
	elements := v.Elements()
	dst.Set(reflect.MakeSlice(dst.Type(), len(elements), len(elements)))
	for i, e := range elements {
		to := dst.Index(i)
		isPointer := to.Kind() == reflect.Pointer
		switch {
		case e.IsNull() && isPointer:
			continue
		case e.IsNull():
			return exception.InvalidItem("", exception.ClassParse, fmt.Errorf("field %s[%d]: null does not fit a %v (use a []*%v)", f.Name, i, to.Type(), to.Type()))
		case isPointer:
			to.Set(reflect.New(to.Type().Elem()))
			to = to.Elem()
		}
		if e.Kind() == row.UUIDKind {
			SetText(to, e)
		} else if !Set(to, e) {
			named := *f
			named.Name = fmt.Sprintf("%s[%d]", f.Name, i)
			return Unfit(&named, e, to)
		}
	}
	return nil
}

// Unfit returns the error of a value that does not fit its field.
func Unfit(f *row.Field, v row.Value, dst reflect.Value) error {
	return exception.InvalidItem("", exception.ClassParse, fault.Named(f.Name, "%s does not fit a %v", f.Quoted(v.String()), dst.Type()))
}
