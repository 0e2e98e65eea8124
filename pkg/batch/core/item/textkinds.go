package item

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// TextKind returns the kind of a Go type whose values are json, a uuid, bytes or a list: row.JSON
// and json.RawMessage, an array of 16 bytes (row.UUID, and the type of most libraries), a slice of
// bytes, a slice of simple values.
func TextKind(t reflect.Type) (row.Kind, bool) {
	switch {
	case t == reflect.TypeFor[row.JSON](), t == reflect.TypeFor[json.RawMessage]():
		return row.JSONKind, true
	case t.Kind() == reflect.Array && t.Len() == len(row.UUID{}) && t.Elem().Kind() == reflect.Uint8:
		return row.UUIDKind, true
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return row.BytesKind, true
	case t.Kind() == reflect.Slice:
		elem, ok := goKind(t.Elem())
		return row.ListOf(elem), ok && !elem.IsList() && row.ListOf(elem).IsList()
	}
	return row.Null, false
}

// TextValue returns the value of a Go value of such a type; a nil slice is null. JSON that is
// none is an error.
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
		switch {
		case elem == row.UUIDKind:
			var err error
			if elements[i], err = TextValue(e, elem); err != nil {
				return row.Value{}, err
			}
		case e.CanUint() && e.Uint() > math.MaxInt64:
			return row.Value{}, fmt.Errorf("%d does not fit an int", e.Uint())
		default:
			elements[i] = fieldValue(e, elem)
		}
	}
	return row.ListValue(elem, elements)
}

// setText sets a Go value of such a type; false: an element does not fit.
func setText(dst reflect.Value, v row.Value) bool {
	switch {
	case v.Kind().IsList():
		elements := v.Elements()
		dst.Set(reflect.MakeSlice(dst.Type(), len(elements), len(elements)))
		for i, e := range elements {
			if e.Kind() == row.UUIDKind {
				setText(dst.Index(i), e)
			} else if !setField(dst.Index(i), e) {
				return false
			}
		}
	case v.Kind() == row.UUIDKind:
		reflect.Copy(dst, reflect.ValueOf(v.UUID()))
	case v.Kind() == row.BytesKind:
		dst.SetBytes([]byte(v.Bytes()))
	case dst.Kind() == reflect.Slice:
		dst.SetBytes([]byte(v.JSON()))
	default:
		dst.SetString(string(v.JSON()))
	}
	return true
}
