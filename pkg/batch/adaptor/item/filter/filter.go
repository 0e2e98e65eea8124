// Package filter is the processor `filter`: items for which an expression is false are counted as filtered
// (rule C4).
//
// It imports core with its folders and internal/expression.
package filter

import (
	"context"
	"fmt"
	"reflect"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// config is the configuration of `filter`.
type config struct {
	When registry.Expression `key:"when" main:"true" required:"true" doc:"A bool expression over item, meta and params. Items for which it is false are filtered out."`
}

// Components describes `filter`.
func Components() []registry.Component {
	return []registry.Component{{
		Kind:    registry.KindProcessor,
		Name:    "filter",
		Summary: "Keeps the items for which an expression is true.",
		Doc: "Other items are left out and counted as `filtered`. " +
			"The expression must be a bool that is never null: a nullable field needs `??` or a nil test. " +
			"It works with rows and Go types. An item for which it fails is an `expression` error (`invalid_item`).",
		Example: `job: load
parameters: {year: {type: int}}
flow:
- step: load
  chunk:
    reader: {csv: {path: in.csv, item: {id: int, name: string, date: date}}}
    processor: {filter: year(item.date) >= params.year}
    writer: {table: {name: customer, key: [id], create: true}}`,
		Config: reflect.TypeFor[config](),
		Types: func(cfg any, in item.Type) (item.Type, error) {
			_, err := compile(cfg.(*config), in)
			return in, err
		},
		New: func(_ context.Context, cfg any, b registry.BuildContext) (any, error) {
			return newProcessor(*cfg.(*config), b.In)
		},
	}}
}

// newProcessor returns the processor for items of type in.
func newProcessor(cfg config, in item.Type) (item.Processor, error) {
	program, err := compile(&cfg, in)
	if err != nil {
		return nil, err
	}
	return &expression.Guard{In: in, Check: func(f *expression.Frame) error {
		keep, err := program.Eval(f)
		switch {
		case err != nil:
			return fmt.Errorf("filter: %w", err)
		case !keep.Bool():
			return item.ErrFilter
		}
		return nil
	}}, nil
}

func compile(cfg *config, in item.Type) (*expression.ItemProgram, error) {
	program, err := expression.CompileItem(cfg.When, in)
	if err == nil {
		err = program.Require(row.Bool)
	}
	if err != nil {
		return nil, &registry.ConfigError{Key: "when", Err: err}
	}
	return program, nil
}
