package item

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

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
	kind, ok := goKind(elem)
	if list := row.ListOf(kind); ok && list.IsList() {
		return list, true
	}
	return row.Null, false
}

// TextValue returns the value of a Go value of such a type; a nil slice is null. Invalid JSON is an
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
			elements[i] = fieldValue(e, elem)
		}
	}
	return row.ListValue(elem, elements)
}

// setText sets a Go value of such a type, which is not a list.
func setText(dst reflect.Value, v row.Value) {
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

// setList sets a slice. A null element needs a slice of pointers.
func setList(dst reflect.Value, f *row.Field, v row.Value) error {
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
			setText(to, e)
		} else if !setField(to, e) {
			named := *f
			named.Name = fmt.Sprintf("%s[%d]", f.Name, i)
			return unfit(&named, e, to)
		}
	}
	return nil
}
