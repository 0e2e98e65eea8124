package parquet

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	pq "github.com/parquet-go/parquet-go"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

type partitionConfig struct {
	Path  string `key:"path" main:"true" path:"true" required:"true" doc:"The file."`
	Parts int    `key:"parts" default:"0" doc:"The highest number of partitions; 0 makes one of each row group."`
}

// Validate checks the number of partitions.
func (c *partitionConfig) Validate() error {
	if c.Parts < 0 || c.Parts > core.MaxPartitions {
		return &registry.ConfigError{Key: "parts", Err: fmt.Errorf("%d is not between 0 and %d", c.Parts, core.MaxPartitions)}
	}
	return nil
}

func partitions() registry.Component {
	return registry.Component{
		Kind: registry.KindPartitioner, Name: "parquet", Config: reflect.TypeFor[partitionConfig](),
		Summary: "Makes partitions of the row groups of a parquet file.",
		Doc: `Each partition has consecutive row groups, as ` + "`part.groups`" + `, for the key ` + "`groups`" + ` of the
reader. They have about the same number of rows. They are fixed when the step starts for the first time: a
part is refused if the file has changed since.`,
		Example: `job: load
flow:
- step: load
  partition: {by: {parquet: in.parquet}, workers: 4}
  chunk:
    reader: {parquet: {path: in.parquet, groups: "${part.groups}", item: {id: int, price: decimal}}}
    writer: {table: {name: prices, key: [id], create: true}}`,
		Parts: func(any) (map[string]reflect.Type, error) {
			return map[string]reflect.Type{"groups": reflect.TypeFor[string]()}, nil
		},
		New: func(_ context.Context, cfg any, _ registry.BuildContext) (any, error) {
			return &partitioner{*cfg.(*partitionConfig)}, nil
		},
	}
}

type partitioner struct{ config partitionConfig }

// Partition returns the parts. A file without rows has none.
func (p *partitioner) Partition(ctx context.Context, _ *core.View) (parts []core.Partition, err error) {
	whole, err := filestream.OpenWhole(ctx, p.config.Path, nil)
	if err != nil {
		return nil, fmt.Errorf("parquet: %w", err)
	}
	defer func() { err = errors.Join(err, whole.Close()) }()
	var sizes []int64
	r := &rows{path: p.config.Path}
	if err := r.guard(func() error {
		file, err := openParquet(whole)
		if err == nil {
			sizes = rowsOf(file.RowGroups())
		}
		return err
	}); err != nil {
		return nil, err
	}
	ranges := split(sizes, p.config.Parts)
	if len(ranges) > core.MaxPartitions {
		return nil, fmt.Errorf("parquet: %s has %d row groups, more than the %d partitions of a step: set parts", p.config.Path, len(ranges), core.MaxPartitions)
	}
	for i, of := range ranges {
		of.Mark = whole.Opened().Mark()
		values := core.NewExecutionContext()
		if err := values.Put("groups", of.String()); err != nil {
			return nil, fmt.Errorf("parquet: %w", err)
		}
		parts = append(parts, core.Partition{Name: fmt.Sprintf("%d-%d", of.First, of.Last), Index: i, Context: values})
	}
	return parts, nil
}

func rowsOf(groups []pq.RowGroup) []int64 {
	sizes := make([]int64, len(groups))
	for i, g := range groups {
		sizes[i] = g.NumRows()
	}
	return sizes
}

// groupRange is consecutive row groups, by their numbers from 1, of a file with a mark.
type groupRange struct {
	First, Last int
	Mark        string
}

func (g groupRange) String() string { return fmt.Sprintf("%d-%d of %s", g.First, g.Last, g.Mark) }

func parseRange(text string) (g groupRange, err error) {
	if _, err := fmt.Sscanf(text, "%d-%d of %s", &g.First, &g.Last, &g.Mark); err != nil || g.First < 1 || g.Last < g.First {
		return g, &registry.ConfigError{Key: "groups", Err: fmt.Errorf("%q is not from the partitioner parquet: write ${part.groups}", text)}
	}
	return g, nil
}

// split makes at most parts ranges of about the same number of rows; 0 makes one of each group.
func split(sizes []int64, parts int) (list []groupRange) {
	var all, done int64
	for _, n := range sizes {
		all += n
	}
	current := int64(-1)
	for i, n := range sizes {
		part := int64(i)
		if parts > 0 { // the part in which the middle row of the group is
			part = (2*done + n) * int64(parts) / max(1, 2*all)
		}
		done += n
		if part != current {
			list = append(list, groupRange{First: i + 1})
		}
		list[len(list)-1].Last, current = i+1, part
	}
	return list
}
