// Package sqltask is the tasklet `sql`: it runs statements, or a query with one row, in the step's
// transaction.
//
// It imports core, tx, the driver's types and helpers of internal; gormdb gives it its connections.
package sqltask

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/surfin-batch/surfin/internal/sqlerr"
	"github.com/surfin-batch/surfin/internal/sqlscript"
	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/internal/txwork"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// config configures the tasklet.
type config struct {
	Statement registry.SQL `key:"statement" main:"true" doc:"The statements to run, separated by semicolons. Several statements cannot use variables."`
	Query     registry.SQL `key:"query" doc:"A SELECT of one row, instead of a statement."`
	Out       item.Type    `key:"out" doc:"The columns of the row that become steps.NAME.out, with their types."`
	Database  string       `key:"database" doc:"The database; default: the job's."`
}

// Validate checks that there is one thing to do.
func (c *config) Validate() error {
	switch {
	case c.Statement.IsZero() && c.Query.IsZero():
		return &registry.ConfigError{Key: "statement", Err: errors.New("the statement is missing: set a statement or query")}
	case !c.Statement.IsZero() && !c.Query.IsZero():
		return &registry.ConfigError{Key: "query", Err: errors.New("a statement is set, too: use two steps")}
	case !c.Statement.IsZero() && c.Out != nil:
		return &registry.ConfigError{Key: "out", Err: errors.New("only a query has results")}
	case !c.Query.IsZero() && c.Out == nil:
		return &registry.ConfigError{Key: "out", Err: errors.New("a query without results does nothing: name its columns and their types")}
	case c.Out != nil && (c.Out.Schema() == nil || c.Out.Schema().IsOpen() || c.Out.Schema().Len() == 0):
		return &registry.ConfigError{Key: "out", Err: fmt.Errorf("%s does not name columns and types", c.Out.Name())}
	}
	return nil
}

// OnMySQL implements trait.OnMySQL.
func (c *config) OnMySQL() error { return nil }

// The database is unknown when a job file is loaded: every dialect counts.
func (c *config) checkControl() error {
	first, some := control(c.Statement, tx.SQLite)
	if same, too := control(c.Statement, tx.Postgres); !some || !too || first.Verb != same.Verb {
		return nil
	}
	at := 0
	if len(c.Statement.Args) == 0 {
		at = first.Offset + 1
	}
	return &registry.ConfigError{
		Key: "statement", At: at, Err: fmt.Errorf("%s: the step's `transaction` decides what commits together", first.Verb),
		Hint: "remove it: the statements of a step are one transaction",
	}
}

func control(text registry.SQL, dialect tx.Dialect) (sqlscript.Statement, bool) {
	for _, s := range sqlscript.Split(text.String(), dialect) {
		if s.Control || s.Reset {
			return s, true
		}
	}
	return sqlscript.Statement{}, false
}

// Components describes the tasklet.
func Components() []registry.Component {
	return []registry.Component{{
		Kind: registry.KindTasklet, Name: "sql", Config: reflect.TypeFor[config](),
		Summary: "runs SQL statements, or a query for the step's results",
		Doc: `Statements run in the step's transaction, all or nothing. BEGIN, COMMIT and the like are
rejected: the step's ` + "`transaction`" + ` decides, with NOT_SUPPORTED for statements that must run without
one (vacuum). The rows that INSERT, UPDATE, DELETE and MERGE changed are counted as written.

A query returns exactly one row. Several statements without a transaction around them get their
own on either database.`,
		Example: `job: count
parameters: {year: {type: int}}
flow:
- step: count
  tasklet:
    sql:
      query: select count(*) n, sum(cost) total from strikes where year = ${params.year}
      out: {n: int, total: float null}
- step: note
  tasklet: {sql: "insert into note (n, total) values (${steps.count.out.n}, ${steps.count.out.total})"}`,
		Types: func(cfg any, in item.Type) (item.Type, error) {
			c := cfg.(*config)
			return in, errors.Join(c.Validate(), c.checkControl())
		},
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

// Execute runs it on the current transaction of ctx, or without one.
func (t *tasklet) Execute(ctx context.Context, c *core.StepContribution) error {
	txwork.Authored(ctx)
	if t.config.Query.IsZero() {
		return t.run(ctx, c)
	}
	values, err := t.queryRow(ctx)
	if err != nil {
		return fmt.Errorf("sql: %w", err)
	}
	if c.Out == nil {
		c.Out = map[string]any{}
	}
	schema := t.config.Out.Schema()
	for i, v := range values {
		c.Out[schema.Field(i).Name] = v.Any()
	}
	c.Counters.Read++
	return nil
}

func (t *tasklet) run(ctx context.Context, c *core.StepContribution) error {
	text, args := t.config.Statement.Render(t.db.Dialect().Placeholder)
	statements := sqlscript.Split(text, t.db.Dialect())
	switch {
	case len(statements) == 0:
		return errors.New("sql: there is no statement")
	case len(statements) > 1 && len(args) > 0:
		return fmt.Errorf("sql: %d statements cannot use variables: use a step for each", len(statements))
	}
	for _, s := range statements {
		if s.Control || s.Reset {
			return fmt.Errorf("sql: %s: the step's `transaction` decides: %w", s.Verb, tx.ErrNotOwner)
		}
	}
	var n int64
	exec := func(ctx context.Context) (err error) {
		n, err = t.exec(ctx, text, statements, args)
		return err
	}
	var err error
	if _, in := tx.From(ctx, t.db.Name()); in || len(statements) == 1 {
		err = exec(ctx)
	} else {
		err = tx.NewManager(t.db).Do(ctx, tx.Attr{}, exec)
	}
	if err != nil {
		return fmt.Errorf("sql: %w", err)
	}
	c.Counters.Write += n
	return nil
}

func (t *tasklet) queryRow(ctx context.Context) (values []row.Value, err error) {
	text, args := t.config.Query.Render(t.db.Dialect().Placeholder)
	args, err = t.bind(args)
	if err != nil {
		return nil, err
	}
	if t.db.Dialect() == tx.Postgres {
		args = append([]any{describeAnew()}, args...)
	}
	source, written := text, []string(nil)
	if t.db.Dialect() == tx.SQLite && sqlvalue.HasZone(t.config.Out.Schema()) {
		text, written = sqlvalue.AsWritten(ctx, tx.ConnOf(ctx, t.db), text, args)
	}
	rows, err := tx.ConnOf(ctx, t.db).QueryContext(ctx, text, args...)
	if err != nil {
		return nil, sqlerr.In(t.config.Query, t.db.Dialect(), source, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, err
	}
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = t.Name()
	}
	places, err := columnIndexes(t.config.Out.Schema(), names)
	if err != nil {
		return nil, err
	}
	cells, targets := make([]any, len(names)), make([]any, len(names))
	for i := range cells {
		targets[i] = &cells[i]
	}
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return nil, sqlerr.In(t.config.Query, t.db.Dialect(), source, err)
		}
		return nil, errors.New("the query returned no row; expected one")
	}
	if err := rows.Scan(targets...); err != nil {
		return nil, err
	}
	if rows.Next() {
		return nil, errors.New("the query returned more than one row; expected one")
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if err := sqlvalue.Scanned(t.db.Dialect(), types, cells); err != nil {
		return nil, err
	}
	return fit(t.config.Out.Schema(), places, written, cells)
}
