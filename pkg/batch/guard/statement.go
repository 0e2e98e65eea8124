package guard

import (
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

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

func list(n int) string { return strings.Join(slices.Repeat([]string{"?"}, n), ", ") }
