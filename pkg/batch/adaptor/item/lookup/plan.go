package lookup

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

const defaultMemory = 64 << 20

func compile(cfg *config, in item.Type) (*plan, error) {
	switch schema := in.Schema(); {
	case in.GoType() != reflect.TypeFor[item.Row]():
		return nil, &registry.ConfigError{Key: "key", Err: fmt.Errorf("lookup adds fields to rows, but %s is a Go type: put map: {...} before it", in.Name())}
	case schema == nil || schema.IsOpen():
		return nil, &registry.ConfigError{Key: "key", Err: errors.New("the fields of the items are known only when they are read: name them with item in the reader, or with a map that has only: true")}
	}
	other := cfg.Item
	if !cfg.From.IsZero() {
		var err error
		if other, err = cfg.From.Types(nil); err != nil {
			return nil, err
		}
	}
	if other == nil || other.GoType() != reflect.TypeFor[item.Row]() || other.Schema().IsOpen() {
		key := "item"
		if !cfg.From.IsZero() {
			key = "from"
		}
		return nil, &registry.ConfigError{Key: key, Err: errors.New("the fields of its rows are not known: name them with item: {FIELD: TYPE}")}
	}
	p := &plan{in: in, other: other.Schema(), missing: cfg.Missing}
	err := errors.Join(p.keys(cfg), p.takes(cfg))
	if err == nil {
		err = p.defaults(cfg)
	}
	return p, err
}

func (p *plan) keys(cfg *config) error {
	var errs []error
	bad := func(name string, err error) {
		errs = append(errs, &registry.ConfigError{Key: "key." + name, Err: err})
	}
	for _, e := range cfg.Key {
		at := p.other.Index(e.Name)
		if at < 0 {
			bad(e.Name, fmt.Errorf("the rows that are looked up have no field %s%s", e.Name, nearest.Hint(e.Name, p.other.Names())))
			continue
		}
		program, err := expression.CompileItem(e.Expression, p.in)
		if err == nil && program.Kind() != p.other.Field(at).Kind {
			err = fmt.Errorf("%s is of type %s, but it is compared with a %s: write %s(...)", e.Name, p.other.Field(at).Kind, program.Kind(), p.other.Field(at).Kind)
		}
		if err != nil {
			bad(e.Name, err)
			continue
		}
		p.key = append(p.key, keyPart{name: e.Name, at: at, program: program})
	}
	return errors.Join(errs...)
}

func (p *plan) takes(cfg *config) error {
	names := cfg.Take
	if len(names) == 0 {
		names = slices.DeleteFunc(p.other.Names(), func(name string) bool {
			return slices.ContainsFunc(cfg.Key, func(e registry.NamedExpression) bool { return e.Name == name })
		})
	}
	fields := p.in.Schema().Fields()
	p.width = len(fields)
	for _, name := range names {
		at := p.other.Index(name)
		switch {
		case at < 0:
			return &registry.ConfigError{Key: "take", Err: fmt.Errorf("the rows that are looked up have no field %s%s", name, nearest.Hint(name, p.other.Names()))}
		case p.in.Schema().Index(cfg.Prefix+name) >= 0:
			return &registry.ConfigError{Key: "take", Err: fmt.Errorf("the item already has a field %s: write prefix: looked_up_, for example", cfg.Prefix+name)}
		}
		f := p.other.Field(at)
		fields = append(fields, row.Field{Name: cfg.Prefix + name, Kind: f.Kind, Nullable: f.Nullable || cfg.Missing == missingNull || cfg.Missing == missingDefault})
		p.take = append(p.take, takenField{name: name, at: at})
	}
	p.fields = fields
	var err error
	p.schema, err = row.NewSchema(fields...)
	if err != nil {
		return &registry.ConfigError{Key: "take", Err: err}
	}
	return nil
}

func (p *plan) defaults(cfg *config) error {
	if cfg.Missing != missingDefault {
		return nil
	}
	var errs []error
	bad := func(name string, err error) {
		errs = append(errs, &registry.ConfigError{Key: "default." + name, Err: err})
	}
	for _, e := range cfg.Default {
		at := slices.IndexFunc(p.take, func(t takenField) bool { return t.name == e.Name || cfg.Prefix+t.name == e.Name })
		if at < 0 {
			bad(e.Name, fmt.Errorf("%s is not taken%s", e.Name, nearest.Hint(e.Name, p.schema.Names()[p.width:])))
			continue
		}
		f := &p.fields[p.width+at]
		program, err := expression.CompileItem(e.Expression, p.in)
		if err == nil && program.Kind() != f.Kind && program.Kind() != row.Null {
			err = fmt.Errorf("%s is of type %s, but its default is of type %s", e.Name, f.Kind, program.Kind())
		}
		if err != nil {
			bad(e.Name, err)
			continue
		}
		f.Nullable = program.Nullable() || p.other.Field(p.take[at].at).Nullable
		p.take[at].otherwise = program
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var err error
	p.schema, err = row.NewSchema(p.fields...)
	return err
}

// not nil, which would mean no row
func (p *plan) taken(values []row.Value) []row.Value {
	list := make([]row.Value, len(p.take))
	for i, t := range p.take {
		list[i] = values[t.at].Clone() // not a part of a reader's buffer
	}
	return list
}

// approximate
func sizeOf(key []byte, values []row.Value) int64 {
	const entry, value = 112, 40 // of a map and a list; of a row.Value
	n := int64(entry + 2*len(key) + value*len(values))
	for _, v := range values {
		n += int64(v.Size())
	}
	return n
}

// shared by all goroutines of a step
type plan struct {
	in      item.Type
	other   *row.Schema
	key     []keyPart
	take    []takenField
	missing string
	fields  []row.Field
	schema  *row.Schema // the fields of the input, and the taken ones
	width   int
	bound   int64
}

type keyPart struct {
	name    string
	at      int
	program *expression.ItemProgram
}

type takenField struct {
	name string
	at   int
	// if there is no row; nil means null
	otherwise *expression.ItemProgram
}

var errTwice = errors.New("there are two rows with the key")

func named(parts []keyPart, values []row.Value) string {
	texts := make([]string, len(parts))
	for i, k := range parts {
		texts[i] = k.name + " = " + sqlvalue.Quote(values[i])
	}
	return strings.Join(texts, ", ")
}
