package registry

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// Registry holds components, item types and error classes by name; immutable, zero is empty.
type Registry struct {
	components map[key]Component
	items      map[string]item.Type
	matchers   *exception.Matchers
}

type key struct {
	kind Kind
	name string
}

// NamedItem is an item type by name.
type NamedItem struct {
	Name string
	Type item.Type
}

// New checks and indexes components; nil matchers means none. The error lists all duplicates.
func New(components []Component, items []NamedItem, matchers *exception.Matchers) (*Registry, error) {
	r := &Registry{components: map[key]Component{}, items: map[string]item.Type{}, matchers: matchers}
	var errs []error
	for _, c := range components {
		k := key{c.Kind, c.Name}
		if _, twice := r.components[k]; twice {
			errs = append(errs, fmt.Errorf("%s %q is registered twice", c.Kind, c.Name))
			continue
		}
		if c.Config != nil && c.Config.Kind() != reflect.Struct {
			errs = append(errs, fmt.Errorf("%s %q: its config is a %v, not a struct", c.Kind, c.Name, c.Config))
		}
		r.components[k] = c
	}
	for _, it := range items {
		if _, twice := r.items[it.Name]; twice {
			errs = append(errs, fmt.Errorf("item type %q is registered twice", it.Name))
		}
		r.items[it.Name] = it.Type
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return r, errors.Join(errs...)
}

// Map applies change to every component; it keeps Kind and Name.
func (r *Registry) Map(change func(Component) Component) *Registry {
	out := &Registry{components: make(map[key]Component, len(r.components)), items: r.items, matchers: r.matchers}
	for k, c := range r.components {
		out.components[k] = change(c)
	}
	return out
}

// Component returns a component.
func (r *Registry) Component(kind Kind, name string) (Component, bool) {
	c, ok := r.components[key{kind, name}]
	return c, ok
}

// Components are by kind in pipeline order, then name.
func (r *Registry) Components() []Component {
	var list []Component
	for _, kind := range Kinds() {
		for _, name := range r.Names(kind) {
			list = append(list, r.components[key{kind, name}])
		}
	}
	return list
}

// Names of one kind are sorted.
func (r *Registry) Names(kind Kind) []string {
	var names []string
	for k := range r.components {
		if k.kind == kind {
			names = append(names, k.name)
		}
	}
	slices.Sort(names)
	return names
}

// Matchers are the error classes.
func (r *Registry) Matchers() *exception.Matchers {
	if r.matchers == nil {
		return &exception.Matchers{}
	}
	return r.matchers
}

// Item is the type registered under name.
func (r *Registry) Item(name string) (item.Type, bool) {
	t, ok := r.items[name]
	return t, ok
}

// ItemNames are sorted.
func (r *Registry) ItemNames() []string { return slices.Sorted(maps.Keys(r.items)) }
