package files

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/partcount"
	"github.com/surfin-batch/surfin/internal/place"
	"github.com/surfin-batch/surfin/internal/urlpath"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// linesConfig configures the partitioner `lines`.
type linesConfig struct {
	Parts partcount.Number `key:"parts" main:"true" doc:"The highest number of parts, or auto: 4 for each worker (64 with remote), each of 1 MB or more [auto]."`
	Path  string           `key:"path" path:"true" doc:"The file, which the reader may then name as ${part.path} [the file of the reader]."`
}

// Validate checks the number.
func (c *linesConfig) Validate() error {
	return c.Parts.Check("parts")
}

// DividesLines implements trait.LineDivider.
func (c *linesConfig) DividesLines() {}

func linesComponent() registry.Component {
	return registry.Component{
		Kind: registry.KindPartitioner, Name: "lines", Config: reflect.TypeFor[linesConfig](), Parts: types,
		Summary: "divides one file into parts",
		Doc: `The file of the step's reader (csv, jsonl, fixed or lines) is divided between two records, into parts of about the
same size. The reader's own rules decide where a record ends, quoted line ends included, so all parts together have
the items of one reader, malformed records too; errors and skipped items have the line of the whole file. The file is
read once for this, at the speed of the disk if its quotes are regular.

The parts are named by their lines, and are fixed when the step starts for the first time; a restart keeps them. A
file that changed since is refused (rule P9). Compressed files, encodings other than UTF-8 and files with headers or
trailers among their records cannot be divided.`,
		Example: `job: load
flow:
- step: load
  partition: {by: {lines: 8}, workers: 2}
  chunk:
    reader: {csv: {path: in.csv, item: {id: int, name: string}}}
    writer: {table: {name: customer, key: [id], create: true}}`,
		New: func(_ context.Context, cfg any, _ registry.BuildContext) (any, error) {
			c := *cfg.(*linesConfig)
			return &lines{config: c}, c.Validate()
		},
	}
}

type lines struct {
	config  linesConfig
	workers int
	reader  func(ctx context.Context, part core.Partition) (item.Reader, error)
}

// SetWorkers implements partcount.Planner.
func (p *lines) SetWorkers(n int) { p.workers = n }

// SetReader implements filestream.OfReader.
func (p *lines) SetReader(reader func(ctx context.Context, part core.Partition) (item.Reader, error)) {
	p.reader = reader
}

func (p *lines) Partition(ctx context.Context, _ *core.View) ([]core.Partition, error) {
	path, ranges, err := p.divide(ctx)
	if err != nil {
		return nil, fmt.Errorf("lines: %w", err)
	}
	info, err := place.Stat(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("lines: %w", err)
	}
	parts := make([]core.Partition, len(ranges))
	for i, r := range ranges {
		values := core.NewExecutionContext()
		if err := errors.Join(values.Put(filestream.PartPathKey, path), values.Put(filestream.PartMarkKey, info.Mark()), r.Store(values)); err != nil {
			return nil, fmt.Errorf("lines: %w", err)
		}
		parts[i] = core.Partition{Name: fmt.Sprintf("%d..%d", r.First, r.Last), Index: i, Context: values}
	}
	return parts, nil
}

func (p *lines) divide(ctx context.Context) (string, []filestream.Range, error) {
	if p.reader == nil {
		return "", nil, errors.New("there is no step whose reader it could ask")
	}
	values := core.NewExecutionContext()
	if err := values.Put(filestream.PartPathKey, p.config.Path); err != nil {
		return "", nil, err
	}
	reader, err := p.reader(ctx, core.Partition{Context: values})
	if err != nil {
		return "", nil, err
	}
	divider := filestream.AsDivider(reader)
	if divider == nil {
		return "", nil, errors.New("the reader of the step cannot read a file in parts")
	}
	path, ranges, err := divider.Divide(ctx, partcount.Wanted{Number: p.config.Parts, Workers: p.workers})
	if err != nil {
		return "", nil, err
	}
	if path, err = whole(path); err != nil {
		return "", nil, err
	}
	if own, err := whole(p.config.Path); err != nil || p.config.Path != "" && own != path {
		return "", nil, errors.Join(err, fmt.Errorf("path is %s, but the reader of the step reads %s: omit path, or write path: ${part.path} in the reader", own, path))
	}
	return path, ranges, nil
}

func whole(path string) (string, error) {
	if path == "" || urlpath.Is(path) {
		return path, nil
	}
	return filepath.Abs(path)
}
