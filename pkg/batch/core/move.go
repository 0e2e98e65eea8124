package core

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
)

// StateType is texts or integers.
type StateType interface {
	~string | ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32
}

// Intent is a move's meaning for the owner.
type Intent string

// The intents.
const (
	IntentBegin Intent = "begin" // the owner begins
	IntentAsk   Intent = "ask"   // another party requests something
	IntentEnd   Intent = "end"
	// IntentTake raises the epoch.
	IntentTake Intent = "take"
	// IntentRelease: before the work is over.
	IntentRelease Intent = "release"
)

// Move leads from any of From to To; only IntentTake may lead to the same state, since it raises the epoch.
// The framework's states only move forward within an epoch; an application's may have circles.
//
// Trigger, Guard and Prevents are for people; no code acts on them.
type Move[S StateType] struct {
	Name   string
	From   []S
	To     S
	Intent Intent

	Trigger, Guard, Prevents string
}

// Mark is a row's last move and the epoch before it.
type Mark struct {
	Move  string
	Epoch int64
}

// Answer of a guarded transition.
type Answer string

// Duplicate: the row has just made the move in this epoch (its reply may be lost), or, in an application's
// machine, has passed it (rule SM2). Rejected: every other move not in the table.
const (
	Applied   Answer = "applied"
	Duplicate Answer = "duplicate"
	Rejected  Answer = "rejected"
)

// Machine is a transition table, read by the guarded UPDATE, documentation and tests; it alone decides.
type Machine[S StateType] struct {
	name  string
	moves []Move[S]
}

// NewMachine returns a machine; name labels metrics and errors. It fails if a move lacks name, source or
// target, names repeat, or a move without a raised epoch leads to its own source.
func NewMachine[S StateType](name string, moves ...Move[S]) (Machine[S], error) {
	var errs []error
	seen := map[string]bool{}
	for _, m := range moves {
		if seen[m.Name] {
			errs = append(errs, fmt.Errorf("machine %s: move %s is listed twice", name, m.Name))
		}
		seen[m.Name] = true
		// An enumeration's first state is 0: only a text can be absent.
		if m.Name == "" || len(m.From) == 0 || reflect.ValueOf(m.To).Kind() == reflect.String && StateText(m.To) == "" {
			errs = append(errs, fmt.Errorf("machine %s: move %q leads from %v to %q: name, from and to are required", name, m.Name, stateTexts(m.From), StateText(m.To)))
		}
		if m.Intent != IntentTake && slices.Contains(m.From, m.To) {
			errs = append(errs, fmt.Errorf("machine %s: move %s leads from %s to %s and does not raise the epoch", name, m.Name, StateText(m.To), StateText(m.To)))
		}
	}
	return Machine[S]{name: name, moves: moves}, errors.Join(errs...)
}

// StateText is the text, an integer's String, or digits.
func StateText[S StateType](state S) string {
	if v := reflect.ValueOf(state); v.Kind() == reflect.String {
		return v.String()
	}
	return fmt.Sprint(state)
}

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

// Move by name; zero is from nowhere.
func (m Machine[S]) Move(name string) Move[S] {
	for _, mv := range m.moves {
		if mv.Name == name {
			return mv
		}
	}
	return Move[S]{Name: name}
}

// Answer classifies a move requested in an epoch, for a row's state and last move. It is total.
func (m Machine[S]) Answer(move string, epoch int64, state S, last Mark) Answer {
	switch {
	case last == Mark{Move: move, Epoch: epoch}:
		return Duplicate
	case slices.Contains(m.Move(move).From, state):
		return Applied
	}
	return Rejected
}

// TransitionError is a rejected guarded transition.
type TransitionError struct {
	Machine string
	ID      int64
	// Key is a key that is not a number (ID is 0).
	Key     string
	Move    string
	From    []Status // allowed
	To      Status
	Current Status // empty if not found
	Last    Mark
	// Epoch is the guard's, else the row's.
	Epoch  int64
	Reason string // such as "lost owner"
	// Early: the same move may succeed later (rule SM2). Never for executions and tasks.
	Early bool
}

// Error names the move and the reason.
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
