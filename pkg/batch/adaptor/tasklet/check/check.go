// Package check is the tasklet `check`: it checks the rows of a table, and stores those that break a rule.
//
// It imports core, tx and helpers of internal; gormdb gives it its connections.
package check

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/surfin-batch/surfin/internal/txwork"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// severity is the effect of rows that break a rule.
type severity string

// The zero value means Error.
const (
	severityError severity = "error"
	severityWarn  severity = "warn"
)

// config configures the tasklet.
type config struct {
	Table          string                  `key:"table" main:"true" doc:"The table to check, or schema.table."`
	SQL            registry.SQL            `key:"sql" doc:"A SELECT whose rows are checked, instead of a table."`
	Unique         []string                `key:"unique" doc:"Columns with unique values; columns separated by commas are unique together. Rows with a null in them are not compared."`
	NotNull        []string                `key:"not_null" doc:"Columns that must not be null."`
	AcceptedValues map[string][]string     `key:"accepted_values" doc:"Maps columns to their accepted values, compared as text; nulls are not checked."`
	Relationships  map[string]string       `key:"relationships" doc:"Maps columns to TABLE.COLUMN of the same database, which must contain each of their values; nulls are not checked."`
	None           map[string]registry.SQL `key:"none" doc:"Maps names of your own rules to SELECTs that must return no rows."`
	Severity       severity                `key:"severity" default:"error" enum:"error,warn" doc:"error fails the step after all checks have run; warn only counts."`
	Store          string                  `key:"store" doc:"The table that stores rows that break a rule, with the ids of the run; it is created if it does not exist. Without it they are only counted."`
	Show           int                     `key:"show" default:"3" doc:"How many rows of each broken rule the message shows; 0 shows none, for data that must not be logged."`
	Database       string                  `key:"database" doc:"The database; default: the job's."`
}

const mostShown = 20

// Validate checks the options that need no database.
func (c *config) Validate() error {
	var errs []error
	bad := func(key, format string, args ...any) {
		errs = append(errs, &registry.ConfigError{Key: key, Err: fmt.Errorf(format, args...)})
	}
	rowwise := len(c.Unique)+len(c.NotNull)+len(c.AcceptedValues)+len(c.Relationships) > 0
	switch {
	case !rowwise && len(c.None) == 0:
		bad("table", "the checks are missing: add unique, not_null, accepted_values, relationships or none")
	case rowwise && c.Table == "" && c.SQL.IsZero():
		bad("table", "the rows to check are missing: set table or sql")
	case !rowwise && (c.Table != "" || !c.SQL.IsZero()):
		bad("none", "its statements name their own tables: omit table and sql, or add unique, not_null, accepted_values or relationships")
	}
	if c.Table != "" && !c.SQL.IsZero() {
		bad("sql", "a table is set, too: use two steps")
	}
	for _, list := range c.Unique {
		for _, name := range columnsOf(list) {
			if name == "" {
				bad("unique", "%q has an empty column name", list)
			}
		}
	}
	for column, values := range c.AcceptedValues {
		if len(values) == 0 {
			bad("accepted_values."+column, "the list is empty: no value would be accepted")
		}
	}
	for column, parent := range c.Relationships {
		if at := strings.LastIndexByte(parent, '.'); at < 1 || at == len(parent)-1 {
			bad("relationships."+column, "%q is not TABLE.COLUMN, such as customer.id", parent)
		}
	}
	if c.Show < 0 || c.Show > mostShown {
		bad("show", "%d is not between 0 and %d", c.Show, mostShown)
	}
	if c.Severity != "" && c.Severity != severityError && c.Severity != severityWarn {
		bad("severity", "%q is unknown (allowed: error, warn)", c.Severity)
	}
	return errors.Join(errs...)
}

// OnMySQL implements trait.OnMySQL.
func (c *config) OnMySQL() error {
	if c.Store == "" {
		return nil
	}
	return &registry.ConfigError{Key: "store", Err: errors.New("INSERT ... SELECT reads newer rows there than those that were counted")}
}

