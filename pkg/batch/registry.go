package batch

import (
	"errors"
	"slices"
	"strings"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/errorclass"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/migration"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

type names struct {
	fx.In
	Items    []registry.NamedItem `group:"surfin.items"`
	Matchers []exception.Matcher  `group:"surfin.matchers"`
}

// described have no New: fx builds none of their dependencies.
type described struct {
	fx.In
	Components []registry.Component `group:"surfin.described"`
	Names      names
}

type built struct {
	fx.In
	Components []registry.Component `group:"surfin.components"`
	Migrations []migration.Source   `group:"surfin.migrations"`
	Names      names
}

// assemble orders matchers by name: fx returns groups in any order.
func assemble(author []registry.Component, n names, sources []migration.Source) (*registry.Registry, error) {
	slices.SortFunc(n.Matchers, func(a, b exception.Matcher) int { return strings.Compare(a.Name, b.Name) })
	matchers, merr := exception.NewMatchers(append(errorclass.Stock(), n.Matchers...)...)
	r, err := registry.New(append(stock(sources), author...), n.Items, matchers)
	if err := errors.Join(err, merr); err != nil {
		return nil, err
	}
	return r, nil
}

func newRegistry(b built) (*registry.Registry, error) {
	return assemble(b.Components, b.Names, b.Migrations)
}

// NewRegistry returns the shipped components and those of opts, to list, check and describe them. The author's
// components have no New. Names used twice are an error.
func NewRegistry(opts ...fx.Option) (*registry.Registry, error) {
	r, _, err := describeAll(opts...)
	return r, err
}

// Describe is NewRegistry plus a check of the jobs of Jobs and JobFiles; files holds the latter by name.
func Describe(opts ...fx.Option) (r *registry.Registry, files map[string]*jobfile.File, err error) {
	r, jobs, err := describeAll(opts...)
	if err != nil {
		return nil, nil, err
	}
	if files, err = jobs.load(r); err != nil {
		return nil, nil, err
	}
	return r, files, nil
}

func describeAll(opts ...fx.Option) (r *registry.Registry, jobs carried, err error) {
	var invalid error
	app := fx.New(fx.NopLogger, fx.Options(opts...), fx.Invoke(func(d described, c carried) {
		r, invalid = assemble(d.Components, d.Names, nil)
		jobs = c
	}))
	if err := errors.Join(app.Err(), invalid); err != nil {
		return nil, carried{}, err
	}
	return r, jobs, nil
}
