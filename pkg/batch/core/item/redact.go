package item

import (
	"errors"
	"fmt"
	"reflect"
)

// HidesFields reports whether items of the buffer have masked fields: then no text of such an item may
// be stored, as the location of the field in it is unknown.
func HidesFields(items Items) bool {
	typed, ok := items.(interface{ elem() reflect.Type })
	return !ok || hidesFields(typed.elem())
}

func hidesFields(t reflect.Type) bool { return mayRedact(t, map[reflect.Type]bool{}, false) }

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

// redactedText replaces a text that a redact tag hides.
const redactedText = "***"

// maxItemDepth bounds the depth of redaction; encoding/json also gives up on a deeper item, as it may
// be a cycle.
const maxItemDepth = 1000

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
