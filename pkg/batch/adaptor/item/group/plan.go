package group

import (
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

type plan struct {
	rows   item.Type
	key    []*expression.ItemProgram
	starts *expression.ItemProgram // nil: there is a key
	sorted bool
	most   int
	fields []aggregate
	schema *row.Schema
}

func compile(cfg *config) (*plan, error) {
	rows, err := cfg.Reader.Types(nil)
	if err != nil {
		return nil, err
	}
	for _, p := range cfg.Processor {
		if rows, err = p.Types(rows); err != nil {
			return nil, err
		}
	}
	p := &plan{rows: rows, sorted: cfg.Sorted, most: int(cfg.MaxGroup)}
	if p.most == 0 {
		p.most = defaultMaxGroup
	}
	var fields []row.Field
	var errs []error
	for _, name := range cfg.Key {
		program, err := expression.CompileItem(registry.Expression{Text: fmt.Sprintf("item[%q]", name)}, rows)
		if err != nil {
			hint := ""
			if s := rows.Schema(); s != nil {
				hint = nearest.Hint(name, s.Names())
			}
			errs = append(errs, &registry.ConfigError{Key: "key", Err: fmt.Errorf("the rows have no field %s%s", name, hint)})
			continue
		}
		p.key = append(p.key, program)
		fields = append(fields, row.Field{Name: name, Kind: program.Kind(), Nullable: program.Nullable()})
	}
	if cfg.Starts.Text != "" {
		if p.starts, err = expression.CompileItem(cfg.Starts, rows); err == nil {
			err = p.starts.Require(row.Bool)
		}
		if err != nil {
			errs = append(errs, &registry.ConfigError{Key: "starts", Err: err})
		}
	}
	for _, e := range cfg.Fields {
		a, err := newAggregate(e, rows)
		if err != nil {
			errs = append(errs, &registry.ConfigError{Key: "fields." + e.Name, Err: err})
			continue
		}
		p.fields, fields = append(p.fields, a), append(fields, a.field)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	p.schema, err = row.NewSchema(fields...)
	if err != nil {
		return nil, &registry.ConfigError{Key: "fields", Err: err}
	}
	return p, nil
}
