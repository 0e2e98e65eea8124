package lookup

import (
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
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

// OnMySQL implements trait.OnMySQL.
func (c *config) OnMySQL() error { return nil }

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
