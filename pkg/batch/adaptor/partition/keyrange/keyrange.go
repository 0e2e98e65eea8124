// Package keyrange is the partitioner `range`: ranges of an integer key that together contain every row of
// a table.
//
// It imports core, core/registry, tx, internal/partcount, internal/sqlvalue and internal/txwork; gormdb gives it its
// connections.
package keyrange

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/surfin-batch/surfin/internal/partcount"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// config configures the partitioner.
type config struct {
	Database string           `key:"database" doc:"The database; default: the job's."`
	Table    string           `key:"table" required:"true" doc:"The table or view, or SCHEMA.TABLE."`
	Key      string           `key:"key" required:"true" doc:"A column of integers, never null, preferably the first one of an index."`
	Parts    partcount.Number `key:"parts" doc:"The highest number of ranges, or auto: 4 for each worker (64 with remote), each of 10,000 rows or more [auto]."`
	Where    registry.SQL     `key:"where" doc:"A condition that selects the rows, as in a SELECT; the reader of the step needs it as well."`
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
	return errors.Join(append(errs, c.Parts.Check("parts"))...)
}

// OnMySQL implements trait.OnMySQL.
func (c *config) OnMySQL() error { return nil }

// Components describes the partitioner.
func Components() []registry.Component {
	return []registry.Component{{
		Kind: registry.KindPartitioner, Name: "range", Config: reflect.TypeFor[config](), Parts: types,
		Summary: "makes ranges of an integer key",
		Doc: `From the smallest to the largest key in the table when the step starts for the
first time, the partitions are ranges with about the same number of rows: ` + "`part.min`" + ` to ` + "`part.max`" + `, both of
them included, without gaps or overlaps. They are named by their bounds, and a restart keeps them. A table without
rows has no partitions. Rows with the same key are in one range, so keys with many rows make fewer ranges.

The rows are counted, and their keys passed once, in an index if one begins with the key: a million rows take less
than half a second. With ` + "`where`" + `, on a view, or without an index the keys are sorted, which takes several times as long. On
PostgreSQL a sample of blocks takes the place of the count if the table has 4,000 blocks of 8 KB or more for each
range, so their numbers of rows differ by some percent (rule P10).

Rows that are added later with a key beyond the largest are in no partition.`,
		Example: `job: bill
flow:
- step: bill
  partition: {by: {range: {table: orders, key: id}}, workers: 4}
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
	db      tx.Database
	config  config
	workers int
}

// newPartitioner checks config.
func newPartitioner(db tx.Database, cfg config) (core.Partitioner, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &partitioner{db: db, config: cfg}, nil
}

// SetWorkers implements partcount.Planner.
func (p *partitioner) SetWorkers(n int) { p.workers = n }

// Partition returns the ranges.
func (p *partitioner) Partition(ctx context.Context, _ *core.View) ([]core.Partition, error) {
	ranges, err := p.ranges(ctx)
	if err != nil {
		return nil, fmt.Errorf("range of %s.%s: %w", p.config.Table, p.config.Key, err)
	}
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

func (p *partitioner) ranges(ctx context.Context) ([]keyRange, error) {
	k, err := keysOf(ctx, p.db, p.config)
	if err != nil {
		return nil, err
	}
	low, high, empty, err := k.bounds(ctx)
	if err != nil || empty {
		return nil, err
	}
	cuts, err := k.cuts(ctx, partcount.Wanted{Number: p.config.Parts, Workers: p.workers})
	return between(low, high, cuts), err
}

type keyRange struct{ Min, Max int64 }

// between returns the ranges from low to high that end at the ascending cuts. Cuts of rows that arrived meanwhile, and
// repeated ones, make no range.
func between(low, high int64, cuts []int64) []keyRange {
	var ranges []keyRange
	for _, cut := range cuts {
		if cut >= low && cut < high {
			ranges = append(ranges, keyRange{Min: low, Max: cut})
			low = cut + 1
		}
	}
	return append(ranges, keyRange{Min: low, Max: high})
}
