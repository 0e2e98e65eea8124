// Package query is the partitioner `query`: one part for each row of a SELECT.
//
// It imports core, tx and helpers of internal; gormdb gives it its connections.
package query

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/partname"
	"github.com/surfin-batch/surfin/internal/sqlerr"
	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/internal/txwork"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// config configures the partitioner.
type config struct {
	SQL      registry.SQL `key:"sql" main:"true" required:"true" doc:"One SELECT; the partitions have its order."`
	Item     item.Type    `key:"item" required:"true" doc:"The columns that become part.COLUMN, with their types: a type of the job's, or an inline map such as {region: string, since: date}. They are never null."`
	Database string       `key:"database" doc:"The database; default: the job's."`
}

const (
	columnName  = "name"
	columnIndex = "index"
)

// Validate checks the statement and the columns.
func (c *config) Validate() error {
	var errs []error
	if c.SQL.IsZero() {
		errs = append(errs, &registry.ConfigError{Key: "sql", Err: errors.New("the statement is missing")})
	}
	if err := c.checkItem(); err != nil {
		errs = append(errs, &registry.ConfigError{Key: "item", Err: err})
	}
	return errors.Join(errs...)
}

// OnMySQL implements trait.OnMySQL.
func (c *config) OnMySQL() error { return nil }

func (c *config) checkItem() error {
	if c.Item == nil {
		return errors.New("name the columns and their types: ${part.COLUMN} must be known before the query runs")
	}
	schema := c.Item.Schema()
	if schema == nil || schema.IsOpen() || schema.Len() == 0 {
		return fmt.Errorf("%s does not name columns and types", c.Item.Name())
	}
	var errs []error
	for i := range schema.Len() {
		switch f := schema.Field(i); {
		case f.Nullable:
			errs = append(errs, fmt.Errorf("%s is %s, but a partition's value must not be null: exclude such rows, or use coalesce", f.Name, f.Type()))
		case f.Name == columnIndex:
			errs = append(errs, errors.New("index is the partition's number: give the column another name"))
		}
	}
	return errors.Join(errs...)
}

// Components describes the partitioner.
func Components() []registry.Component {
	return []registry.Component{{
		Kind: registry.KindPartitioner, Name: "query", Config: reflect.TypeFor[config](), Parts: types,
		Summary: "makes a partition for each row of a SELECT",
		Doc: `The columns of the row that ` + "`item`" + ` names are ` + "`part.COLUMN`" + `. A column ` + "`name`" + ` names the
partitions, with _ for characters other than letters, digits and _ - . / and a number at the end if two
have the same name; without it they are named by the number of their row, from 1. ` + "`part.name`" + ` is
the converted text: select it as another column, too, if you need the original.

The statement runs when the step starts for the first time; a restart keeps its
result. Without rows the step has no work and completes. A value that does not fit its type, or is
null, fails the step.`,
		Example: `job: export
flow:
- step: export
  partition:
    by:
      query:
        sql: select code as name, since from region where active
        item: {name: string, since: date}
    workers: 2
  chunk:
    reader: {query: {sql: "select id, amount from orders where region = ${part.name} and day >= ${part.since}", key: [id], item: {id: int, amount: decimal}}}
    writer: {csv: "out/${part.name}.csv"}`,
		New: registry.OnDatabase(func(c *config) string { return c.Database }, newPartitioner),
	}}
}

func types(cfg any) (map[string]reflect.Type, error) {
	c := cfg.(*config)
	if err := c.checkItem(); err != nil {
		return nil, &registry.ConfigError{Key: "item", Err: err}
	}
	schema, parts := c.Item.Schema(), map[string]reflect.Type{}
	for i := range schema.Len() {
		if f := schema.Field(i); f.Name != columnName {
			parts[f.Name] = expression.GoType(f.Kind)
		}
	}
	return parts, nil
}

type partitioner struct {
	db     tx.Database
	config config
}

