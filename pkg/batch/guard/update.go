package guard

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
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

// steps runs the steps one after the other.
func (t *Table[S]) steps(ctx context.Context, key any, r Request) error {
	for _, step := range r.With {
		s := &statement{}
		moved := "(SELECT * FROM " + t.table + " WHERE " + t.columns.key() + " = ?)"
		if t.db.Dialect() == tx.MySQL { // WITH is for SELECT only
			s.inPlace(step, moved, key)
		} else {
			s.add("WITH moved AS " + moved + " " + step.SQL).arg(key).arg(step.Args...)
		}
		if err := t.one(ctx, s, step.Into); err != nil {
			return err
		}
	}
	return nil
}

// one scans the one row that a statement returns.
func (t *Table[S]) one(ctx context.Context, s *statement, into []any) (err error) {
	rows, err := tx.ConnOf(ctx, t.db).QueryContext(ctx, s.text(t.db.Dialect()), s.args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	n := 0
	for ; rows.Next(); n++ {
		if err := rows.Scan(into...); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil || n == 1 {
		return err
	}
	return errors.New(notOne)
}
