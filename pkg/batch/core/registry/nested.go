package registry

import (
	"context"
	"fmt"
	"reflect"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// Nested is a component in another's config: `reader: {csv: in.csv}`. Tags: `kind:"reader"`, and
// `given:"path"` for a key the outer sets. Zero is none.
type Nested struct {
	Component Component
	// Config points to Component.Config's type; or nil.
	Config any
	// Locate adds the job file's position to an error; nil means none.
	Locate func(err error) error
	// Checked gets Types' result; may be nil.
	Checked func(in, out item.Type)
}

// IsZero reports no component.
func (n Nested) IsZero() bool { return n.Component.Name == "" }

// Types is the output type for items of in. The outer calls it in its own Types, and returns the error
// unchanged.
func (n Nested) Types(in item.Type) (out item.Type, err error) {
	switch {
	case n.Component.Types != nil:
		if out, err = n.Component.Types(n.Config, in); err != nil {
			return nil, n.located(err)
		}
	case n.Component.Kind != KindReader:
		out = in
	}
	if out == nil && n.Component.Kind != KindWriter {
		return nil, n.located(fmt.Errorf("%s %s does not declare the type of its output items", n.Component.Kind, n.Component.Name))
	}
	if n.Checked != nil {
		n.Checked(in, out)
	}
	return out, nil
}

func (n Nested) located(err error) error {
	if n.Locate == nil {
		return err
	}
	return n.Locate(err)
}

// With sets one key of type string.
func (n Nested) With(key, text string) (Nested, error) {
	if n.Component.Config == nil {
		return n, fmt.Errorf("%s %s has no key %s", n.Component.Kind, n.Component.Name, key)
	}
	config := reflect.New(n.Component.Config)
	config.Elem().Set(reflect.ValueOf(n.Config).Elem())
	for i := range n.Component.Config.NumField() {
		if f := n.Component.Config.Field(i); f.Tag.Get("key") == key && f.Type.Kind() == reflect.String {
			config.Elem().Field(i).SetString(text)
			n.Config = config.Interface()
			return n, nil
		}
	}
	return n, fmt.Errorf("%s %s has no key %s", n.Component.Kind, n.Component.Name, key)
}

func (n Nested) make(ctx context.Context, b BuildContext, in, out item.Type) (any, error) {
	c := n.Component
	if b.Registry != nil {
		c, _ = b.Registry.Component(c.Kind, c.Name)
	}
	if c.New == nil {
		return nil, fmt.Errorf("this application cannot create %s %s: its registry only describes it", n.Component.Kind, n.Component.Name)
	}
	b.In, b.Out = in, out
	made, err := c.New(ctx, n.Config, b)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", c.Kind, c.Name, err)
	}
	return made, nil
}

// MakeNested makes a nested T for items of in, and returns its output type.
func MakeNested[T any](ctx context.Context, n Nested, b BuildContext, in item.Type) (made T, out item.Type, err error) {
	if out, err = n.Types(in); err != nil {
		return made, nil, err
	}
	instance, err := n.make(ctx, b, in, out)
	if err != nil {
		return made, nil, err
	}
	made, ok := instance.(T)
	if !ok {
		return made, nil, fmt.Errorf("the constructor of %s %s made a %T, which is not a %s", n.Component.Kind, n.Component.Name, instance, n.Component.Kind)
	}
	return made, out, nil
}
