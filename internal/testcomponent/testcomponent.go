// Package testcomponent configures shipped components in tests of other packages: a component exports
// Components and nothing else.
//
// It imports core/registry and tx. Only tests import it.
package testcomponent

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Settings are values of a configuration by the keys of job files.
type Settings map[string]any

// Nested returns the component of a kind with a configuration. It panics if there is none.
func Nested(components []registry.Component, kind registry.Kind, settings Settings) registry.Nested {
	for _, c := range components {
		if c.Kind == kind {
			return registry.Nested{Component: c, Config: Config(c, settings)}
		}
	}
	panic(fmt.Sprintf("no %s among the components", kind))
}

// Named returns the components with a name.
func Named(components []registry.Component, name string) []registry.Component {
	return slices.DeleteFunc(components, func(c registry.Component) bool { return c.Name != name })
}

// Make makes a component and returns it as a T: itself, or the reader or writer of records inside.
func Make[T any](components []registry.Component, kind registry.Kind, settings Settings, b registry.BuildContext) (T, error) {
	var none T
	n := Nested(components, kind, settings)
	made, err := n.Component.New(context.Background(), n.Config, b)
	if err != nil {
		return none, err
	}
	if made, ok := made.(T); ok {
		return made, nil
	}
	return made.(interface{ Component() any }).Component().(T), nil //nolint:forcetypeassert // the test knows it
}

// On provides one database by every name.
type On struct{ DB tx.Database }

// Database returns the database.
func (o On) Database(string) (tx.Database, error) { return o.DB, nil }

// Names returns the default name.
func (On) Names() []string { return []string{tx.Default} }

// ForceReconnect does nothing.
func (On) ForceReconnect(context.Context, string) error { return nil }

// Config returns a pointer to a configuration of the component.
func Config(c registry.Component, settings Settings) any {
	config := reflect.New(c.Config)
	set(config.Elem(), settings)
	return config.Interface()
}

// set sets v to a value; Settings are a struct, or a map of structs.
func set(v reflect.Value, value any) {
	settings, nested := value.(Settings)
	switch list, isList := value.([]Settings); {
	case isList:
		v.Set(reflect.MakeSlice(v.Type(), len(list), len(list)))
		for i, each := range list {
			set(v.Index(i), each)
		}
	case !nested:
		v.Set(reflect.ValueOf(value).Convert(v.Type()))
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		set(v.Elem(), settings)
	case v.Kind() == reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for key, each := range settings {
			element := reflect.New(v.Type().Elem()).Elem()
			set(element, each)
			v.SetMapIndex(reflect.ValueOf(key), element)
		}
	default:
		for key, each := range settings {
			set(fieldOf(v, key), each)
		}
	}
}

func fieldOf(config reflect.Value, key string) reflect.Value {
	for _, f := range reflect.VisibleFields(config.Type()) {
		if f.Tag.Get("key") == key {
			return config.FieldByIndex(f.Index)
		}
	}
	panic(fmt.Sprintf("%s has no key %s", config.Type(), key))
}
