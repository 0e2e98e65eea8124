package encode

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Value encodes a configuration: a map, a struct with the field tags of registry.Component, or one of their
// values. Zero fields of a struct are left out; nil means no value.
func Value(v any) (any, error) {
	switch x := v.(type) {
	case nil:
		return nil, nil
	case time.Duration:
		return x.String(), nil
	case core.Date:
		return x.String(), nil
	case time.Time:
		return x.UTC().Format(time.RFC3339Nano), nil
	case registry.Expression:
		return x.Text, nil
	case registry.Expressions:
		fields := Object{}
		for _, e := range x {
			fields = append(fields, Pair{e.Name, e.Text})
		}
		return fields, nil
	case registry.SQL:
		if len(x.Args) > 0 {
			return nil, errors.New("a statement with values cannot be given: write ${params.NAME} in its text")
		}
		return x.String(), nil
	case item.Type:
		return encodeItem(x)
	}
	return encodeKind(reflect.ValueOf(v))
}

func encodeKind(v reflect.Value) (any, error) {
	switch v.Kind() {
	case reflect.String:
		return v.String(), nil
	case reflect.Bool:
		return strconv.FormatBool(v.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.FormatUint(v.Uint(), 10), nil
	case reflect.Float32, reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'g', -1, v.Type().Bits()), nil
	case reflect.Pointer:
		if v.IsNil() {
			return nil, nil
		}
		return Value(v.Elem().Interface())
	case reflect.Slice, reflect.Array:
		items := List{}
		for i := range v.Len() {
			item, err := Value(v.Index(i).Interface())
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i+1, err)
			}
			items = append(items, item)
		}
		return items, nil
	case reflect.Map:
		return encodeMap(v)
	case reflect.Struct:
		return encodeStruct(v)
	default:
		return nil, fmt.Errorf("a %v cannot be part of a configuration", v.Type())
	}
}

func encodeMap(v reflect.Value) (any, error) {
	if v.Type().Key().Kind() != reflect.String {
		return nil, fmt.Errorf("a %v cannot be part of a configuration: its keys are no strings", v.Type())
	}
	values := map[string]any{}
	for _, key := range v.MapKeys() {
		values[key.String()] = v.MapIndex(key).Interface()
	}
	fields := Object{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value, err := Value(values[key])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		if value != nil {
			fields = append(fields, Pair{key, value})
		}
	}
	return fields, nil
}

func encodeStruct(v reflect.Value) (any, error) {
	fields := Object{}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		key := f.Tag.Get("key")
		if !f.IsExported() || v.Field(i).IsZero() {
			continue
		}
		if key == "" && !f.Anonymous {
			return nil, fmt.Errorf("a %v cannot be part of a configuration: %s has no key", v.Type(), f.Name)
		}
		value, err := Value(v.Field(i).Interface())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		inner, nested := value.(Object)
		switch {
		case nested && (f.Anonymous || f.Tag.Get("rest") == "true"):
			fields = append(fields, inner...)
		case value != nil:
			fields = append(fields, Pair{key, value})
		}
	}
	return fields, nil
}

func encodeItem(t item.Type) (any, error) {
	if t.GoType() != reflect.TypeFor[item.Row]() {
		if t.Name() == "" {
			return nil, fmt.Errorf("the item type %v has no name: register it with batch.Item, and give its name", t.GoType())
		}
		return t.Name(), nil
	}
	fields := Object{}
	schema := t.Schema()
	for i := range schema.Len() {
		f := schema.Field(i)
		kind := f.Kind.String()
		if f.Nullable {
			kind += " null"
		}
		field := Object{{"type", kind}}
		field.Put("from", f.From)
		field.Put("format", f.Format)
		if f.Scale != nil {
			field.Put("scale", strconv.Itoa(*f.Scale))
		}
		field.Put("decimal_separator", f.DecimalSeparator)
		field.Put("thousands_separator", f.ThousandsSeparator)
		field.Flag("trailing_minus", f.TrailingMinus)
		if f.Zone != nil {
			field.Put("zone", f.Zone.String())
		}
		field.Put("null_if", ListOf(f.Nulls))
		field.Put("true", ListOf(f.Trues))
		field.Put("false", ListOf(f.Falses))
		if !f.Default.IsNull() {
			field = append(field, Pair{"default", f.Default.String()})
		}
		if f.Coerce != row.CoerceError {
			field.Put("coerce", f.Coerce.String())
		}
		field.Flag("exact", f.Exact)
		field.Flag("optional", f.Optional)
		fields = append(fields, Pair{f.Name, field})
	}
	return fields, nil
}

// ListOf is a list of texts.
func ListOf(texts []string) List {
	all := List{}
	for _, text := range texts {
		all = append(all, text)
	}
	return all
}
