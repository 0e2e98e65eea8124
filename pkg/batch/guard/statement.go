package guard

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// setting begins the UPDATE of a move.
func (t *Table[S]) setting(move *line[S], set []Assignment) *statement {
	s, c := &statement{}, t.columns
	s.add("UPDATE " + t.table + " SET " + c.State + " = ?").arg(move.to)
	if c.StateBefore != "" {
		s.add(", " + c.StateBefore + " = " + c.State)
	}
	if c.LastMove != "" {
		s.add(", " + c.LastMove + " = ?").arg(move.Name)
	}
	if c.LastEpoch != "" {
		s.add(", " + c.LastEpoch + " = " + c.Epoch)
	}
	if c.Version != "" {
		s.add(", " + c.Version + " = " + c.Version + " + 1")
	}
	if move.Intent == core.IntentTake && c.Epoch != "" {
		s.add(", " + c.Epoch + " = " + c.Epoch + " + 1")
	}
	for _, a := range set {
		s.add(", " + t.db.Dialect().Quote(a.Column) + " = " + cmp.Or(a.SQL, "?")).arg(a.Args...)
	}
	return s
}

// update runs the guarded UPDATE, with its steps; sql.ErrNoRows if it finds no row. A table that does
// not keep the state before is updated state by state, as that is part of the answer.
func (t *Table[S]) update(ctx context.Context, move *line[S], key any, r Request, result *Result[S]) error {
	if t.columns.StateBefore != "" {
		return t.updateFrom(ctx, move, move.from, key, r, result)
	}
	for i := range move.from {
		result.Current = move.From[i]
		if err := t.updateFrom(ctx, move, move.from[i:i+1], key, r, result); !errors.Is(err, sql.ErrNoRows) {
			return err
		}
	}
	return sql.ErrNoRows
}

func (t *Table[S]) updateFrom(ctx context.Context, move *line[S], from []any, key any, r Request, result *Result[S]) error {
	s := t.setting(move, r.Set)
	s.add(" WHERE "+t.columns.key()+" = ? AND ").arg(key).states(t.columns.State, from)
	if r.Epoch != 0 {
		s.add(" AND " + t.columns.Epoch + " = ?").arg(r.Epoch)
	}
	s.conditions(r.Where)
	result.Answer = core.Applied
	columns, into := t.returned(result)
	switch {
	case len(r.With) == 0:
		s.add(" RETURNING " + strings.Join(columns, ", "))
	case t.db.Dialect() == tx.Postgres:
		s, into = withSteps(s, r.With, columns, into)
	default:
		s.add(" RETURNING " + strings.Join(columns, ", "))
		return tx.NewManager(t.db).Do(ctx, tx.Attr{Propagation: tx.Nested}, func(ctx context.Context) error {
			row := tx.ConnOf(ctx, t.db).QueryRowContext(ctx, s.text(t.db.Dialect()), s.args...)
			if err := row.Scan(into...); err != nil {
				return err
			}
			return t.steps(ctx, key, r)
		})
	}
	return tx.ConnOf(ctx, t.db).QueryRowContext(ctx, s.text(t.db.Dialect()), s.args...).Scan(into...)
}

// returned are the columns that describe the move, and their destinations.
func (t *Table[S]) returned(result *Result[S]) (columns []string, into []any) {
	columns, into = append(make([]string, 0, 4), t.columns.State), append(make([]any, 0, 4), &result.State)
	add := func(column string, target any) {
		if column != "" {
			columns, into = append(columns, column), append(into, target)
		}
	}
	add(t.columns.StateBefore, &result.Current)
	add(t.columns.Epoch, &result.Epoch)
	add(t.columns.Version, &result.Version)
	return columns, into
}

// statement is SQL text with a ? for each argument.
type statement struct {
	sql  strings.Builder
	args []any
}

func (s *statement) add(text string) *statement {
	s.sql.WriteString(text)
	return s
}

func (s *statement) arg(args ...any) *statement {
	s.args = append(s.args, args...)
	return s
}

func (s *statement) states(column string, from []any) *statement {
	return s.add(column + " IN (" + list(len(from)) + ")").arg(from...)
}

func (s *statement) conditions(list []Condition) *statement {
	for _, c := range list {
		s.add(" AND (" + c.SQL + ")").arg(c.Args...)
	}
	return s
}

func (s *statement) text(d tx.Dialect) string { return d.Bind(s.sql.String()) }

func list(n int) string { return strings.Join(slices.Repeat([]string{"?"}, n), ", ") }
