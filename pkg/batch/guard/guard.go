package guard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Table has rows that move by a machine. It is safe for concurrent use.
type Table[S core.StateType] struct {
	machine  core.Machine[S]
	lines    map[string]*line[S]
	db       tx.Database
	table    string
	observer core.Observer
	options  options
	columns  Columns
	wrong    error // of every call
}

// NewTable returns a table by its unquoted name. observer receives each answer and may be nil. The default is
// DefaultColumns; wrong options fail every call.
func NewTable[S core.StateType](db tx.Database, table string, machine core.Machine[S], observer core.Observer, opts ...Option) *Table[S] {
	o := options{columns: DefaultColumns(), wait: defaultWait}
	for _, opt := range opts {
		opt(&o)
	}
	t := &Table[S]{
		machine: machine, lines: linesOf(machine), db: db, table: db.Dialect().Quote(table), observer: core.Observers(observer),
		options: o, columns: o.columns.quoted(db.Dialect()),
	}
	if err := o.columns.check(); err != nil {
		t.wrong = fmt.Errorf("columns of table %s: %w", table, err)
	}
	return t
}

// Name returns the quoted name of the table.
func (t *Table[S]) Name() string { return t.table }

// Columns returns them unquoted.
func (t *Table[S]) Columns() Columns { return t.options.columns }

// Database returns the database of the table.
func (t *Table[S]) Database() tx.Database { return t.db }

// Machine returns the transition table.
func (t *Table[S]) Machine() core.Machine[S] { return t.machine }

// Request requests one move of a row.
type Request struct {
	// ID is the key with Columns.ID; Key, with Columns.Key, any database value.
	ID   int64
	Key  any
	Move string
	// Epoch must be the row's; 0 means any.
	Epoch int64
	Where []Condition
	Set   []Assignment
	// With are done with the move, or neither is.
	With []Step
	// Trigger is the cause, for logs; "" is the move's name.
	Trigger string
	// Race: others may try the same move; see core.Transitioned.
	Race bool
}

// Condition has a ? for each argument.
type Condition struct {
	SQL  string
	Args []any
	// Reason rejects if false. Owner makes it a core.ErrLostOwner.
	Reason string
	Owner  bool
}

// Assignment is a column and an SQL expression with a ? per argument; "" means a ?.
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

// Result answers a request.
type Result[S core.StateType] struct {
	Answer         core.Answer
	Current, State S
	// Epoch and Version are new; 0 without a column.
	Epoch, Version int64
}

// Move makes the move in ctx's transaction (tx.Manager's, tx.Join or gormdb.Join), else its own. A rejection
// is a *core.TransitionError, with core.ErrNotFound without a row, core.ErrLostOwner by epoch or owner; it
// does not roll back ctx's transaction.
//
// A duplicate is not an error: the row's last move in this epoch, or, unless Strict, a row in or past
// the target, or at rest (rule SM2). TransitionError.Early may succeed later.
func (t *Table[S]) Move(ctx context.Context, r Request) (result Result[S], err error) {
	move, key, err := t.check(r)
	if err != nil {
		return Result[S]{}, err
	}
	ctx, done := t.bounded(ctx)
	defer done()
	var refused *core.TransitionError
	var why error
	err = errNoLonger
	for tries := 0; errors.Is(err, errNoLonger) && tries < mostTries; tries++ {
		err = t.update(ctx, move, key, r, &result)
		if errors.Is(err, sql.ErrNoRows) {
			result, refused, why, err = t.classify(ctx, move, key, r)
		}
	}
	if err != nil {
		return Result[S]{}, t.failed(ctx, r, err)
	}
	if refused != nil {
		t.observe(ctx, move, r, result.Answer, refused.Current, refused.Early)
	} else {
		t.observe(ctx, move, r, result.Answer, move.textOf(result.Current), false)
	}
	return result, why
}

// Try moves at once or not; then the observer is not notified.
func (t *Table[S]) Try(ctx context.Context, r Request) (Result[S], bool, error) {
	move, key, err := t.check(r)
	if err != nil {
		return Result[S]{}, false, err
	}
	ctx, done := t.bounded(ctx)
	defer done()
	var result Result[S]
	err = t.update(ctx, move, key, r, &result)
	if errors.Is(err, sql.ErrNoRows) {
		return Result[S]{}, false, nil
	}
	if err != nil {
		return Result[S]{}, false, t.failed(ctx, r, err)
	}
	t.observe(ctx, move, r, result.Answer, move.textOf(result.Current), false)
	return result, true, nil
}

func (t *Table[S]) check(r Request) (move *line[S], key any, err error) {
	if t.wrong != nil {
		return nil, nil, t.wrong
	}
	move, key = t.lines[r.Move], any(r.ID)
	switch {
	case move == nil:
		return nil, nil, fmt.Errorf("machine %s has no move %q", t.machine.Name(), r.Move)
	case t.columns.Key != "" && (r.Key == nil || r.ID != 0):
		return nil, nil, fmt.Errorf("%s: table %s has the key %s: select the row by Request.Key, not by ID", t.machine.Name(), t.table, t.columns.Key)
	case t.columns.Key == "" && r.Key != nil:
		return nil, nil, fmt.Errorf("%s: table %s has the key %s, an integer: select the row by Request.ID, or set Columns.Key", t.machine.Name(), t.table, t.columns.ID)
	case t.columns.Epoch == "" && r.Epoch != 0:
		return nil, nil, fmt.Errorf("%s: table %s has no column for the epoch, but the request has epoch %d", t.machine.Name(), t.table, r.Epoch)
	case t.columns.Key != "":
		key = r.Key
	}
	return move, key, nil
}

// The wait may be for a transaction that the caller has not joined.
func (t *Table[S]) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, joins := tx.From(ctx, t.db.Name()); joins || t.options.wait <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, t.options.wait, errWaits{t.options.wait})
}

type errWaits struct{ limit time.Duration }

func (e errWaits) Error() string {
	return fmt.Sprintf("waited %v (guard.Wait) for a transaction that locks the row or the database; if it is your own, join it (tx.Join, gormdb.Join)", e.limit)
}

func (t *Table[S]) failed(ctx context.Context, r Request, err error) error {
	if waits, ok := errors.AsType[errWaits](context.Cause(ctx)); ok {
		err = fmt.Errorf("%w: %w", waits, err)
	}
	return fmt.Errorf("%s %s: %s: %w", t.machine.Name(), keyText(r), r.Move, err)
}

// The row moved between UPDATE and query; returned after mostTries.
var errNoLonger = errors.New("the row changes faster than it can be updated")

const mostTries = 20
