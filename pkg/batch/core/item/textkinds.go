package item

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// TextKind returns the kind of a Go type whose values are json, a uuid or bytes: row.JSON and
// json.RawMessage, an array of 16 bytes (row.UUID, and the type of most libraries), a slice of
// bytes.
func TextKind(t reflect.Type) (row.Kind, bool) {
	switch {
	case t == reflect.TypeFor[row.JSON](), t == reflect.TypeFor[json.RawMessage]():
		return row.JSONKind, true
	case t.Kind() == reflect.Array && t.Len() == len(row.UUID{}) && t.Elem().Kind() == reflect.Uint8:
		return row.UUIDKind, true
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return row.BytesKind, true
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

// setText sets a Go value of such a type.
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
