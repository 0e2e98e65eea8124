// Package compare is the tasklet `compare`: it reports the differences between the rows of two tables or
// queries, in one pass over both.
//
// It imports core, tx, the driver's types and helpers of internal; gormdb gives it its connections.
package compare

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/trait"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// severity is the effect of a difference on the step.
type severity string

// The zero value means Error.
const (
	severityError severity = "error"
	severityWarn  severity = "warn"
)

// sideConfig is one of the two compared sides.
type sideConfig struct {
	Table    string       `key:"table" main:"true" doc:"The table, or schema.table."`
	SQL      registry.SQL `key:"sql" doc:"A SELECT, instead of a table; its own ORDER BY has no effect."`
	Database string       `key:"database" doc:"The database; default: the job's."`
}

// config configures the tasklet.
type config struct {
	Left     sideConfig     `key:"left" required:"true" doc:"One side."`
	Right    sideConfig     `key:"right" required:"true" doc:"The other side."`
	Key      []string       `key:"key" doc:"The columns, never null, that together identify a row, with the same names on both sides. Without it each side is one row, for example of counts and sums, compared column by column in order."`
	Columns  []string       `key:"columns" doc:"The columns to compare, in addition to the key; default: all, which both sides must have."`
	Sums     []string       `key:"sums" doc:"Numeric columns whose exact sums are compared and shown as well."`
	Severity severity       `key:"severity" default:"error" enum:"error,warn" doc:"error fails the step if the sides differ; warn only counts."`
	zone     *time.Location // nil means UTC
	Show     int            `key:"show" default:"5" doc:"How many differences the message shows; 0 shows none, for data that must not be logged."`
}

const mostShown = 100

// Connections implements trait.Connector: both sides are read at once.
func (c *config) Connections() []trait.Connection {
	return []trait.Connection{{Database: c.Left.Database, Use: trait.Kept}, {Database: c.Right.Database, Use: trait.Kept}}
}

// OnMySQL implements trait.OnMySQL.
func (c *config) OnMySQL() error { return nil }

// Validate checks the options that need no database.
func (c *config) Validate() error {
	var errs []error
	bad := func(key, format string, args ...any) {
		errs = append(errs, &registry.ConfigError{Key: key, Err: fmt.Errorf(format, args...)})
	}
	for name, side := range map[string]sideConfig{"left": c.Left, "right": c.Right} {
		switch {
		case side.Table == "" && side.SQL.IsZero():
			bad(name, "the rows are missing: set table or sql")
		case side.Table != "" && !side.SQL.IsZero():
			bad(name+".sql", "a table is set, too: set one of them")
		case side.Table != "" && len(c.Key) == 0:
			bad(name+".table", "the rows of a table need a `key`")
		}
	}
	for i, k := range c.Key {
		if slices.Contains(c.Key[:i], k) {
			bad("key", "column %s is listed twice", k)
		}
	}
	if len(c.Key) == 0 && len(c.Columns)+len(c.Sums) > 0 {
		bad("key", "columns and sums need rows with a key")
	}
	if c.Show < 0 || c.Show > mostShown {
		bad("show", "%d is not between 0 and %d", c.Show, mostShown)
	}
	if c.Severity != "" && c.Severity != severityError && c.Severity != severityWarn {
		bad("severity", "%q is unknown (allowed: error, warn)", c.Severity)
	}
	return errors.Join(errs...)
}

func results() []row.Field {
	var fields []row.Field
	for _, name := range []string{"left", "right", "equal", "differing", "only_left", "only_right"} {
		fields = append(fields, row.Field{Name: name, Kind: row.Int})
	}
	return append(fields, row.Field{Name: "sums", Kind: row.String}, row.Field{Name: "message", Kind: row.String})
}

// Components describes the tasklet.
func Components() []registry.Component {
	return []registry.Component{{
		Kind: registry.KindTasklet, Name: "compare", Config: reflect.TypeFor[config](), NoTransaction: true, Results: results(),
		Summary: "compares the rows of two tables or queries, in one database or two",
		Doc: `Each side is one statement in the order of the key, and both are read in parallel: memory does not
grow with the rows, and an index on the key saves the sort. The message has the counts and the first
differences. The results are ` + "`left` and `right`" + `, the rows of each, ` + "`equal`, `differing`, `only_left`,\n`only_right`" + `, the sums as JSON in ` + "`sums`" + ` (` + "`{\"amount\": [\"10.00\", \"9.99\"]}`" + `), and ` + "`message`" + `.

Values are compared by meaning, not by how a database writes them: 1, 1.0 and the decimal 1.00
are equal, true is 1, a time is an instant in UTC, a date is its midnight in the job's time zone; a text that is a
number or a time equals it. A time without an offset is in the job's time zone, too; a ` + "`timestamp`" + ` of PostgreSQL,
which has none, equals the text and the date that it shows. Two nulls are equal. Columns have the same names on both sides, ignoring case;
rename them with AS.

Keys are numbers, times or texts, of the same kind on both sides (cast them if they differ), and texts are
in the order of their bytes. A key that is null, duplicate or not in order is an error.
Each side sees the database at the moment of its statement, and these moments differ; rows that the
step's own transaction has written are not visible, so a ` + "`transaction`" + ` is refused.
The step only reads: a restart compares again.`,
		Example: `job: compare
flow:
- step: compare
  tasklet:
    compare:
      left: {database: legacy, sql: "select id, name, saldo as balance from kunde"}
      right: {database: core, table: customer}
      key: [id]
      sums: [balance]`,
		New: func(_ context.Context, cfg any, b registry.BuildContext) (any, error) {
			c := cfg.(*config)
			var sides [2]tx.Database
			for i, side := range []sideConfig{c.Left, c.Right} {
				db, err := b.FindDatabase(side.Database)
				if err != nil {
					return nil, &registry.ConfigError{Key: sideName(i) + ".database", Err: errors.Unwrap(err)}
				}
				sides[i] = db
			}
			if b.Zone != time.UTC {
				c.zone = b.Zone
			}
			return newTasklet(sides[0], sides[1], *c)
		},
	}}
}

func sideName(i int) string { return [...]string{"left", "right"}[i] }

type tasklet struct {
	config config
	sides  [2]tx.Database
}

// newTasklet checks config.
func newTasklet(left, right tx.Database, cfg config) (core.Tasklet, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &tasklet{config: cfg, sides: [2]tx.Database{left, right}}, nil
}

// Execute fails if the sides differ, unless differences only warn.
func (t *tasklet) Execute(ctx context.Context, c *core.StepContribution) (err error) {
	for _, db := range t.sides {
		if _, in := tx.From(ctx, db.Name()); in {
			return fmt.Errorf("compare: it reads database %s outside the step's transaction: omit `transaction`", db.Name())
		}
	}
	m := &merge{config: &t.config, stop: c.Stop}
	for i, from := range []sideConfig{t.config.Left, t.config.Right} {
		s, err := openSide(ctx, t.sides[i], from, t.config.Key, t.config.zone)
		if err != nil {
			return fmt.Errorf("compare: the %s: %w", sideName(i), errors.Join(err, m.close()))
		}
		m.sides[i] = s
		defer tx.Hold(ctx, t.sides[i].Name())()
	}
	err = m.run()
	if err = errors.Join(err, m.close()); err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	if c.Out == nil {
		c.Out = map[string]any{}
	}
	m.report(c.Out)
	c.Counters.Read += m.rows[0] + m.rows[1]
	if message := m.message(); message != "" && t.config.Severity != severityWarn {
		return fmt.Errorf("compare: the sides differ: %s", message)
	}
	return nil
}
