package sqltask

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/pgxconn"
	"github.com/surfin-batch/surfin/internal/sqlerr"
	"github.com/surfin-batch/surfin/internal/sqlscript"
	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// pgx must not use a statement prepared before a migration.
func describeAnew() pgx.QueryExecMode { return pgx.QueryExecModeDescribeExec }

func (t *tasklet) bind(args []any) ([]any, error) {
	return sqlvalue.Args(args, sqlvalue.Bind(t.db.Dialect()))
}

func (t *tasklet) exec(ctx context.Context, text string, statements []sqlscript.Statement, args []any) (int64, error) {
	args, err := t.bind(args)
	if err != nil {
		return 0, err
	}
	conn := tx.ConnOf(ctx, t.db)
	if t.db.Dialect() == tx.Postgres {
		return t.execPostgres(ctx, conn, text, statements, args)
	}
	var total int64
	for _, s := range statements {
		result, err := conn.ExecContext(ctx, s.Text, args...)
		if err != nil {
			return total, t.explain(text, s, len(statements), err)
		}
		if !s.ChangesRows() {
			continue // SQLite would answer the number of the statement before
		}
		n, err := result.RowsAffected()
		if err != nil {
			return total, err
		}
		total += n
	}
	return total, nil
}

// The simple protocol allows several statements.
func (t *tasklet) execPostgres(ctx context.Context, conn tx.Conn, text string, statements []sqlscript.Statement, args []any) (total int64, err error) {
	done := 0
	err = pgxconn.Run(ctx, conn, text, func(c *pgx.Conn) error {
		if len(args) > 0 {
			tag, err := c.Exec(ctx, text, append([]any{describeAnew()}, args...)...)
			total = changed(tag)
			return err
		}
		results := c.PgConn().Exec(ctx, text)
		for results.NextResult() {
			tag, err := results.ResultReader().Close()
			if err != nil {
				return errors.Join(err, results.Close())
			}
			total += changed(tag)
			done++
		}
		return results.Close()
	})
	return total, t.explain(text, statements[min(done, len(statements)-1)], len(statements), err)
}

func (t *tasklet) explain(text string, s sqlscript.Statement, of int, err error) error {
	if e, ok := errors.AsType[*pgconn.PgError](err); of > 1 && (!ok || e.Position == 0) {
		return sqlerr.InScript(t.config.Statement, s.Offset, s.Text, err)
	}
	return sqlerr.In(t.config.Statement, t.db.Dialect(), text, err)
}

func changed(tag pgconn.CommandTag) int64 {
	if tag.Select() {
		return 0
	}
	return tag.RowsAffected()
}

func columnIndexes(schema *row.Schema, names []string) ([]int, error) {
	var errs []error
	list := make([]int, schema.Len())
	for i, name := range schema.Names() {
		if list[i] = slices.Index(names, name); list[i] < 0 {
			errs = append(errs, fmt.Errorf("the query has no column %s%s", name, nearest.Hint(name, names)))
		}
	}
	return list, errors.Join(errs...)
}

// written are the declared types of the columns with texts of times.
func fit(schema *row.Schema, places []int, written []string, cells []any) ([]row.Value, error) {
	values := make([]row.Value, len(places))
	var errs []error
	for i, at := range places {
		x := cells[at]
		if text, ok := x.([]byte); ok && schema.Field(i).Kind != row.BytesKind {
			x = string(text)
		}
		read := sqlvalue.Fit
		if written != nil && written[at] != "" {
			read = sqlvalue.FitWritten
		}
		var err error
		if values[i], err = read(schema.Field(i), x); err != nil {
			errs = append(errs, err)
		}
	}
	return values, errors.Join(errs...)
}
