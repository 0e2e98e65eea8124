package core

import (
	"fmt"
	"slices"
)

// Status is the state of a job or step execution (rule D3).
type Status string

// The statuses.
const (
	StatusStarting  Status = "STARTING"
	StatusStarted   Status = "STARTED"
	StatusStopping  Status = "STOPPING"
	StatusStopped   Status = "STOPPED"
	StatusCompleted Status = "COMPLETED"
	StatusFailed    Status = "FAILED"
	StatusAbandoned Status = "ABANDONED"
	StatusUnknown   Status = "UNKNOWN"
)

// Exit codes that the framework itself gives. An exit code is a free string;
// authors may use their own besides these.
const (
	ExitCompleted = "COMPLETED"
	ExitFailed    = "FAILED"
	ExitStopped   = "STOPPED"
	ExitNoop      = "NOOP"
	ExitUnknown   = "UNKNOWN"
	// ExitExpectFailed is the exit code of work whose gate did not hold.
	ExitExpectFailed = "EXPECT_FAILED"
)

// IsRunning reports whether an execution in this status is owned by a process.
func (s Status) IsRunning() bool {
	return s == StatusStarting || s == StatusStarted || s == StatusStopping
}

// IsOver reports whether work in this status has ended.
func (s Status) IsOver() bool { return !s.IsRunning() }

// Answer is what a guarded transition answers.
type Answer string

// The answers: the row was changed; it already was there, past it, or terminal
// in the same epoch (benign); or somebody else owns it or there is no such move.
const (
	Applied   Answer = "applied"
	Duplicate Answer = "duplicate"
	Rejected  Answer = "rejected"
)

// Move is one line of a transition table: To may be reached from any of From.
type Move[S ~string] struct {
	To   S
	From []S
}

// Machine is a transition table. The guarded UPDATE of the repository, the
// documentation's diagram and the tests all read it; nothing else decides which
// status may follow which.
type Machine[S ~string] struct {
	name  string
	moves []Move[S]
}

// NewMachine returns a machine; name is the label of its metrics and errors.
func NewMachine[S ~string](name string, moves ...Move[S]) Machine[S] {
	return Machine[S]{name: name, moves: moves}
}

// Executions is the transition table of job and step executions (rule D3).
func Executions() Machine[Status] {
	return NewMachine("execution",
		Move[Status]{StatusStarted, []Status{StatusStarting}},
		Move[Status]{StatusStopping, []Status{StatusStarting, StatusStarted}},
		Move[Status]{StatusCompleted, []Status{StatusStarted, StatusStopping}},
		Move[Status]{StatusStopped, []Status{StatusStarting, StatusStarted, StatusStopping}},
		Move[Status]{StatusFailed, []Status{StatusStarting, StatusStarted, StatusStopping}},
		Move[Status]{StatusUnknown, []Status{StatusStarted, StatusStopping}},
		Move[Status]{StatusAbandoned, []Status{StatusStopping, StatusStopped, StatusFailed, StatusUnknown}},
	)
}

// Name returns the machine's label.
func (m Machine[S]) Name() string { return m.name }

// Moves returns the table.
func (m Machine[S]) Moves() []Move[S] { return slices.Clone(m.moves) }

// From returns the states from which to may be reached; none if it is initial
// or unknown.
func (m Machine[S]) From(to S) []S {
	for _, mv := range m.moves {
		if mv.To == to {
			return slices.Clone(mv.From)
		}
	}
	return nil
}

// Answer classifies a transition to to of a row that is found in current and in
// the caller's epoch. It is total: every pair has one answer. Applied means that
// the move is in the table; Duplicate that the row is already there or past it
// (to leads to current by moves of the table) or that no move leaves current.
func (m Machine[S]) Answer(current, to S) Answer {
	if slices.Contains(m.From(to), current) {
		return Applied
	}
	if len(m.From(to)) > 0 && (current == to || m.terminal(current) || m.reaches(to, current, nil)) {
		return Duplicate
	}
	return Rejected
}

func (m Machine[S]) terminal(s S) bool {
	for _, mv := range m.moves {
		if slices.Contains(mv.From, s) {
			return false
		}
	}
	return true
}

func (m Machine[S]) reaches(from, to S, seen []S) bool {
	for _, mv := range m.moves {
		if !slices.Contains(mv.From, from) || slices.Contains(seen, mv.To) {
			continue
		}
		if mv.To == to || m.reaches(mv.To, to, append(seen, mv.To)) {
			return true
		}
	}
	return false
}

// TransitionError is a guarded transition that was rejected.
type TransitionError struct {
	Machine string
	ID      int64
	From    []Status // allowed
	To      Status
	Current Status // found in the database; empty if there is no such row
	Reason  string // such as "lost owner"
}

// Error says what was refused, and why.
func (e *TransitionError) Error() string {
	current := string(e.Current)
	if current == "" {
		current = "no such row"
	}
	msg := fmt.Sprintf("%s %d: transition to %s refused: it is %s, allowed from %v", e.Machine, e.ID, e.To, current, e.From)
	if e.Reason != "" {
		msg += " (" + e.Reason + ")"
	}
	return msg
}
