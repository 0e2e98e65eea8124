package guard

import (
	"database/sql/driver"
	"reflect"
	"slices"

	"github.com/surfin-batch/surfin/pkg/batch/core"
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
