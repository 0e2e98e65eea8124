// Package query is the reader `query`: it reads the rows of a SELECT, page by page along a key.
//
// It imports core, tx, the driver's types and helpers of internal; gormdb gives it its connections.
package query

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/trait"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

const defaultFetch = 1000

// Config configures the reader.
type Config struct {
	SQL      registry.SQL  `key:"sql" main:"true" required:"true" doc:"One SELECT, without LIMIT; an ORDER BY of its own has no effect."`
	Key      []string      `key:"key" doc:"The columns, never null, that together identify a row; they define the order of reading and the position of a restart. An index on them makes every page as fast as the first. day desc reads a column in descending order."`
	Snapshot bool          `key:"snapshot" default:"false" doc:"Read without a key, for rows that no columns identify: all rows as they are when the step begins, in any order, by one cursor on its own connection. There is no position to resume at, so after a commit a restart is refused, and --from-start begins again: committed rows stay, so empty the target first, or write in mode upsert or replace. Not in a partitioned step."`
	Item     item.Type     `key:"item" doc:"The type of the items; without it the database describes them. A field is nullable unless the statement reads a plain table in which the column is declared not null."`
	Database string        `key:"database" doc:"The database; default: the job's."`
	Since    string        `key:"since" doc:"A column, never null, whose values only grow, such as updated_at: reads only rows with a greater value than the greatest one that the last completed instance of the job has read."`
	First    string        `key:"first" doc:"The value at which the first instance begins, inclusive; without it, it reads all rows. For since only."`
	Overlap  time.Duration `key:"overlap" doc:"How far before the last value the next instance begins, to catch rows that commit late; dates and timestamps only. Those rows are read again, so write them with mode upsert."`
	zone     *time.Location
	Fetch    int `key:"fetch" default:"1000" doc:"Rows per page."`
}

// Validate checks the options that need no item type.
func (c *Config) Validate() error {
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
func (c *Config) Connections() []trait.Connection {
	use := trait.Between
	if c.Snapshot {
		use = trait.Kept
	}
	return []trait.Connection{{Database: c.Database, Use: use}}
}

// CannotResume implements trait.NotResumable.
func (c *Config) CannotResume() (key string) {
	if c.Snapshot {
		return "snapshot"
	}
	return ""
}

// Components describes the reader.
func Components() []registry.Component {
	return []registry.Component{{
		Kind: registry.KindReader, Name: "query", Config: reflect.TypeFor[Config](), Types: types,
		Summary: "reads the rows of a SELECT, page by page along a key",
		Doc: `Every page is one statement, ` + "`select ... from (sql) where (key) > (last key) order by key limit fetch`" + `,
on a connection outside the chunk's transaction. A restart continues after the last
committed key, however far it is. Rows that other sessions add after that key while the
step runs are read, rows before it are not.

The key must be unique and never null: a duplicate or a null fails the step, because rows
would be lost. The database decides whether two keys are equal: under a collation without accents
or case, or of types such as interval, numeric and jsonb, keys that look different may be equal.

Rows that no columns identify are read with ` + "`snapshot: true`" + `, in place of a key: one cursor reads all rows as they are
when the step begins, ` + "`fetch`" + ` rows at a time, while chunks commit. A restart after a commit is refused (rule C15m). PostgreSQL keeps
old row versions meanwhile, and SQLite its WAL file.

A column of ` + "`select *`" + ` of one table that ` + "`item`" + ` does not have is not read. The step stores a warning about it:
the column may be new in the table.

Without ` + "`item`" + ` the database describes the columns: integers are int, floating point is
float, boolean, date and timestamp are themselves, and all else is its text, numeric
(which is exact) too. On SQLite a computed column has the type that its first 100 values
have; cast it, or name an ` + "`item`" + `, if they vary. A value that does not fit its field
is an invalid item.

` + "`since: updated_at`" + ` reads incrementally. The greatest value that exists when the step begins is
fixed for all attempts of the instance: rows up to it are read, and the next instance reads the
rows after it. It starts from the newest COMPLETED instance that was created before this one; rows of
a failed one are read again by the next, so write them with ` + "`mode: upsert`" + `. A row that is
committed late with an older value than those already read (a long transaction, a slow clock, an
import) is never read: set ` + "`overlap`" + ` to the longest such delay. In the first instance a row in which the
column is null is an error, and later it is never read. On SQLite, which
compares texts, the column must have all times in the same format. A partitioned step cannot use it, and jobs that run at the same time should set ` + "`exclusive: job`" + `.`,
		Example: `job: export
parameters: {date: {type: date}}
flow:
- step: export
  chunk:
    reader:
      query:
        sql: select id, name from customer where born < ${params.date}
        key: [id]
        item: {id: int, name: string}
    writer: {csv: out/customers.csv}
- step: youngest_first
  chunk:
    reader: {query: {sql: select * from customer where born is not null, key: [born desc, id]}}
    writer: {csv: out/youngest.csv}
- step: visits  # whose rows nothing tells apart
  chunk:
    reader: {query: {sql: "select name, day from visit", snapshot: true}}
    writer: {table: {name: visit_copy, mode: replace, create: true}}`,
		New: func(_ context.Context, cfg any, b registry.BuildContext) (any, error) {
			c := cfg.(*Config)
			db, err := b.FindDatabase(c.Database)
			if err != nil {
				return nil, err
			}
			c.zone = b.Zone
			r, err := New(db, *c, b.Out.Schema())
			if err != nil {
				return nil, err
			}
			r.previous, r.context = b.Previous, b.StepContext
			return b.Out.FromRecords(r)
		},
	}}
}

func types(cfg any, _ item.Type) (item.Type, error) {
	c := cfg.(*Config)
	if c.Item == nil {
		open, err := row.Open()
		return item.RowOf("", open), err
	}
	schema := c.Item.Schema()
	if schema == nil {
		return nil, &registry.ConfigError{Key: "item", Err: fmt.Errorf("query reads rows, or structs of plain fields, which %s is not", c.Item.Name())}
	}
	return c.Item, c.check(schema)
}

func (c *Config) check(schema *row.Schema) error {
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

func (c *Config) checkSince(schema *row.Schema) error {
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