func columnsOf(list string) []string {
	names := strings.Split(list, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	return names
}

func results() []row.Field {
	return []row.Field{
		{Name: "checks", Kind: row.Int}, {Name: "broken", Kind: row.Int}, {Name: "failed", Kind: row.Int},
		{Name: "rows", Kind: row.Int}, {Name: "message", Kind: row.String},
	}
}

// Components describes the tasklet.
func Components() []registry.Component {
	return []registry.Component{{
		Kind: registry.KindTasklet, Name: "check", Config: reflect.TypeFor[config](), NoTransaction: true, Results: results(),
		Summary: "checks the rows of a table: unique, not null, accepted values, relationships",
		Doc: `All checks run, in one snapshot of the database, before the step fails: its message has each
broken rule, with the number of rows and the first ones. ` + "`severity: warn`" + ` only counts, and
a decision may use the results: ` + "`checks`" + `, the number of checks, ` + "`broken`" + `, how many failed,
` + "`failed`" + `, the rows that broke one (a row counts once for each check), ` + "`rows`" + `, the number of rows,
and ` + "`message`" + `. Use two steps for errors and warnings.

With ` + "`store`" + ` the rows are stored in a table of the same database: ` + "`execution`, `step_execution`, `job`,\n`step`, `check_name`, `failed_row` (JSON) and `stored_at`" + `. They are committed together, before the
step fails. Each attempt adds its own rows (rule TL1); delete old ones as you like.

Without a ` + "`transaction`" + ` the step has none. In a group that is ` + "`atomic`" + `, or with one, it sees the rows that the
transaction has written so far, so it can reject them; the rows that it stores would be rolled back with the transaction,
so ` + "`store`" + ` needs ` + "`severity: warn`" + ` there.`,
		Example: `job: checks
parameters: {date: {type: date}}
flow:
- step: checks
  tasklet:
    check:
      table: strikes
      unique: [id]
      not_null: [id, airport]
      accepted_values: {phase: [Climb, Approach]}
      relationships: {airport: airports.code}
      none:
        no_future: select * from strikes where flown > ${params.date}
      store: check_failures`,
		New: registry.OnDatabase(func(c *config) string { return c.Database }, newTasklet),
	}}
}

type tasklet struct {
	db     tx.Database
	config config
}

// newTasklet checks config.
func newTasklet(db tx.Database, cfg config) (core.Tasklet, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &tasklet{db: db, config: cfg}, nil
}

// Execute makes all checks, and fails if one does not hold, unless they only warn.
func (t *tasklet) Execute(ctx context.Context, c *core.StepContribution) error {
	txwork.Authored(ctx)
	r := &run{db: t.db, config: &t.config, step: c.Step}
	if c.View != nil && c.View.Job != nil {
		r.job = c.View.Job.JobName
	}
	if err := t.inSnapshot(ctx, r.all); err != nil {
		return fmt.Errorf("check: %w", err)
	}
	if c.Out == nil {
		c.Out = map[string]any{}
	}
	c.Out["checks"], c.Out["broken"], c.Out["failed"] = int64(r.checks), int64(len(r.broken)), r.failed
	c.Out["rows"], c.Out["message"] = r.rows, strings.Join(r.broken, "; ")
	c.Counters.Read += r.rows
	if t.config.Store != "" {
		c.Counters.Write += r.failed
	}
	if len(r.broken) == 0 || t.config.Severity == severityWarn {
		return nil
	}
	return fmt.Errorf("check: %d of %d checks failed: %s%s", len(r.broken), r.checks, strings.Join(r.broken, "; "), t.where(c.Step))
}

func (t *tasklet) where(s core.StepExecution) string {
	if t.config.Store == "" {
		return ""
	}
	return fmt.Sprintf(" (all are in table %s: step_execution = %d)", t.config.Store, s.ID)
}

// All checks see the same rows.
func (t *tasklet) inSnapshot(ctx context.Context, f func(ctx context.Context) error) error {
	stores := t.config.Store != ""
	if current, in := tx.From(ctx, t.db.Name()); in {
		switch {
		case stores && t.config.Severity != severityWarn:
			return errors.New("store: the rows would be rolled back with the step's transaction: omit `transaction`, or set `severity: warn`")
		case stores && current.ReadOnly():
			return errors.New("store: the step's transaction is read-only")
		}
		return f(ctx)
	}
	if stores {
		if err := createStore(ctx, t.db, t.config.Store); err != nil {
			return err
		}
	}
	attr := tx.Attr{ReadOnly: !stores}
	if t.db.Dialect() != tx.SQLite {
		attr.Isolation = snapshotIsolation
	}
	return tx.NewManager(t.db).Do(ctx, attr, f)
}
