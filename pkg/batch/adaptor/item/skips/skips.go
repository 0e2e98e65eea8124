// Package skips is the reader `skips`: it reads the skipped items of steps from the history.
//
// It imports core with its folders.
package skips

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// config configures the reader.
type config struct {
	Step     string `key:"step" main:"true" doc:"The step that skipped the items, with its partitions; without it, every step."`
	Job      string `key:"job" doc:"The job that skipped them, in all its instances. Without job and instance, this instance, in all its attempts."`
	Instance int64  `key:"instance" doc:"The number of the instance that skipped them, of any job."`
	Phase    string `key:"phase" enum:"read,process,write" doc:"The phase in which the items failed; without it, any."`
	Left     bool   `key:"left" default:"false" doc:"Only items that have not been redriven."`
}

// Validate checks the given options.
func (c *config) Validate() error {
	var errs []error
	if c.Instance < 0 {
		errs = append(errs, &registry.ConfigError{Key: "instance", Err: fmt.Errorf("%d is not an instance number: surfin list --instances shows them", c.Instance)})
	}
	if c.Instance != 0 && c.Job != "" {
		errs = append(errs, &registry.ConfigError{Key: "job", Err: errors.New("an instance belongs to one job: remove one of job and instance")})
	}
	switch core.Phase(c.Phase) {
	case "", core.PhaseRead, core.PhaseProcess, core.PhaseWrite:
	default:
		errs = append(errs, &registry.ConfigError{Key: "phase", Err: fmt.Errorf("%q is unknown (allowed: read, process, write)", c.Phase)})
	}
	return errors.Join(errs...)
}

// NamesStep implements trait.StepNamer.
func (c *config) NamesStep() (key, step string) {
	if c.Job != "" || c.Instance != 0 {
		return "step", ""
	}
	return "step", c.Step
}

// Components describes the reader.
func Components() []registry.Component {
	return []registry.Component{{
		Kind: registry.KindReader, Name: "skips", Config: reflect.TypeFor[config](),
		Summary: "reads the items that steps have skipped, from the history",
		Doc: `A row is a skipped item, as ` + "`surfin skips export`" + ` has it: ` + "`id`, `execution`, `step`, `phase`, `path`, `line`, `index`, `row`, `class`, `error`" + `,
` + "`item`" + ` (the item as JSON; null if it could not be read or was too long to be stored whole), ` + "`raw`" + ` (the text of an item that could
not be read), ` + "`redriven_by`" + ` (the execution that redrove it) and ` + "`at`" + `.

The rows come in the order in which they were stored. The rows that exist when the step begins are read:
a restart continues after the last committed one, up to the same last one. Items of a step that is running at that
time in another execution may be read or not. In a test of a chunk without a history there are none.`,
		Example: `job: customers
flow:
- step: load
  chunk:
    reader: {csv: {path: in.csv, item: {id: int, name: string}}}
    writer: {table: {name: customer, create: true}}
    skip: {limit: 100}
- step: report
  chunk:
    reader: {skips: {step: load, phase: read}}
    processor: {map: {only: true, line: item.line, class: item.class}}
    writer: {csv: {path: out/bad.csv}}
`,
		Types: func(any, item.Type) (item.Type, error) {
			schema, err := row.NewSchema(fields()...)
			return item.RowOf("skip", schema), err
		},
		New: func(_ context.Context, cfg any, b registry.BuildContext) (any, error) {
			r, err := newReader(b.Skips, b.Instance, *cfg.(*config))
			if err != nil {
				return nil, err
			}
			return b.Out.FromRecords(r)
		},
	}}
}

// in the order of Reader.record
func fields() []row.Field {
	return []row.Field{
		{Name: "id", Kind: row.Int}, {Name: "execution", Kind: row.Int}, {Name: "step", Kind: row.String}, {Name: "phase", Kind: row.String},
		{Name: "path", Kind: row.String, Nullable: true}, {Name: "line", Kind: row.Int, Nullable: true},
		{Name: "index", Kind: row.Int, Nullable: true}, {Name: "row", Kind: row.Int, Nullable: true},
		{Name: "class", Kind: row.String}, {Name: "error", Kind: row.String},
		{Name: "item", Kind: row.String, Nullable: true}, {Name: "raw", Kind: row.String, Nullable: true},
		{Name: "redriven_by", Kind: row.Int, Nullable: true}, {Name: "at", Kind: row.Timestamp},
	}
}
