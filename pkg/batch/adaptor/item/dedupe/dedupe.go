// Package dedupe is the processor `dedupe`: it passes only the first item of each key, and keeps the keys
// in a table, in the chunk's transaction.
//
// It imports core with its folders, tx, internal/expression and internal/nearest.
package dedupe

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/trait"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

const (
	repeatedDrop   = "drop"
	repeatedReject = "reject"
)

// seenTable has the keys, in the database that the step writes to.
const seenTable = "surfin_seen_key"

// config is the configuration of `dedupe`.
type config struct {
	Key      []string `key:"key" main:"true" required:"true" doc:"The fields that form the key; two nulls are equal."`
	Repeated string   `key:"repeated" default:"drop" enum:"drop,reject" doc:"How to treat an item whose key was seen before: drop leaves it out and counts it as filtered; reject makes it invalid."`
}

// Connections implements trait.Connector: the table is made outside of the transaction, which a failure
// would end.
func (c *config) Connections() []trait.Connection {
	return []trait.Connection{{OfStep: true, Use: trait.Within}}
}

// OnMySQL implements trait.OnMySQL.
func (c *config) OnMySQL() error { return nil }

// Validate checks the options that need no item type.
func (c *config) Validate() error {
	if len(c.Key) == 0 {
		return &registry.ConfigError{Key: "key", Err: errors.New("the key is missing: list the names of fields, such as [id]")}
	}
	for i, name := range c.Key {
		if slices.Contains(c.Key[:i], name) {
			return &registry.ConfigError{Key: "key", Err: fmt.Errorf("field %s is listed twice: remove one", name)}
		}
	}
	return nil
}

// Components describes `dedupe`.
func Components() []registry.Component {
	return []registry.Component{{
		Kind: registry.KindProcessor, Name: "dedupe", Config: reflect.TypeFor[config](), InTransaction: true,
		Summary: "Passes only the first item of each key.",
		Doc: `The keys seen so far are rows of the table ` + "`" + seenTable + "`" + `, which the step creates in the database that
it writes to: a hash of 16 bytes each. They are committed with their chunk, so a restart knows exactly
the keys of the rows already written, however many. They are deleted when the step completes, and when
it starts again; the keys of a step that never completes stay. A skipped item's key does not count (an item that was rejected in the
same chunk for that key is skipped and stored all the same).

The items of the step are processed in the chunk's transaction, with one statement for each item, by one
goroutine. Each partition has its own keys. Rows already in the target table do not count: for that
use ` + "`mode: upsert`" + `, or a unique key and ` + "`skip`" + `. If the rows are sorted by the key, the reader ` + "`group`" + ` with
` + "`first(...)`" + ` does the same without a table.`,
		Example: `job: load
flow:
- step: load
  chunk:
    reader: {csv: {path: in.csv, item: {id: int, name: string}}}
    processor:
    - filter: item.id > 0
    - dedupe: [id]
    writer: {table: {name: customer, key: [id], create: true}}`,
		Types: func(cfg any, in item.Type) (item.Type, error) {
			_, err := compile(cfg.(*config), in)
			return in, err
		},
		New: func(_ context.Context, cfg any, b registry.BuildContext) (any, error) {
			return newProcessor(*cfg.(*config), b)
		},
	}}
}

func compile(cfg *config, in item.Type) ([]*expression.ItemProgram, error) {
	var programs []*expression.ItemProgram
	var errs []error
	for _, name := range cfg.Key {
		program, err := expression.CompileItem(registry.Expression{Text: fmt.Sprintf("item[%q]", name)}, in)
		if err != nil {
			hint := ""
			if s := in.Schema(); s != nil {
				hint = nearest.Hint(name, s.Names())
			}
			errs = append(errs, &registry.ConfigError{Key: "key", Err: fmt.Errorf("the item has no field %s%s", name, hint)})
			continue
		}
		programs = append(programs, program)
	}
	return programs, errors.Join(errs...)
}
