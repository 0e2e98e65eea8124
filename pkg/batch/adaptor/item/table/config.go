package table

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// writeMode is the operation of the writer.
type writeMode string

// The modes.
const (
	modeInsert writeMode = "insert"
	modeUpsert writeMode = "upsert"
	modeUpdate writeMode = "update"
	modeDelete writeMode = "delete"
	// modeTruncate and Replace refill the table (rules TW2, TW3).
	modeTruncate writeMode = "truncate"
	modeReplace  writeMode = "replace"
)

// missingPolicy handles an update without an existing row.
type missingPolicy string

const (
	// missingError makes the item invalid, so that the step may skip it.
	missingError missingPolicy = "error"
	// missingIgnore passes it.
	missingIgnore missingPolicy = "ignore"
)

// leftOutPolicy handles rows that the table does not take.
type leftOutPolicy string

// A trigger, rule or conflict clause of the table leaves rows out.
const (
	// leftOutError fails the step.
	leftOutError leftOutPolicy = "error"
	// leftOutIgnore counts them as written.
	leftOutIgnore leftOutPolicy = "ignore"
)

// schemaPolicy handles fields without a column.
type schemaPolicy string

const (
	// schemaFail fails the step.
	schemaFail schemaPolicy = "fail"
	// schemaIgnore leaves the fields out, with a warning.
	schemaIgnore schemaPolicy = "ignore"
	// schemaAdd adds columns in the transaction of the first rows.
	schemaAdd schemaPolicy = "add"
)

// deletePolicy handles rows with keys that did not come; empty keeps them.
type deletePolicy string

const (
	// deleteSoft marks them in a column.
	deleteSoft deletePolicy = "soft"
	// deleteHard deletes them.
	deleteHard deletePolicy = "hard"
)

// config configures the writer.
type config struct {
	Name          string            `key:"name" main:"true" required:"true" doc:"The table, or schema.table."`
	Mode          writeMode         `key:"mode" default:"insert" enum:"insert,upsert,update,delete,truncate,replace" doc:"insert adds rows; upsert adds or replaces by key; update changes rows that must exist; delete removes rows if they exist; truncate empties the table once and then inserts; replace inserts into a second table, and exchanges all rows when the step is done."`
	Key           []string          `key:"key" doc:"The columns that identify a row; required for upsert, update and delete. An upsert needs a unique index on them."`
	Missing       missingPolicy     `key:"missing" default:"error" enum:"error,ignore" doc:"How to treat an update of a row that does not exist: error makes the item invalid, which the step may skip; ignore accepts it."`
	LeftOut       leftOutPolicy     `key:"left_out" default:"error" enum:"error,ignore" doc:"How to treat rows that a trigger, a rule or a conflict clause of the table leaves out of an insert or upsert: error counts only the others as written, and fails the step at its end with the exit code EXPECT_FAILED; ignore counts them as written, for triggers that put rows elsewhere."`
	Columns       map[string]string `key:"columns" doc:"Maps columns to fields, and nothing else is written; without it every field is written to the column of the same name."`
	Create        bool              `key:"create" default:"false" doc:"Create the table if it does not exist, with key as its primary key."`
	Schema        schemaPolicy      `key:"schema" default:"fail" enum:"fail,ignore,add" doc:"How to treat a field without a column in the table: fail is an error at the start of the step; ignore leaves it out, with a warning that is logged and stored with the step; add adds a nullable column, in the transaction of the first rows. A column of the key is never left out or added."`
	Where         string            `key:"where" doc:"The predicate of the partial unique index for an upsert, as SQL, such as deleted_at is null. Rows outside it are never updated, nor deleted by delete_missing [none]."`
	DeleteMissing deletePolicy      `key:"delete_missing" enum:"soft,hard" doc:"How to treat rows of the table whose key no item of the step has: hard deletes them, soft marks them in the column deleted, in the last transaction of the step. Nothing is deleted after a skip, because its key is not known, or if the input has no rows; a warning says so [they stay]."`
	Deleted       string            `key:"deleted" default:"deleted_at" doc:"The column that delete_missing: soft sets: a timestamp or date to the current time or day, a boolean to true. If the row comes again, the column is cleared, unless a field writes it."`
	DeleteAll     bool              `key:"delete_all" default:"false" doc:"Let delete_missing delete all rows if the input has no rows."`
	Database      string            `key:"database" doc:"The database; default: the job's."`
	zone          *time.Location
	Batch         int `key:"batch" default:"0" doc:"Rows per statement; 0 means the whole chunk on PostgreSQL, and as many rows as have about 100 values on SQLite."`
}

