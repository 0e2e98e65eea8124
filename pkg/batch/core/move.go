package core

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
)

// StateType constrains the states of a machine: texts or integers, such as an enumeration that a table
// stores as a number.
type StateType interface {
	~string | ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32
}

// Intent is the meaning of a move for the owner of a row.
type Intent string

// The intents.
const (
	IntentBegin Intent = "begin" // the owner begins the work
	IntentAsk   Intent = "ask"   // another party requests something from the owner
	IntentEnd   Intent = "end"   // the work is over
	// IntentTake ends the current ownership: the epoch is raised.
	IntentTake Intent = "take"
	// IntentRelease ends the ownership before the work is over.
	IntentRelease Intent = "release"
)

// Move is a named line of a transition table. It leads from any of From to To. Only a move of
// IntentTake may lead from a state to itself: it raises the epoch. In the machines of the framework
// states only move forward within an epoch; an application's machine may have circles.
//
// Trigger, Guard and Prevents are for people: the cause of the move, the conditions of the UPDATE other
// than the state, and the failure that the move prevents. No code acts on them.
type Move[S StateType] struct {
	Name   string
	From   []S
	To     S
	Intent Intent

	Trigger, Guard, Prevents string
}

// Mark is the last move of a row and the epoch in which it was made, before the move raised it.
type Mark struct {
	Move  string
	Epoch int64
}

// Answer is the result of a guarded transition.
type Answer string

// The answers. Duplicate answers a move that the row has just made, in the same epoch: the reply to it
// may have been lost; and in an application's machine also a move that the row has passed (rule SM2).
// Rejected answers every other move that is not in the table.
const (
	Applied   Answer = "applied"
	Duplicate Answer = "duplicate"
	Rejected  Answer = "rejected"
)

// Machine is a transition table. The guarded UPDATE of the repository, the table of the documentation
// and the tests all read it; it alone decides which status may follow which.
type Machine[S StateType] struct {
	name  string
	moves []Move[S]
}

// NewMachine returns a machine; name is the label of its metrics and errors. It fails if a move lacks a
// name, a source or a target, if two moves have one name, and if a move that does not raise the epoch
// leads to a state that it starts from.
func NewMachine[S StateType](name string, moves ...Move[S]) (Machine[S], error) {
	var errs []error
	seen := map[string]bool{}
	for _, m := range moves {
		if seen[m.Name] {
			errs = append(errs, fmt.Errorf("machine %s: move %s is listed twice", name, m.Name))
		}
		seen[m.Name] = true
		// The first state of an enumeration is 0: only a text can be absent.
		if m.Name == "" || len(m.From) == 0 || reflect.ValueOf(m.To).Kind() == reflect.String && StateText(m.To) == "" {
			errs = append(errs, fmt.Errorf("machine %s: move %q leads from %v to %q: name, from and to are required", name, m.Name, stateTexts(m.From), StateText(m.To)))
		}
		if m.Intent != IntentTake && slices.Contains(m.From, m.To) {
			errs = append(errs, fmt.Errorf("machine %s: move %s leads from %s to %s and does not raise the epoch", name, m.Name, StateText(m.To), StateText(m.To)))
		}
	}
	return Machine[S]{name: name, moves: moves}, errors.Join(errs...)
}

// StateText returns the name of a state: the text itself; for an integer its String, else its digits.
func StateText[S StateType](state S) string {
	if v := reflect.ValueOf(state); v.Kind() == reflect.String {
		return v.String()
	}
	return fmt.Sprint(state)
}

// stateTexts returns the names of states.
func stateTexts[S StateType](states []S) []string {
	texts := make([]string, len(states))
	for i, s := range states {
		texts[i] = StateText(s)
	}
	return texts
}

// Name returns the machine's label.
func (m Machine[S]) Name() string { return m.name }

// Moves returns the table.
func (m Machine[S]) Moves() []Move[S] { return slices.Clone(m.moves) }

