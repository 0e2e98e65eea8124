package batch

import (
	"errors"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// descriptions are what reach the registry without building anything else.
type descriptions struct {
	fx.In
	Components []core.Component `group:"surfin.components"`
	Items      []core.NamedItem `group:"surfin.items"`
}

// NewRegistry returns the descriptions of the shipped components and of those
// that opts register: enough to list, check and describe. No factory and none of
// their dependencies is built. Names used twice are an error that lists all.
func NewRegistry(opts ...fx.Option) (*core.Registry, error) {
	var registry *core.Registry
	var invalid error
	app := fx.New(fx.NopLogger, stock(), fx.Options(opts...), fx.Invoke(func(d descriptions) {
		registry, invalid = core.NewRegistry(d.Components, d.Items)
	}))
	if err := errors.Join(app.Err(), invalid); err != nil {
		return nil, err
	}
	return registry, nil
}