// newPartitioner checks config.
func newPartitioner(db tx.Database, cfg config) (core.Partitioner, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &partitioner{db: db, config: cfg}, nil
}

func (p *partitioner) Partition(ctx context.Context, _ *core.View) ([]core.Partition, error) {
	parts, err := p.read(ctx)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	names := make([]string, len(parts))
	for i := range parts {
		names[i] = parts[i].Name
	}
	for i, name := range partname.Unique(names) {
		parts[i].Name = name
	}
	return parts, nil
}

func (p *partitioner) read(ctx context.Context) (parts []core.Partition, err error) {
	text, args := p.config.SQL.Render(p.db.Dialect().Placeholder)
	if args, err = sqlvalue.Args(args, sqlvalue.Bind(p.db.Dialect())); err != nil {
		return nil, err
	}
	txwork.Authored(ctx)
	source, written := text, []string(nil)
	if p.db.Dialect() == tx.SQLite && sqlvalue.HasZone(p.config.Item.Schema()) {
		text, written = sqlvalue.AsWritten(ctx, tx.ConnOf(ctx, p.db), text, args)
	}
	rows, err := tx.ConnOf(ctx, p.db).QueryContext(ctx, text, args...)
	if err != nil {
		return nil, sqlerr.In(p.config.SQL, p.db.Dialect(), source, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, err
	}
	places, err := p.columnsOf(types)
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		if len(parts) == core.MaxPartitions {
			return nil, fmt.Errorf("it returns more than %d rows, the highest number of partitions of a step", core.MaxPartitions)
		}
		part, err := p.part(rows, types, written, places, len(parts))
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", len(parts)+1, err)
		}
		parts = append(parts, part)
	}
	return parts, sqlerr.In(p.config.SQL, p.db.Dialect(), source, rows.Err())
}

func (p *partitioner) columnsOf(types []*sql.ColumnType) ([]int, error) {
	columns := make([]string, len(types))
	for i, t := range types {
		columns[i] = t.Name()
	}
	schema := p.config.Item.Schema()
	places := make([]int, schema.Len())
	var errs []error
	for i := range places {
		f := schema.Field(i)
		if places[i] = slices.Index(columns, f.Name); places[i] < 0 {
			places[i] = slices.Index(columns, f.Source())
		}
		if places[i] < 0 {
			errs = append(errs, fmt.Errorf("the result has no column %s%s", f.Source(), nearest.Hint(f.Source(), columns)))
		}
	}
	return places, errors.Join(errs...)
}

// written are the declared types of the columns with texts of times.
func (p *partitioner) part(rows *sql.Rows, types []*sql.ColumnType, written []string, places []int, index int) (core.Partition, error) {
	cells, targets := make([]any, len(types)), make([]any, len(types))
	for i := range cells {
		targets[i] = &cells[i]
	}
	if err := rows.Scan(targets...); err != nil {
		return core.Partition{}, err
	}
	if err := sqlvalue.Scanned(p.db.Dialect(), types, cells); err != nil {
		return core.Partition{}, err
	}
	part := core.Partition{Name: strconv.Itoa(index + 1), Index: index, Context: core.NewExecutionContext()}
	schema := p.config.Item.Schema()
	var errs []error
	for i, at := range places {
		f, x := schema.Field(i), cells[at]
		if text, ok := x.([]byte); ok && p.db.Dialect() == tx.Postgres && f.Kind != row.BytesKind { // types that the driver passes as text
			x = string(text)
		}
		fit := sqlvalue.Fit
		if written != nil && written[at] != "" {
			fit = sqlvalue.FitWritten
		}
		v, err := fit(f, x)
		switch {
		case err != nil:
		case f.Name == columnName:
			part.Name = strings.TrimSpace(v.String())
		default:
			err = part.Context.Put(f.Name, v.Any())
		}
		errs = append(errs, err)
	}
	return part, errors.Join(errs...)
}
