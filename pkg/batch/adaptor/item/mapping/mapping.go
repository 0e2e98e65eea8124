// Package mapping is the processor `map`: it makes rows out of items by one expression per field.
//
// It imports core with its folders and internal/expression.
package mapping

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// config is the configuration of `map`.
type config struct {
	Only   bool                 `key:"only" default:"false" doc:"Keep only the fields named here; otherwise they are added to the item's fields."`
	Fields registry.Expressions `key:"fields" rest:"true" doc:"The value of each field: an expression over item, meta and params."`
}

// Validate refuses a configuration that changes nothing, or repeats a name.
func (c *config) Validate() error {
	if len(c.Fields) == 0 {
		return errors.New("map needs at least one field, such as map: {name: trim(item.name)}")
	}
	seen := map[string]bool{}
	for _, f := range c.Fields {
		if seen[f.Name] {
			return &registry.ConfigError{Key: "fields." + f.Name, Err: errors.New("the field is listed twice")}
		}
		seen[f.Name] = true
	}
	return nil
}

// Components describes `map`.
func Components() []registry.Component {
	return []registry.Component{{
		Kind:    registry.KindProcessor,
		Name:    "map",
		Summary: "Sets the fields of a row by expressions.",
		Doc: "A field that the item has keeps its position and gets the type of the expression; any other field is added " +
			"at the end. With `only: true` the row has the fields named here and no others. All expressions see the item as " +
			"it came in. A Go type becomes a row. A field is nullable if its expression may be null.",
		Example: `job: convert
flow:
- step: convert
  chunk:
    reader: {csv: {path: in.csv, item: {id: int, name: string, species: {type: string null, null_if: [""]}}}}
    processor:
      map:
        only: true
        id: item.id
        name: trim(item.name)
        species: item.species ?? 'unknown'
    writer: {jsonl: out/strikes.jsonl}`,
		Config: reflect.TypeFor[config](),
		Types: func(cfg any, in item.Type) (item.Type, error) {
			p, err := compile(cfg.(*config), in)
			if err != nil {
				return nil, err
			}
			return item.RowOf("", p.schema), nil
		},
		New: func(_ context.Context, cfg any, b registry.BuildContext) (any, error) {
			p, err := compile(cfg.(*config), b.In)
			if err != nil {
				return nil, err
			}
			// The next stage compares schemas by identity first.
			if b.Out != nil && b.Out.Schema().SameShape(p.schema) {
				p.schema = b.Out.Schema()
			}
			return p, nil
		},
	}}
}

// newProcessor returns the processor for items of type in.
func newProcessor(cfg config, in item.Type) (item.Processor, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return compile(&cfg, in)
}

func compile(cfg *config, in item.Type) (*processor, error) {
	p := &processor{in: in, copies: !cfg.Only && in.GoType() == reflect.TypeFor[item.Row]()}
	var fields []row.Field
	var errs []error
	if !cfg.Only {
		if in.Schema() == nil {
			return nil, &registry.ConfigError{Key: "only", Err: fmt.Errorf("the fields of %s are not known: set only: true", in.Name())}
		}
		fields = in.Schema().Fields()
		p.open = in.Schema().IsOpen()
	}
	if !p.copies {
		for i, f := range fields {
			if err := p.keep(i, f.Name, in); err != nil {
				return nil, err
			}
		}
	}
	for _, e := range cfg.Fields {
		program, err := expression.CompileItem(e.Expression, in)
		if err == nil && program.Kind() == row.Null {
			err = &expression.Error{Offset: program.Offset(), Msg: "this is always null, so the field has no type"}
		}
		if err != nil {
			errs = append(errs, &registry.ConfigError{Key: "fields." + e.Name, Err: err})
			continue
		}
		field := row.Field{Name: e.Name, Kind: program.Kind(), Nullable: program.Nullable()}
		p.set(setField(&fields, field), e.Name, program)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	construct := row.NewSchema
	if p.open {
		construct = row.Open
	}
	var err error
	p.schema, err = construct(fields...)
	return p, err
}

// A field that keeps its type also keeps its text form.
func setField(fields *[]row.Field, field row.Field) int {
	for i, old := range *fields {
		if old.Name != field.Name {
			continue
		}
		field.From = old.From
		if old.Kind == field.Kind {
			field.Format, field.Zone, field.Nulls = old.Format, old.Zone, old.Nulls
			field.Trues, field.Falses = old.Trues, old.Falses
		}
		(*fields)[i] = field
		return i
	}
	*fields = append(*fields, field)
	return len(*fields) - 1
}

func (p *processor) keep(i int, name string, in item.Type) error {
	program, err := expression.CompileItem(registry.Expression{Text: "item[" + strconv.Quote(name) + "]"}, in)
	if err != nil {
		return fmt.Errorf("field %s of %s: %w", name, in.Name(), err)
	}
	p.set(i, name, program)
	return nil
}

func (p *processor) set(i int, name string, program *expression.ItemProgram) {
	for j := range p.assigns {
		if p.assigns[j].index == i {
			p.assigns[j].program = program
			return
		}
	}
	p.assigns = append(p.assigns, assign{index: i, name: name, program: program})
}
