package assembly

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.uber.org/dig"
	"go.uber.org/fx"
)

// GroupNeeds has the dependencies of the author's components.
const GroupNeeds = `group:"surfin.needs"`

// Needs are the dependencies of an author's component.
type Needs struct {
	Of    string // such as: processor "price"
	Types []reflect.Type
}

// Missing is the error if nothing provides the dependency.
func (n Needs) Missing(t reflect.Type) error {
	return fmt.Errorf("%s needs a %v: add an fx.Provide of a function that returns one", n.Of, t)
}

// CheckNeeds reports, without building a value, the dependencies of components that neither opts nor module, the
// application's own part, can build.
func CheckNeeds(module fx.Option, opts ...fx.Option) error {
	var needs struct {
		fx.In
		List []Needs `group:"surfin.needs"`
	}
	if err := fx.New(fx.NopLogger, fx.Options(opts...), fx.Populate(&needs)).Err(); err != nil {
		return err
	}
	slices.SortFunc(needs.List, func(a, b Needs) int { return strings.Compare(a.Of, b.Of) }) // fx has any order
	graph := fx.Options(fx.NopLogger, module, fx.Options(opts...))
	if err := fx.ValidateApp(graph); err != nil { // such as a circle of constructors
		return dig.RootCause(err)
	}
	var all []reflect.Type
	for _, n := range needs.List {
		all = append(all, n.Types...)
	}
	if fx.ValidateApp(graph, asking(all...)) == nil {
		return nil
	}
	var errs []error
	for _, n := range needs.List {
		for _, t := range n.Types {
			errs = append(errs, n.check(graph, t))
		}
	}
	return errors.Join(errs...)
}

func asking(types ...reflect.Type) fx.Option {
	f := reflect.MakeFunc(reflect.FuncOf(types, nil, false), func([]reflect.Value) []reflect.Value { return nil })
	return fx.Invoke(f.Interface())
}

func (n Needs) check(graph fx.Option, t reflect.Type) error {
	err := fx.ValidateApp(graph, asking(t))
	if err == nil {
		return nil
	}
	var chain []error // of dig, from the need to the type that nothing provides
	var of dig.Error
	for ; errors.As(err, &of); err = errors.Unwrap(of) {
		chain = append(chain, of)
	}
	if len(chain) > 2 { // a constructor of the author's lacks something
		return fmt.Errorf("%s needs a %v, which cannot be built: %w", n.Of, t, chain[len(chain)-2])
	}
	return n.Missing(t)
}
