package guard

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// line is a move in the form for statements and observers.
type line[S core.StateType] struct {
	core.Move[S]
	from   []any // in the database's form
	to     any
	fromAs []core.Status // for display
	toAs   core.Status
}

func linesOf[S core.StateType](m core.Machine[S]) map[string]*line[S] {
	lines := map[string]*line[S]{}
	for _, move := range m.Moves() {
		l := &line[S]{Move: move, to: bound(move.To), toAs: core.Status(core.StateText(move.To))}
		for _, from := range move.From {
			l.from = append(l.from, bound(from))
			l.fromAs = append(l.fromAs, core.Status(core.StateText(from)))
		}
		lines[move.Name] = l
	}
	return lines
}

// textOf returns the name of a state, which is mostly one that the move leads from.
func (l *line[S]) textOf(state S) core.Status {
	if i := slices.Index(l.From, state); i >= 0 {
		return l.fromAs[i]
	}
	return core.Status(core.StateText(state))
}

// bound returns a state for the database: the value of its driver.Valuer, else a text or an integer.
func bound[S core.StateType](state S) any {
	if valuer, ok := any(state).(driver.Valuer); ok {
		return valuer
	}
	switch v := reflect.ValueOf(state); {
	case v.CanInt():
		return v.Int()
	case v.CanUint():
		return int64(v.Uint()) //nolint:gosec // at most 32 bits
	default:
		return v.String()
	}
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

// inPlace writes the row in each place of moved.
func (s *statement) inPlace(step Step, row string, key any) {
	rest, args := step.SQL, step.Args
	for {
		before, after, found := strings.Cut(rest, " moved")
		if !found {
			break
		}
		n := strings.Count(before, "?")
		s.add(before).arg(args[:n]...)
		args, rest = args[n:], after
		if after != "" && !strings.ContainsAny(after[:1], " \n\t)") { // moved.id
			s.add(" moved")
			continue
		}
		s.add(" " + row).arg(key)
		if !hasAlias(after) {
			s.add(" AS moved")
		}
	}
	s.add(rest).arg(args...)
}

func hasAlias(text string) bool {
	words := strings.Fields(text)
	if len(words) == 0 || strings.ContainsAny(words[0][:1], "),;") {
		return false
	}
	return !slices.Contains([]string{"WHERE", "JOIN", "LEFT", "INNER", "CROSS", "GROUP", "ORDER", "LIMIT", "RETURNING", "FOR", "UNION"}, strings.ToUpper(words[0]))
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

func list(n int) string { return strings.Join(slices.Repeat([]string{"?"}, n), ", ") }
