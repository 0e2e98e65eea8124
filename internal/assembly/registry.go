// Package assembly puts together the components, the jobs and the handlers of an application: the shipped ones, and
// those of the fx options that package batch returns. It describes them without building their dependencies.
//
// It imports the adaptors, internal/jobfile, internal/operator, internal/runtime and fx. Package batch builds the
// application with it, pkg/batch/cli the command.
package assembly

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/errorclass"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/migration"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// The fx value groups that package batch fills and this one reads.
const (
	GroupDescribed    = `group:"surfin.described,flatten"`
	GroupItems        = `group:"surfin.items,flatten"`
	GroupMatchers     = `group:"surfin.matchers,flatten"`
	GroupMigrations   = `group:"surfin.migrations,flatten"`
	GroupComponents   = `group:"surfin.components,flatten"`
	GroupDefinitions  = `group:"surfin.definitions,flatten"`
	GroupHandlerTypes = `group:"surfin.handlertypes"`
)

// Definition is a job that an application registers: a job file, or a job in Go.
type Definition interface {
	Load(r *registry.Registry) (*jobfile.File, error)
}

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
	Jobs       Jobs
}

// Built are the components with their dependencies.
type Built struct {
	fx.In
	Components []registry.Component `group:"surfin.components"`
	Migrations []migration.Source   `group:"surfin.migrations"`
	Names      names
}

// Registry has the shipped components and b's.
func (b Built) Registry() (*registry.Registry, error) {
	return assemble(b.Components, b.Names, b.Migrations)
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

// Jobs are the registered jobs.
type Jobs struct {
	fx.In
	List []Definition `group:"surfin.definitions"`
}

// Load checks the jobs and returns them by name.
func (j Jobs) Load(r *registry.Registry) (map[string]*jobfile.File, error) {
	files := map[string]*jobfile.File{}
	var errs []error
	for _, d := range j.List {
		file, err := d.Load(r)
		switch {
		case err != nil:
			errs = append(errs, err)
		case files[file.Name()] != nil:
			errs = append(errs, fmt.Errorf("there are two jobs named %s", file.Name()))
		default:
			files[file.Name()] = file
		}
	}
	return files, errors.Join(errs...)
}

// NewRegistry returns the shipped components and the options', to list, check and describe them. The author's
// components have no New. Names used twice are an error.
func NewRegistry(opts ...fx.Option) (*registry.Registry, error) {
	r, _, err := describe(opts...)
	return r, err
}

// Describe is NewRegistry plus a check of the registered jobs, which it returns by name.
func Describe(opts ...fx.Option) (*registry.Registry, map[string]*jobfile.File, error) {
	r, jobs, err := describe(opts...)
	if err != nil {
		return nil, nil, err
	}
	files, err := jobs.Load(r)
	if err != nil {
		return nil, nil, err
	}
	return r, files, nil
}

func describe(opts ...fx.Option) (r *registry.Registry, jobs Jobs, err error) {
	var invalid error
	app := fx.New(fx.NopLogger, fx.Options(opts...), fx.Invoke(func(d described) {
		r, invalid = assemble(d.Components, d.Names, nil)
		jobs = d.Jobs
	}))
	return r, jobs, errors.Join(app.Err(), invalid)
}
