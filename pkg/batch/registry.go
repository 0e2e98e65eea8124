package batch

import (
	"errors"
	"slices"
	"strings"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/errorclass"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// descriptions are what reach the registry without building anything else.
type descriptions struct {
	fx.In
	Components []core.Component    `group:"surfin.components"`
	Items      []core.NamedItem    `group:"surfin.items"`
	Matchers   []exception.Matcher `group:"surfin.matchers"`
}

// registry checks all of them; what is there twice is refused together. fx hands
// groups over in any order, and the order of matchers tells something.
func (d descriptions) registry() (*core.Registry, error) {
	r, err := core.NewRegistry(d.Components, d.Items)
	slices.SortFunc(d.Matchers, func(a, b exception.Matcher) int { return strings.Compare(a.Name, b.Name) })
	matchers, merr := exception.NewMatchers(append(errorclass.Stock(), d.Matchers...)...)
	if err := errors.Join(err, merr); err != nil {
		return nil, err
	}
	return r.WithMatchers(matchers), nil
}

// NewRegistry returns the descriptions of the shipped components and of those
// that opts register: enough to list, check and describe. No factory and none of
// their dependencies is built. Names used twice are an error that lists all.
func NewRegistry(opts ...fx.Option) (*core.Registry, error) {
	var registry *core.Registry
	var invalid error
	app := fx.New(fx.NopLogger, stock(), fx.Options(opts...), fx.Invoke(func(d descriptions) {
		registry, invalid = d.registry()
	}))
	if err := errors.Join(app.Err(), invalid); err != nil {
		return nil, err
	}
	return registry, nil
}
