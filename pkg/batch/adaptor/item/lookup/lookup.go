// Package lookup is the processor `lookup`: it adds to each row the fields of another row, found by a key
// in the rows of a reader (in memory) or in a table.
//
// It imports core with its folders, tx, internal/expression, internal/nearest and internal/sqlvalue.
package lookup

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

const (
	missingError   = "error"
	missingSkip    = "skip"
	missingNull    = "null"
	missingDefault = "default"
)

// config is the configuration of `lookup`.
type config struct {
	From      registry.Nested      `key:"from" kind:"reader" atopen:"true" doc:"A reader; its rows are read once, when the step starts, and kept in memory."`
	Table     string               `key:"table" doc:"A table, or schema.table, instead of from; a row is queried when an item needs it, and kept."`
	Item      item.Type            `key:"item" doc:"The type of the table's rows: the columns of the key and the columns to take."`
	Key       registry.Expressions `key:"key" required:"true" doc:"Maps fields of the other row to the expressions over the item that they must equal, such as {currency: item.currency}."`
	Take      []string             `key:"take" doc:"The fields of the other row that are added to the item [all except the key]."`
	Prefix    string               `key:"prefix" doc:"A prefix for the names of these fields in the item."`
	Missing   string               `key:"missing" default:"error" enum:"error,skip,null,default" doc:"How to treat an item without such a row: error makes it invalid; skip leaves it out and counts it as filtered; null sets its fields to null; default sets them to the values of default."`
	Default   registry.Expressions `key:"default" doc:"The fields of an item without such a row: expressions over the item; fields not named are null."`
	MaxMemory registry.Size        `key:"max_memory" default:"64MB" doc:"How much memory the rows may take. For a table the least recently used rows are dropped; a reader with more rows fails the step."`
	Database  string               `key:"database" doc:"The database of the table; default: the job's."`
}

// Validate checks the options that need no item type.
func (c *config) Validate() error {
	var errs []error
	bad := func(key, format string, args ...any) {
		errs = append(errs, &registry.ConfigError{Key: key, Err: fmt.Errorf(format, args...)})
	}
	switch {
	case c.From.IsZero() && c.Table == "":
		bad("from", "the source is missing: write from: {csv: {path: FILE, item: TYPE}}, or table: NAME")
	case !c.From.IsZero() && c.Table != "":
		bad("table", "a reader is set, too (from): remove one of the two")
	case c.Table != "" && c.Item == nil:
		bad("table", "the types of its columns are not known: write item: {COLUMN: TYPE}, with the key and the columns to take")
	case c.Table == "" && c.Item != nil:
		bad("item", "the reader defines its rows: omit it, or write it in the reader")
	}
	if len(c.Key) == 0 {
		bad("key", "the key is missing: write {FIELD: item.FIELD}")
	}
	if c.Missing == missingDefault && len(c.Default) == 0 {
		bad("default", "missing: default needs values: write default: {FIELD: EXPRESSION}")
	}
	if c.Missing != missingDefault && len(c.Default) > 0 {
		bad("default", "it needs missing: default")
	}
	if c.MaxMemory < 0 {
		bad("max_memory", "it is negative")
	}
	return errors.Join(errs...)
}

// Components describes `lookup`.
func Components() []registry.Component {
	return []registry.Component{{
		Kind: registry.KindProcessor, Name: "lookup", Config: reflect.TypeFor[config](),
		Summary: "Adds fields of another row that is found by a key.",
		Doc: `With ` + "`from`" + ` all rows of a reader are read when the step starts, and kept in memory: for files and tables of
some hundred thousand rows. Two rows with one key fail the step. With ` + "`table`" + ` the step queries the
table once for each key, and keeps the rows; it does so in the chunk's transaction only if
` + "`process_in_transaction`" + ` says so; two rows with one key make the item invalid. The columns of the
key need an index. For most of the rows of a large table a join in SQL is faster.

The memory is limited by ` + "`max_memory`" + `. A restart reads the rows again: items that were
committed before keep their values. A null in the key matches no row.`,
		Example: `job: enrich
flow:
- step: enrich
  chunk:
    reader: {csv: {path: in.csv, item: {id: int, species: string}}}
    processor:
      lookup:
        from: {csv: {path: species.csv, item: {species: string, size: string, weight: float}}}
        key: {species: item.species}
        take: [size]
        missing: null
    writer: {csv: out/strikes.csv}`,
		Types: func(cfg any, in item.Type) (item.Type, error) {
			p, err := compile(cfg.(*config), in)
			if err != nil {
				return nil, err
			}
			return item.RowOf("", p.schema), nil
		},
		New: func(ctx context.Context, cfg any, b registry.BuildContext) (any, error) {
			return newProcessor(ctx, *cfg.(*config), b)
		},
	}}
}

// newProcessor returns the processor for items of type b.In.
func newProcessor(ctx context.Context, cfg config, b registry.BuildContext) (item.Processor, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p, err := compile(&cfg, b.In)
	if err != nil {
		return nil, err
	}
	if b.Out != nil && b.Out.Schema().SameShape(p.schema) { // the next stage compares schemas by identity first
		p.schema = b.Out.Schema()
	}
	p.bound = int64(cfg.MaxMemory)
	if p.bound == 0 {
		p.bound = defaultMemory
	}
	if cfg.Table != "" {
		db, err := b.FindDatabase(cfg.Database)
		if err != nil {
			return nil, err
		}
		p.rows = newTable(db, cfg.Table, p)
		return p, nil
	}
	reader, _, err := registry.MakeNested[item.Reader](ctx, cfg.From, b, nil)
	if err != nil {
		return nil, err
	}
	p.rows = &memory{reader: reader, plan: p}
	return p, nil
}

const defaultMemory = 64 << 20

func compile(cfg *config, in item.Type) (*processor, error) {
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
	p := &processor{in: in, other: other.Schema(), missing: cfg.Missing}
	err := errors.Join(p.keys(cfg), p.takes(cfg))
	if err == nil {
		err = p.defaults(cfg)
	}
	return p, err
}

func (p *processor) keys(cfg *config) error {
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

func (p *processor) takes(cfg *config) error {
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
		p.take = append(p.take, taken{name: name, at: at})
	}
	p.fields = fields
	var err error
	p.schema, err = row.NewSchema(fields...)
	if err != nil {
		return &registry.ConfigError{Key: "take", Err: err}
	}
	return nil
}

func (p *processor) defaults(cfg *config) error {
	if cfg.Missing != missingDefault {
		return nil
	}
	var errs []error
	bad := func(name string, err error) {
		errs = append(errs, &registry.ConfigError{Key: "default." + name, Err: err})
	}
	for _, e := range cfg.Default {
		at := slices.IndexFunc(p.take, func(t taken) bool { return t.name == e.Name || cfg.Prefix+t.name == e.Name })
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
