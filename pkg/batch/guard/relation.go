package guard

import (
	"slices"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// A relation of a state to the target of a move that does not start there.
type relation string

// (rule SM2) passed or rests: nothing to do; early may still reach the move's source.
const (
	passed    relation = "passed" // the target, or a state after it without a way back
	rests     relation = "rests"  // no move leads from the state
	early     relation = "early"
	unrelated relation = "unrelated" // neither, or not in the table
)

// moves are a machine's table.
type moves[S core.StateType] []core.Move[S]

// relation judges each pair alone: circles elsewhere have no effect.
func (m moves[S]) relation(state, target S) relation {
	ahead := m.reach(state)
	switch {
	case !m.knows(state):
		return unrelated
	case len(ahead) == 0:
		return rests
	case state == target || m.reach(target)[state] && !ahead[target]:
		return passed
	case ahead[target]:
		return early
	}
	return unrelated
}

func (m moves[S]) knows(state S) bool {
	return slices.ContainsFunc(m, func(mv core.Move[S]) bool { return mv.To == state || slices.Contains(mv.From, state) })
}

// Directly or through others.
func (m moves[S]) reach(from S) map[S]bool {
	reached := map[S]bool{}
	for todo := []S{from}; len(todo) > 0; todo = todo[1:] {
		for _, mv := range m {
			if slices.Contains(mv.From, todo[0]) && !reached[mv.To] {
				reached[mv.To] = true
				todo = append(todo, mv.To)
			}
		}
	}
	return reached
}
