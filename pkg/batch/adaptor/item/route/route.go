// Package route is the writer `route`: it passes each item to one of several writers, or to all with a true
// condition.
//
// It imports core with its folders, tx and internal/expression.
package route

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// The writers that receive an item.
const (
	matchFirst = "first"
	matchAll   = "all"
)

// config is the configuration of `route`.
type config struct {
	To    []branch `key:"to" main:"true" required:"true" item:"a route" doc:"The writers, each with its condition; the last one may have none and gets the remaining items."`
	Match string   `key:"match" default:"first" enum:"first,all" doc:"Whether an item goes to the first writer whose condition holds, or to all of them."`
}

// branch is a writer with its condition.
type branch struct {
	When   registry.Expression `key:"when" doc:"A bool expression over item and meta."`
	Writer registry.Nested     `key:"writer" kind:"writer" required:"true" doc:"The writer."`
	Name   string              `key:"name" doc:"The name of its item count in the step's context, route.NAME [its position, from 1]."`
}

var nameForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Validate checks the options that need no item type.
func (c *config) Validate() error {
	if len(c.To) == 0 {
		return &registry.ConfigError{Key: "to", Err: errors.New("the writers are missing: write - {when: EXPRESSION, writer: ...}")}
	}
	names := map[string]bool{}
	for i, way := range c.To {
		switch {
		case way.When.Text == "" && i < len(c.To)-1:
			return &registry.ConfigError{Key: "to", Err: fmt.Errorf("route %d has no condition, so the routes after it would get nothing: write when, or put it last", i+1)}
		case way.Name != "" && !nameForm.MatchString(way.Name):
			return &registry.ConfigError{Key: "to", Err: fmt.Errorf("the name %q of route %d is not an identifier: use letters, digits and _", way.Name, i+1)}
		case names[c.name(i)]:
			return &registry.ConfigError{Key: "to", Err: fmt.Errorf("the name %s is used twice: choose another name", c.name(i))}
		}
		names[c.name(i)] = true
	}
	return nil
}

func (c *config) name(i int) string {
	if c.To[i].Name != "" {
		return c.To[i].Name
	}
	return strconv.Itoa(i + 1)
}

// Components describes `route`.
func Components() []registry.Component {
	return []registry.Component{{
		Kind: registry.KindWriter, Name: "route", Config: reflect.TypeFor[config](),
		Summary: "Sends each item to one of several writers, by conditions.",
		Doc: `All writers write in the chunk's transaction, to one database, and get their items in order.
An item that no writer takes is an invalid item (class ` + "`validate`" + `): add a last writer without a condition, or
filter it before. With ` + "`match: all`" + ` an item goes to every writer whose condition holds.

An item counts once as written. How many each writer got, over all attempts, is ` + "`route.NAME`" + ` in the step's
context: ` + "`promote: {route.rejected: rejected}`" + ` makes it ` + "`context.rejected`" + ` for the following steps.`,
		Example: `job: part
flow:
- step: part
  chunk:
    reader: {csv: {path: in.csv, item: {id: int, name: string}}}
    writer:
      route:
      - {when: item.id < 1000, writer: {table: {name: old_customer, key: [id], create: true}}}
      - {name: rest, writer: {csv: out/rest.csv}}`,
		Types: func(cfg any, in item.Type) (item.Type, error) {
			_, err := compile(cfg.(*config), in)
			return in, err
		},
		New: func(ctx context.Context, cfg any, b registry.BuildContext) (any, error) {
			return newWriter(ctx, *cfg.(*config), b)
		},
	}}
}

func compile(cfg *config, in item.Type) ([]*expression.ItemProgram, error) {
	programs := make([]*expression.ItemProgram, len(cfg.To))
	var errs []error
	for i, way := range cfg.To {
		if _, err := way.Writer.Types(in); err != nil {
			errs = append(errs, err)
		}
		if way.When.Text == "" {
			continue
		}
		program, err := expression.CompileItem(way.When, in)
		if err == nil {
			err = program.Require(row.Bool)
		}
		if err != nil {
			errs = append(errs, &registry.ConfigError{Key: fmt.Sprintf("to.%d.when", i), Err: err})
		}
		programs[i] = program
	}
	return programs, errors.Join(errs...)
}
