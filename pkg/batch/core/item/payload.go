package item

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// redactedText replaces a text that a redact tag hides.
const redactedText = "***"

// maxItemDepth bounds the depth of redaction; encoding/json also gives up on a deeper item, as it may
// be a cycle.
const maxItemDepth = 1000

// EncodePayload returns the stored JSON of a skipped item (rule C12): a row by its schema, as an object
// with the keys of the source, so that [Type.FromDocuments] reads it again; anything else by
// encoding/json.
//
// A struct field with the tag `redact:"true"`, at any depth, is stored as "***" if it is a text and as
// its zero value otherwise. The item itself is unchanged.
//
// truncated means that the JSON is incomplete, so that it cannot be processed again: something was
// redacted; or it exceeded MaxPayloadBytes, and a JSON string with its beginning is stored, and sum is
// the hex SHA-256 of all of it (redacted); or it has no JSON form, and a JSON string says why. The
// result is always valid JSON of at most MaxPayloadBytes.
func EncodePayload(item any) (text []byte, truncated bool, sum string) {
	text, redacted, err := encodeItem(item)
	if err != nil {
		text, _ = cutText([]byte("no JSON form: " + err.Error()))
		return text, true, ""
	}
	if len(text) <= MaxPayloadBytes {
		return text, redacted, ""
	}
	whole := sha256.Sum256(text)
	text, _ = cutText(text)
	return text, true, hex.EncodeToString(whole[:])
}

// encodeItem never panics: an author's MarshalJSON may.
func encodeItem(item any) (text []byte, redacted bool, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	if r, ok := item.(Row); ok {
		return encodeRow(r), false, nil
	}
	v := reflect.ValueOf(item)
	if v.IsValid() && mayRedact(v.Type(), map[reflect.Type]bool{}, true) {
		own := reflect.New(v.Type()).Elem()
		own.Set(v)
		r := &redactor{}
		if err := r.hide(own, 0); err != nil {
			return nil, false, err
		}
		item, redacted = own.Interface(), r.hid
	}
	text, err = json.Marshal(item)
	return text, redacted, err
}

func encodeRow(r Row) []byte {
	text := []byte{'{'}
	for i, v := range r.Values() {
		if i > 0 {
			text = append(text, ',')
		}
		f := r.Schema().Field(i)
		text = append(appendJSONString(text, f.Source()), ':')
		if v.Kind() == row.BytesKind { // also bytes in a bytes column if the field is not declared
			text = appendJSONString(text, row.HexText(v.Bytes()))
			continue
		}
		var err error
		if text, err = appendJSONValue(text, f, v); err != nil { // NaN and infinities
			text = appendJSONString(text, v.String())
		}
	}
	return append(text, '}')
}

// cutText returns text as a JSON string of at most MaxPayloadBytes, cut if necessary.
func cutText(text []byte) (quoted []byte, cut bool) {
	length := min(len(text), MaxPayloadBytes)
	for {
		for length > 0 && length < len(text) && !utf8.RuneStart(text[length]) {
			length--
		}
		quoted = appendJSONString(nil, string(text[:length]))
		if over := len(quoted) - MaxPayloadBytes; over > 0 {
			length -= max(1, over/6) // a byte becomes at most six
			continue
		}
		return quoted, length < len(text)
	}
}

// mayRedact reports whether a value of type t can hold a field to be hidden; an interface is only known
// with its value, so the result is unknown.
func mayRedact(t reflect.Type, seen map[reflect.Type]bool, unknown bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return unknown
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return mayRedact(t.Elem(), seen, unknown)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if f.IsExported() || f.Anonymous {
				if f.Tag.Get("redact") == "true" || mayRedact(f.Type, seen, unknown) {
					return true
				}
			}
		}
	default:
	}
	return false
}

// redactor hides the tagged fields of a value. It first copies everything reached through pointers,
// slices, maps and interfaces: only the outermost value is its own.
type redactor struct{ hid bool }

func (r *redactor) hide(v reflect.Value, depth int) error {
	if depth > maxItemDepth {
		return errors.New("the item is nested too deep, or in a cycle")
	}
	switch v.Kind() {
	case reflect.Struct:
		return r.hideFields(v, depth)
	case reflect.Array:
		return r.hideElements(v, depth)
	case reflect.Slice:
		if v.IsNil() || !mayRedact(v.Type(), map[reflect.Type]bool{}, true) {
			return nil
		}
		own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(own, v)
		v.Set(own)
		return r.hideElements(own, depth)
	case reflect.Map:
		return r.hideValues(v, depth)
	case reflect.Pointer:
		if v.IsNil() || !mayRedact(v.Type(), map[reflect.Type]bool{}, true) {
			return nil
		}
		own := reflect.New(v.Type().Elem())
		own.Elem().Set(v.Elem())
		if !v.CanSet() {
			return fmt.Errorf("a field of type %v cannot be redacted", v.Type())
		}
		v.Set(own)
		return r.hide(own.Elem(), depth+1)
	case reflect.Interface:
		if v.IsNil() {
			return nil
		}
		own := reflect.New(v.Elem().Type()).Elem()
		own.Set(v.Elem())
		if err := r.hide(own, depth+1); err != nil {
			return err
		}
		v.Set(own)
	default:
	}
	return nil
}

func (r *redactor) hideFields(v reflect.Value, depth int) error {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		switch {
		case !f.IsExported() && !f.Anonymous:
		case f.Tag.Get("redact") == "true" && v.Field(i).CanSet():
			r.hid = r.hid || !v.Field(i).IsZero()
			if v.Field(i).Kind() == reflect.String { // even an empty one: its emptiness is hidden too
				v.Field(i).SetString(redactedText)
				r.hid = true
			} else {
				v.Field(i).SetZero()
			}
		case f.Tag.Get("redact") == "true":
			return fmt.Errorf("field %s cannot be redacted", f.Name)
		default:
			if err := r.hide(v.Field(i), depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *redactor) hideElements(v reflect.Value, depth int) error {
	for i := range v.Len() {
		if err := r.hide(v.Index(i), depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (r *redactor) hideValues(v reflect.Value, depth int) error {
	if v.IsNil() || !mayRedact(v.Type(), map[reflect.Type]bool{}, true) {
		return nil
	}
	own := reflect.MakeMapWithSize(v.Type(), v.Len())
	for entries := v.MapRange(); entries.Next(); {
		value := reflect.New(v.Type().Elem()).Elem()
		value.Set(entries.Value())
		if err := r.hide(value, depth+1); err != nil {
			return err
		}
		own.SetMapIndex(entries.Key(), value)
	}
	v.Set(own)
	return nil
}