// Move returns a move by its name. The zero Move is from nowhere.
func (m Machine[S]) Move(name string) Move[S] {
	for _, mv := range m.moves {
		if mv.Name == name {
			return mv
		}
	}
	return Move[S]{Name: name}
}

// Answer classifies a move, requested in an epoch, of a row found in a state of that epoch with a last
// move. It is total.
func (m Machine[S]) Answer(move string, epoch int64, state S, last Mark) Answer {
	switch {
	case last == Mark{Move: move, Epoch: epoch}:
		return Duplicate
	case slices.Contains(m.Move(move).From, state):
		return Applied
	}
	return Rejected
}

// Relation relates a state to the target of a move that does not start from it.
type Relation string

// The relations (rule SM2). A row that has passed the target, or rests, has nothing to do; an early row
// may still reach the state from which the move leads.
const (
	Passed    Relation = "passed"    // the target itself, or a state that follows it without leading back
	Rests     Relation = "rests"     // no move leads from the state
	Early     Relation = "early"     // moves lead from the state to the target
	Unrelated Relation = "unrelated" // neither, or the state is not in the table
)

// Relation relates a state to the target of a move. Each pair is judged alone: a circle in one part of
// the table has no effect on other parts.
func (m Machine[S]) Relation(state, target S) Relation {
	ahead := m.reach(state)
	switch {
	case !m.knows(state):
		return Unrelated
	case len(ahead) == 0:
		return Rests
	case state == target || m.reach(target)[state] && !ahead[target]:
		return Passed
	case ahead[target]:
		return Early
	}
	return Unrelated
}

func (m Machine[S]) knows(state S) bool {
	return slices.ContainsFunc(m.moves, func(mv Move[S]) bool { return mv.To == state || slices.Contains(mv.From, state) })
}

// reach returns the states reachable from a state, directly or through others.
func (m Machine[S]) reach(from S) map[S]bool {
	reached := map[S]bool{}
	for todo := []S{from}; len(todo) > 0; todo = todo[1:] {
		for _, mv := range m.moves {
			if slices.Contains(mv.From, todo[0]) && !reached[mv.To] {
				reached[mv.To] = true
				todo = append(todo, mv.To)
			}
		}
	}
	return reached
}

// TransitionError is a guarded transition that was rejected.
type TransitionError struct {
	Machine string
	ID      int64
	// Key is the row's key as a text, if it is not a number (and ID is 0), such as a UUID.
	Key     string
	Move    string
	From    []Status // allowed
	To      Status
	Current Status // found in the database; empty if there is no such row
	Last    Mark   // the row's last move
	// Epoch is the guard's, or the row's if the move has no guard.
	Epoch  int64
	Reason string // such as "lost owner"
	// Early means that the row, or its absence, may still lead to a state from which the move starts:
	// the same move may succeed later (rule SM2). Executions and tasks are never early.
	Early bool
}

// Error names the refused move and the reason.
func (e *TransitionError) Error() string {
	current := string(e.Current)
	if current == "" {
		current = "no such row"
	}
	row := e.Key
	if row == "" {
		row = strconv.FormatInt(e.ID, 10)
	}
	msg := fmt.Sprintf("%s %s: transition to %s refused: it is %s, allowed from %v", e.Machine, row, e.To, current, e.From)
	if e.Reason != "" {
		msg += " (" + e.Reason + ")"
	}
	return msg
}

// FoundIn returns the status in which a rejected move found the row, if the row belongs to the caller
// and its last move was made in the caller's epoch. A caller that lost the reply to an earlier move
// reads the result of that move here.
func FoundIn(err error) (Status, bool) {
	refused, ok := errors.AsType[*TransitionError](err)
	if !ok || errors.Is(err, ErrLostOwner) || refused.Current == "" || refused.Last.Epoch != refused.Epoch {
		return "", false
	}
	return refused.Current, true
}
