package guard

import (
	"fmt"
	"strconv"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Request requests one move of one row.
type Request struct {
	// ID is the row's key in a table with Columns.ID, and Key in one with Columns.Key: any value that
	// the database accepts, such as a UUID as a text or a driver.Valuer.
	ID   int64
	Key  any
	Move string
	// Epoch must be the row's; 0 means any.
	Epoch int64
	// Where has further conditions for the row.
	Where []Condition
	// Set has the columns that the move writes in addition to its own.
	Set []Assignment
	// With are done with the move, or the move is not made.
	With []Step
	// Trigger is the cause of the move, for logs and metrics; "" means the move's name.
	Trigger string
	// Race means that others may try the same move: see core.Transitioned.
	Race bool
}

// Condition is an expression of the row's columns with a ? for each argument.
type Condition struct {
	SQL  string
	Args []any
	// Reason is the text of the rejection if the condition is false. Owner means that the caller then
	// does not own the row, and the rejection is a core.ErrLostOwner.
	Reason string
	Owner  bool
}

// Assignment is a column and its new value: an SQL expression with a ? for each argument. "" means a ?.
type Assignment struct {
	Column string
	SQL    string
	Args   []any
}

// Set assigns a value.
func Set(column string, value any) Assignment {
	return Assignment{Column: column, Args: []any{value}}
}

// SetSQL assigns an expression.
func SetSQL(column, sql string, args ...any) Assignment {
	return Assignment{Column: column, SQL: sql, Args: args}
}

// Result is the answer to a request.
type Result[S core.StateType] struct {
	Answer core.Answer
	// Current is the state in which the row was found, State its new state.
	Current, State S
	// Epoch and Version are the new values; 0 if the table has no such column.
	Epoch, Version int64
}

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

// keyText returns the key of a request's row, for display.
func keyText(r Request) string {
	switch key := r.Key.(type) {
	case nil:
		return strconv.FormatInt(r.ID, 10)
	case string:
		return key
	case []byte:
		return fmt.Sprintf("%x", key)
	default:
		return fmt.Sprint(key)
	}
}
