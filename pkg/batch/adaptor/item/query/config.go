package query

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/trait"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

const defaultFetch = 1000

type zeroDates string

const zeroNull zeroDates = "null"

// OnMySQL implements trait.OnMySQL.
func (c *config) OnMySQL() error { return nil }

// config configures the reader.
type config struct {
	SQL      registry.SQL  `key:"sql" main:"true" required:"true" doc:"One SELECT, without LIMIT; an ORDER BY of its own has no effect."`
	Key      []string      `key:"key" doc:"The columns, never null, that together identify a row; they define the order of reading and the position of a restart. An index on them makes every page as fast as the first. day desc reads a column in descending order."`
	Snapshot bool          `key:"snapshot" default:"false" doc:"Read without a key, for rows that no columns identify: all rows as they are when the step begins, in any order, by one cursor on its own connection. There is no position to resume at, so after a commit a restart is refused, and --from-start begins again: committed rows stay, so empty the target first, or write in mode upsert or replace. Not in a partitioned step."`
	Item     item.Type     `key:"item" doc:"The type of the items; without it the database describes them. A field is nullable unless the statement reads a plain table in which the column is declared not null."`
	Database string        `key:"database" doc:"The database; default: the job's."`
	Since    string        `key:"since" doc:"A column, never null, whose values only grow, such as updated_at: reads only rows with a greater value than the greatest one that the last completed instance of the job has read."`
	First    string        `key:"first" doc:"The value at which the first instance begins, inclusive; without it, it reads all rows. For since only."`
	Overlap  time.Duration `key:"overlap" doc:"How far before the last value the next instance begins, to catch rows that commit late; dates and timestamps only. Those rows are read again, so write them with mode upsert."`
	zone     *time.Location
	// zero dates of MySQL
	ZeroDates zeroDates `key:"zero_dates" default:"error" enum:"error,null" doc:"On MySQL, how to read 0000-00-00 and 2026-00-00, which are no dates: error makes the item invalid; null reads null."`
	Fetch     int       `key:"fetch" default:"1000" doc:"Rows per page."`
}

// Validate checks the options that need no item type.
func (c *config) Validate() error {
	var errs []error
	if c.SQL.IsZero() {
		errs = append(errs, &registry.ConfigError{Key: "sql", Err: errors.New("the statement is missing")})
	}
	switch {
	case len(c.Key) == 0 && !c.Snapshot:
		errs = append(errs, &registry.ConfigError{Key: "key", Err: errors.New("a query needs a key: name the columns that identify its rows, or set `snapshot: true`, which reads without one and cannot be restarted after a commit")})
	case len(c.Key) > 0 && c.Snapshot:
		errs = append(errs, &registry.ConfigError{Key: "snapshot", Err: errors.New("a key is set, too, but a snapshot is read without one: remove one of them")})
	}
	columns := keyColumns(c.Key)
	for i, k := range columns {
		if slices.ContainsFunc(columns[:i], func(o keyColumn) bool { return o.name == k.name }) {
			errs = append(errs, &registry.ConfigError{Key: "key", Err: fmt.Errorf("column %s is listed twice", k.name)})
		}
	}
	for key, given := range map[string]bool{"first": c.First != "", "overlap": c.Overlap != 0} {
		if given && c.Since == "" {
			errs = append(errs, &registry.ConfigError{Key: key, Err: errors.New("it needs `since`")})
		}
	}
	if c.Overlap < 0 {
		errs = append(errs, &registry.ConfigError{Key: "overlap", Err: fmt.Errorf("%s is less than 0", c.Overlap)})
	}
	if c.Fetch < 0 {
		errs = append(errs, &registry.ConfigError{Key: "fetch", Err: fmt.Errorf("%d is less than 0", c.Fetch)})
	}
	return errors.Join(errs...)
}

// Connections implements trait.Connector.
func (c *config) Connections() []trait.Connection {
	use := trait.Between
	if c.Snapshot {
		use = trait.Kept
	}
	return []trait.Connection{{Database: c.Database, Use: use}}
}

// CannotResume implements trait.NotResumable.
func (c *config) CannotResume() (key string) {
	if c.Snapshot {
		return "snapshot"
	}
	return ""
}

func (c *config) check(schema *row.Schema) error {
	if schema.IsOpen() {
		return nil
	}
	var errs []error
	for _, k := range keyColumns(c.Key) {
		switch i := schema.Index(k.name); {
		case i < 0:
			errs = append(errs, &registry.ConfigError{Key: "key", Err: k.unknown(schema.Names(), "the item has no field %s")})
		case schema.Field(i).Kind == row.Bool:
			errs = append(errs, &registry.ConfigError{Key: "key", Err: fmt.Errorf("field %s is a bool, which has no order", k.name)})
		}
	}
	if c.Since != "" {
		errs = append(errs, c.checkSince(schema))
	}
	return errors.Join(errs...)
}

func (c *config) checkSince(schema *row.Schema) error {
	i := schema.Index(c.Since)
	switch {
	case i < 0:
		return &registry.ConfigError{Key: "since", Err: fmt.Errorf("the item has no field %s%s", c.Since, nearest.Hint(c.Since, schema.Names()))}
	case schema.Field(i).Kind == row.Bool:
		return &registry.ConfigError{Key: "since", Err: fmt.Errorf("field %s is a bool, which cannot grow", c.Since)}
	case c.Overlap > 0 && schema.Field(i).Kind != row.Timestamp && schema.Field(i).Kind != row.DateKind:
		return &registry.ConfigError{Key: "overlap", Err: fmt.Errorf("field %s is neither a timestamp nor a date", c.Since)}
	}
	return nil
}
