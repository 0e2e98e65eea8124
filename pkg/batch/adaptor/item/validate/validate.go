// Package validate is the processor `validate`: items that break a rule are invalid, of class `validate`.
//
// It imports core with its folders and internal/expression.
package validate

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/fault"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// config is the configuration of `validate`.
type config struct {
	Rule  registry.Expression  `key:"rule" main:"true" doc:"One rule without a name: a bool expression over item, meta and params."`
	Rules registry.Expressions `key:"rules" rest:"true" doc:"Named rules. All of them must be true."`
}

// Validate refuses a configuration without any rule.
func (c *config) Validate() error {
	if c.Rule.Text == "" && len(c.Rules) == 0 {
		return errors.New("validate needs a rule, such as validate: {cost_positive: item.cost >= 0}")
	}
	return nil
}

// Components describes `validate`.
func Components() []registry.Component {
	return []registry.Component{{
		Kind:    registry.KindProcessor,
		Name:    "validate",
		Summary: "Rejects items that break a rule.",
		Doc: "Every rule is a bool expression that is never null. An item that breaks one is a `validate` error " +
			"(`invalid_item`): the step fails, or skips the item if `skip` allows it. The message names all broken rules " +
			"with the values they used. It works with rows and Go types.",
		Example: `job: load
flow:
- step: load
  chunk:
    reader: {csv: {path: in.csv, item: {id: int, airport: {type: string null, null_if: [""]}, cost: decimal}}}
    processor:
      validate:
        cost_positive: item.cost >= 0
        has_airport: item.airport != nil and len(item.airport) > 0
    writer: {table: {name: strike, key: [id], create: true}}
    skip: {limit: 10}`,
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
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	rules, err := compile(&cfg, in)
	if err != nil {
		return nil, err
	}
	return &expression.Guard{In: in, Check: func(f *expression.Frame) error { return check(rules, f) }}, nil
}

// the name is empty if it is the only rule
type rule struct {
	name    string
	program *expression.ItemProgram
	field   string // the only one that it uses
}

func (r rule) String() string {
	if r.name == "" {
		return "the rule"
	}
	return "rule " + r.name
}

func compile(cfg *config, in item.Type) ([]rule, error) {
	var rules []rule
	var errs []error
	add := func(name, key string, e registry.Expression) {
		program, err := expression.CompileItem(e, in)
		if err == nil {
			err = program.Require(row.Bool)
		}
		if err != nil {
			errs = append(errs, &registry.ConfigError{Key: key, Err: err})
			return
		}
		rules = append(rules, rule{name, program, onlyField(program.Vars())})
	}
	if cfg.Rule.Text != "" {
		add("", "rule", cfg.Rule)
	}
	for _, e := range cfg.Rules {
		add(e.Name, "rules."+e.Name, e.Expression)
	}
	return rules, errors.Join(errs...)
}

func onlyField(paths []string) (field string) {
	for _, path := range paths {
		rest, is := strings.CutPrefix(path, "item.")
		switch name, _, _ := strings.Cut(rest, "."); {
		case !is:
		case field != "" && field != name:
			return ""
		default:
			field = name
		}
	}
	return field
}

// For a rule that cannot be computed, its error is enough, without the value.
func check(rules []rule, f *expression.Frame) error {
	var broken []error
	for _, r := range rules {
		holds, err := r.program.Eval(f)
		if err != nil {
			return fault.At(fault.Place{Field: r.field}, fmt.Errorf("validate: %s: %w", r, err))
		}
		if holds.Bool() {
			continue
		}
		used := ""
		if values := r.program.Used(f); values != "" {
			used = ", with " + values
		}
		broken = append(broken, fault.At(fault.Place{Field: r.field}, fmt.Errorf("%s is broken: `%s`%s", r, r.program.Text(), used)))
	}
	switch len(broken) {
	case 0:
		return nil
	case 1:
		return exception.InvalidItem("validate", exception.ClassValidate, broken[0])
	}
	return exception.InvalidItem("validate", exception.ClassValidate, errors.Join(broken...))
}
