// Package count is the partitioner `count`: a number of equal parts.
//
// It imports core and core/registry only.
package count

import (
	"context"
	"fmt"
	"reflect"
	"strconv"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// config configures the partitioner.
type config struct {
	Parts int `key:"parts" main:"true" required:"true" doc:"The number of partitions."`
}

// Validate checks the number.
func (c *config) Validate() error {
	if c.Parts < 1 || c.Parts > core.MaxPartitions {
		return &registry.ConfigError{Key: "parts", Err: fmt.Errorf("%d is not between 1 and %d", c.Parts, core.MaxPartitions)}
	}
	return nil
}

// Components describes the partitioner.
func Components() []registry.Component {
	return []registry.Component{{
		Kind: registry.KindPartitioner, Name: "count", Config: reflect.TypeFor[config](), Parts: types,
		Summary: "makes a fixed number of partitions",
		Doc: `For work that a partition can select by its number: every partition has ` + "`part.index`" + `,
from 0, and ` + "`part.count`" + `, the number of partitions. They are named by their index. In SQL,
` + "`where id % ${part.count} = ${part.index}`" + ` selects every row once, if no id is negative; an
index serves the ranges of ` + "`range`" + ` better.`,
		Example: `job: bill
flow:
- step: bill
  partition: {by: {count: 8}, workers: 4}
  chunk:
    reader: {query: {sql: "select id, amount from orders where id % 8 = ${part.index}", key: [id], item: {id: int, amount: decimal}}}
    writer: {table: {name: bill, key: [id], create: true}}`,
		New: func(_ context.Context, cfg any, _ registry.BuildContext) (any, error) {
			return newPartitioner(*cfg.(*config))
		},
	}}
}

func types(any) (map[string]reflect.Type, error) {
	return map[string]reflect.Type{"count": reflect.TypeFor[int64]()}, nil
}

type partitioner struct{ config config }

// newPartitioner checks config.
func newPartitioner(cfg config) (core.Partitioner, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &partitioner{config: cfg}, nil
}

func (p *partitioner) Partition(context.Context, *core.View) ([]core.Partition, error) {
	parts := make([]core.Partition, p.config.Parts)
	for i := range parts {
		values := core.NewExecutionContext()
		if err := values.Put("count", p.config.Parts); err != nil {
			return nil, fmt.Errorf("count: %w", err)
		}
		parts[i] = core.Partition{Name: strconv.Itoa(i), Index: i, Context: values}
	}
	return parts, nil
}