// Validate checks the options that need no item type.
func (c *config) Validate() error {
	var errs []error
	bad := func(key, format string, args ...any) {
		errs = append(errs, &registry.ConfigError{Key: key, Err: fmt.Errorf(format, args...)})
	}
	if c.Name == "" {
		bad("name", "a table needs a name")
	}
	switch c.mode() {
	case modeUpsert, modeUpdate, modeDelete:
		if len(c.Key) == 0 {
			bad("key", "mode %s needs a key", c.Mode)
		}
		if c.Create && c.Mode != modeUpsert {
			bad("create", "mode %s is useless for a new table", c.Mode)
		}
	case modeInsert, modeTruncate, modeReplace:
	default:
		bad("mode", "mode %q is unknown (allowed: insert, upsert, update, delete, truncate, replace)", c.Mode)
	}
	switch {
	case c.Missing != "" && c.Missing != missingError && c.Missing != missingIgnore:
		bad("missing", "%q is unknown (allowed: error, ignore)", c.Missing)
	case c.Missing == missingIgnore && c.mode() != modeUpdate:
		bad("missing", "mode %s does not require rows to exist: `missing` is for update", c.mode())
	}
	switch {
	case c.LeftOut != "" && c.LeftOut != leftOutError && c.LeftOut != leftOutIgnore:
		bad("left_out", "%q is unknown (allowed: error, ignore)", c.LeftOut)
	case c.Schema != "" && c.Schema != schemaFail && c.Schema != schemaIgnore && c.Schema != schemaAdd:
		bad("schema", "%q is unknown (allowed: fail, ignore, add)", c.Schema)
	case c.Schema == schemaAdd && c.mode() == modeDelete:
		bad("schema", "mode delete writes no columns: `schema: add` is for the other modes")
	case c.DeleteMissing != "" && c.DeleteMissing != deleteSoft && c.DeleteMissing != deleteHard:
		bad("delete_missing", "%q is unknown (allowed: soft, hard)", c.DeleteMissing)
	case c.DeleteMissing != "" && c.mode() != modeUpsert:
		bad("delete_missing", "mode %s does not collect the keys: `delete_missing` is for upsert", c.mode())
	case c.DeleteAll && c.DeleteMissing == "":
		bad("delete_all", "it needs delete_missing")
	case c.Deleted != "" && c.Deleted != defaultDeleted && c.DeleteMissing != deleteSoft:
		bad("deleted", "it needs delete_missing: soft")
	case c.Where != "" && c.mode() != modeUpsert:
		bad("where", "mode %s uses no unique index: `where` is for upsert", c.mode())
	case strings.Contains(c.Where, ";"):
		bad("where", "it is a predicate, without a semicolon")
	case c.LeftOut == leftOutIgnore && c.onlyCompares():
		bad("left_out", "mode %s inserts no rows: `left_out` is for insert and upsert", c.mode())
	}
	for i, k := range c.Key {
		if slices.Contains(c.Key[:i], k) {
			bad("key", "column %s is listed twice", k)
		}
	}
	if c.Batch < 0 {
		bad("batch", "%d is less than 0", c.Batch)
	}
	return errors.Join(errs...)
}

func (c *config) mode() writeMode {
	if c.Mode == "" {
		return modeInsert
	}
	return c.Mode
}

const defaultDeleted = "deleted_at"

func (c *config) deletedColumn() string { return cmp.Or(c.Deleted, defaultDeleted) }

func (c *config) needsRows() bool { return c.mode() == modeUpdate && c.Missing != missingIgnore }

func (c *config) refills() bool { return c.mode() == modeTruncate || c.mode() == modeReplace }

// Refills implements trait.Refiller.
func (c *config) Refills() string {
	switch {
	case c.DeleteMissing != "":
		return "upsert with delete_missing"
	case c.refills():
		return string(c.Mode)
	}
	return ""
}

// Creates implements trait.Creator.
func (c *config) Creates() bool { return c.Create || c.Schema == schemaAdd }

func (c *config) onlyCompares() bool { return c.mode() == modeUpdate || c.mode() == modeDelete }

func (c *config) check(schema *row.Schema) error {
	if schema.IsOpen() {
		return nil
	}
	errs := []error{c.checkFields(schema)}
	for _, k := range c.Key {
		if i := schema.Index(c.field(k)); i >= 0 && c.byKey() && schema.Field(i).Nullable {
			errs = append(errs, &registry.ConfigError{Key: "key", Err: fmt.Errorf("field %s may be null, but a null equals nothing", schema.Field(i).Name)})
		}
	}
	return errors.Join(errs...)
}

func (c *config) checkFields(schema *row.Schema) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(c.Columns)) {
		if field := c.Columns[name]; schema.Index(field) < 0 {
			errs = append(errs, &registry.ConfigError{Key: "columns." + name, Err: fmt.Errorf("the item has no field %s%s", field, nearest.Hint(field, schema.Names()))})
		}
	}
	for _, k := range c.Key {
		if schema.Index(c.field(k)) < 0 {
			errs = append(errs, &registry.ConfigError{Key: "key", Err: fmt.Errorf("the item has no field for column %s%s", k, nearest.Hint(k, c.written(schema)))})
		}
	}
	return errors.Join(errs...)
}

func (c *config) byKey() bool { return c.mode() != modeInsert && !c.refills() }

func (c *config) field(name string) string {
	if len(c.Columns) == 0 {
		return name
	}
	return c.Columns[name]
}

func (c *config) written(schema *row.Schema) []string {
	if len(c.Columns) == 0 {
		return schema.Names()
	}
	columns := slices.Sorted(maps.Keys(c.Columns))
	slices.SortStableFunc(columns, func(a, b string) int { return schema.Index(c.Columns[a]) - schema.Index(c.Columns[b]) })
	return columns
}
