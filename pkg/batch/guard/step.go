package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Step is a statement that belongs to a move. It finds the row, in its state after the move, in
// "moved", and returns one row; otherwise the move fails and is not made. On PostgreSQL all steps and
// the move are one statement, so a step sees other rows in their state before it; elsewhere they follow
// one another in one transaction.
type Step struct {
	// SQL is an INSERT or UPDATE with RETURNING, or a SELECT, with a ? for each argument.
	SQL  string
	Args []any
	// Into are the destinations of the returned values.
	Into []any
}

// notOne is the error of a step that does not return one row.
const notOne = "a step of the move did not return one row"

// withSteps combines an UPDATE and the steps into one statement. If a step does not return exactly one
// row, a cast fails, and with it the whole statement.
func withSteps(update *statement, steps []Step, returned []string, into []any) (*statement, []any) {
	s := &statement{}
	s.add("WITH moved AS (" + update.sql.String() + " RETURNING *)").arg(update.args...)
	columns, from := "", ""
	checked := make([]int, len(steps))
	for i, step := range steps {
		name := fmt.Sprintf("step_%d", i)
		s.add(", " + name + " AS (" + step.SQL + ")").arg(step.Args...)
		columns += fmt.Sprintf(", CAST(CASE WHEN (SELECT count(*) FROM %[1]s) = 1 THEN '1' ELSE '%[2]s' END AS int), %[1]s.*", name, notOne)
		from += " LEFT JOIN " + name + " ON true"
		into = append(append(into, &checked[i]), step.Into...)
	}
	s.add(" SELECT moved." + strings.Join(returned, ", moved.") + columns + " FROM moved" + from)
	return s, into
}

// steps runs the steps one after the other.
func (t *Table[S]) steps(ctx context.Context, key any, r Request) error {
	for _, step := range r.With {
		s := &statement{}
		s.add("WITH moved AS (SELECT * FROM " + t.table + " WHERE " + t.columns.key() + " = ?) " + step.SQL).arg(key).arg(step.Args...)
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
