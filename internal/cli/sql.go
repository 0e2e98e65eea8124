package cli

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func (c serverCommands) sqlCommand() *cobra.Command {
	var q sqlQuery
	cmd := &cobra.Command{
		Use:   "sql STATEMENT",
		Short: "Run an SQL statement and print its rows; read-only without --write",
		Long: `Runs one SQL statement in a transaction of its own and prints the rows that it
returns. Without --write the database itself refuses changes. The statement - is
read from standard input.`,
		Example: "  " + c.env.app.Name + ` sql "select species, wording.Count(*) from strikes group by species"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || strings.TrimSpace(args[0]) == "" {
				return usage(errors.New("one statement is expected (in quotes)"), "usage:  "+cmd.UseLine())
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			q.text = args[0]
			return c.sql(cmd.Context(), q)
		},
	}
	cmd.Flags().StringVar(&q.database, "database", tx.Default, "`NAME` of the database")
	cmd.Flags().BoolVar(&q.write, "write", false, "let the statement change data")
	cmd.Flags().IntVar(&q.limit, "limit", 1000, "print at most `N` rows; 0 means all")
	c.env.addFormatFlag(cmd)
	return cmd
}

type sqlQuery struct {
	text, database string
	write          bool
	limit          int
}

func (c serverCommands) sql(ctx context.Context, q sqlQuery) error {
	if q.text == "-" {
		text, err := io.ReadAll(c.env.stdin)
		if err != nil {
			return fmt.Errorf("read the statement: %w", err)
		}
		q.text = string(text)
	}
	if q.limit < 0 {
		return usagef("--limit %d: 0 or more", q.limit)
	}
	if err := c.env.configure(); err != nil {
		return err
	}
	if err := c.env.checkDatabase(q.database); err != nil {
		return err
	}
	if !q.write && c.env.isAbsent(q.database) {
		return &exitError{code: ExitFailed, err: fmt.Errorf("%s does not exist: nothing was run in it yet", c.env.databaseText(q.database))}
	}
	var r *sqlResult
	err := c.env.withRawSession(ctx, c.env.observer(), func(s *Session) error {
		db, err := s.Provider.Database(q.database)
		if err != nil {
			return err
		}
		err = tx.NewManager(db).Do(ctx, tx.Attr{ReadOnly: !q.write}, func(ctx context.Context) (err error) {
			r, err = execute(ctx, db, q)
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", c.env.databaseText(q.database), err)
		}
		return nil
	})
	if err != nil {
		return c.sqlHint(err, q)
	}
	return c.printRows(ctx, r)
}

func (c serverCommands) sqlHint(err error, q sqlQuery) error {
	if q.write || !dberr.IsReadOnly(err) {
		return err
	}
	return &exitError{code: ExitFailed, err: err, hints: []string{"to change data:  add --write"}}
}

type sqlResult struct {
	columns []string
	numeric []bool
	rows    [][]any
	more    bool
	changed int64
}

func execute(ctx context.Context, db tx.Database, q sqlQuery) (*sqlResult, error) {
	conn := tx.ConnOf(ctx, db)
	if !returnsRows(q.text) {
		done, err := conn.ExecContext(ctx, q.text)
		if err != nil {
			return nil, err
		}
		changed, err := done.RowsAffected()
		return &sqlResult{changed: changed}, err
	}
	rows, err := conn.QueryContext(ctx, q.text)
	if err != nil {
		return nil, err
	}
	r, err := scan(db.Dialect(), rows, q.limit)
	return r, errors.Join(err, rows.Close())
}

var (
	comments = regexp.MustCompile(`^(?:\s+|--[^\n]*(?:\n|$)|/\*(?s:.*?)\*/|\()*`)
	queries  = regexp.MustCompile(`(?i)^(?:select|with|values|show|explain|pragma|table)\b`)
	returned = regexp.MustCompile(`(?i)\breturning\b`)
)

// returnsRows guesses a query by its first word: database/sql needs to know. A
// wrong guess loses the number of changed rows.
func returnsRows(text string) bool {
	return queries.MatchString(text[len(comments.FindString(text)):]) || returned.MatchString(text)
}

func scan(d tx.Dialect, rows *sql.Rows, limit int) (*sqlResult, error) {
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, err
	}
	r := &sqlResult{}
	for _, t := range types {
		r.columns = append(r.columns, t.Name())
	}
	r.numeric = make([]bool, len(types))
	for rows.Next() {
		if limit > 0 && len(r.rows) == limit {
			r.more = true
			break
		}
		values, targets := make([]any, len(types)), make([]any, len(types))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		if err := sqlvalue.Scanned(d, types, values); err != nil {
			return nil, err
		}
		for i, v := range values {
			values[i] = cellValue(v, types[i].DatabaseTypeName())
			r.numeric[i] = r.numeric[i] || isNumber(values[i])
		}
		r.rows = append(r.rows, values)
	}
	return r, rows.Err()
}
