// Package keyrange is the partitioner `range`: ranges of an integer key that together contain every row of
// a table.
//
// It imports core, tx and internal/sqlvalue; gormdb gives it its connections.
package keyrange

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// config configures the partitioner.
type config struct {
	Database string       `key:"database" doc:"The database; default: the job's."`
	Table    string       `key:"table" required:"true" doc:"The table, or SCHEMA.TABLE."`
	Key      string       `key:"key" required:"true" doc:"A column of integers, never null, preferably with an index."`
	Parts    int          `key:"parts" required:"true" doc:"The highest number of ranges."`
	Where    registry.SQL `key:"where" doc:"A condition that selects the rows, as in a SELECT; the reader of the step needs it as well."`
}

// Validate checks the options that need no database.
func (c *config) Validate() error {
	var errs []error
	if c.Table == "" {
		errs = append(errs, &registry.ConfigError{Key: "table", Err: errors.New("the table is missing")})
	}
	if c.Key == "" {
		errs = append(errs, &registry.ConfigError{Key: "key", Err: errors.New("the column is missing")})
	}
	if c.Parts < 1 || c.Parts > core.MaxPartitions {
		errs = append(errs, &registry.ConfigError{Key: "parts", Err: fmt.Errorf("%d is not between 1 and %d", c.Parts, core.MaxPartitions)})
	}
	return errors.Join(errs...)
}

// OnMySQL implements trait.OnMySQL.
func (c *config) OnMySQL() error { return nil }

// Components describes the partitioner.
func Components() []registry.Component {
	return []registry.Component{{
		Kind: registry.KindPartitioner, Name: "range", Config: reflect.TypeFor[config](), Parts: types,
		Summary: "makes ranges of an integer key",
		Doc: `From the smallest to the largest key in the table when the step starts for the
first time, the partitions are ranges of equal width: ` + "`part.min`" + ` to ` + "`part.max`" + `, both of them
included, without gaps or overlaps. They are named by their bounds. A table without rows has
no partitions, and one with fewer possible keys than ` + "`parts`" + ` has fewer. Ranges are
of equal width, not of equal work: if keys have gaps, more partitions than workers even it out.

Rows that are added later with a key beyond the largest are in no partition.`,
		Example: `job: bill
flow:
- step: bill
  partition: {by: {range: {table: orders, key: id, parts: 16}}, workers: 4}
  chunk:
    reader: {query: {sql: "select id, amount from orders where id between ${part.min} and ${part.max}", key: [id], item: {id: int, amount: decimal}}}
    writer: {table: {name: bill, key: [id], create: true}}`,
		New: registry.OnDatabase(func(c *config) string { return c.Database }, newPartitioner),
	}}
}

func types(any) (map[string]reflect.Type, error) {
	return map[string]reflect.Type{"min": reflect.TypeFor[int64](), "max": reflect.TypeFor[int64]()}, nil
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

// Partition returns the ranges.
func (p *partitioner) Partition(ctx context.Context, _ *core.View) ([]core.Partition, error) {
	low, high, empty, err := p.bounds(ctx)
	if err != nil {
		return nil, fmt.Errorf("range of %s.%s: %w", p.config.Table, p.config.Key, err)
	}
	if empty {
		return nil, nil
	}
	ranges := split(low, high, p.config.Parts)
	parts := make([]core.Partition, len(ranges))
	for i, r := range ranges {
		values := core.NewExecutionContext()
		if err := errors.Join(values.Put("min", r.Min), values.Put("max", r.Max)); err != nil {
			return nil, fmt.Errorf("range: %w", err)
		}
		parts[i] = core.Partition{Name: fmt.Sprintf("%d..%d", r.Min, r.Max), Index: i, Context: values}
	}
	return parts, nil
}

// one statement: the smallest and largest key, and whether some row is in no range
func (p *partitioner) bounds(ctx context.Context) (low, high int64, empty bool, err error) {
	text, args, err := p.statement()
	if err != nil {
		return 0, 0, false, err
	}
	var minKey, maxKey any
	var outside bool
	if err := tx.ConnOf(ctx, p.db).QueryRowContext(ctx, text, args...).Scan(&minKey, &maxKey, &outside); err != nil {
		return 0, 0, false, err
	}
	if outside {
		return 0, 0, false, errors.New("in some rows the key is null or not an integer, so they would be in no range; exclude them with `where`")
	}
	if minKey == nil {
		return 0, 0, true, nil
	}
	if low, err = integer(minKey); err == nil {
		high, err = integer(maxKey)
	}
	return low, high, false, err
}

func integer(x any) (int64, error) {
	if text, is := x.([]byte); is { // of MySQL
		x = string(text)
	}
	if n, is := x.(uint64); is && n <= math.MaxInt64 {
		return int64(n), nil
	}
	n, ok := x.(int64)
	if !ok {
		return 0, fmt.Errorf("%v is a %T, not an integer: the key must be a column of integers", x, x)
	}
	return n, nil
}

func (p *partitioner) statement() (string, []any, error) {
	d := p.db.Dialect()
	table, key := d.Quote(p.config.Table), quoted(p.config.Key)
	where, condition := "", ""
	var args []any
	if !p.config.Where.IsZero() {
		text, values := p.config.Where.Render(d.Placeholder)
		var err error
		if args, err = sqlvalue.Args(values, sqlvalue.Bind(d)); err != nil {
			return "", nil, err
		}
		where, condition = "\nwhere (\n"+text+"\n)", " and (\n"+text+"\n)"
	}
	misfit := key + " is null"
	if d == tx.SQLite { // its columns may hold anything
		misfit = "typeof(" + key + ") <> 'integer'"
	}
	return fmt.Sprintf("select min(%s), max(%s), exists (select 1 from %s where %s%s) from %s%s", key, key, table, misfit, condition, table, where), args, nil
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
