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

// Table is a table with rows that move by a machine. It is safe for concurrent use.
type Table[S core.StateType] struct {
	machine  core.Machine[S]
	lines    map[string]*line[S]
	db       tx.Database
	table    string
	observer core.Observer
	options  options
	columns  Columns // quoted
	wrong    error   // the options; the error of every call
}

// NewTable returns the table of a database, by its unquoted name. observer is notified of each answer,
// as core.Transitioned, and may be nil. Without options the table has defaultColumns. A mistake in the
// options is the error of every call.
func NewTable[S core.StateType](db tx.Database, table string, machine core.Machine[S], observer core.Observer, opts ...Option) *Table[S] {
	o := options{columns: defaultColumns(), wait: defaultWait}
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

// Columns returns the columns of the table, unquoted.
func (t *Table[S]) Columns() Columns { return t.options.columns }

// Database returns the database of the table.
func (t *Table[S]) Database() tx.Database { return t.db }

// Machine returns the transition table.
func (t *Table[S]) Machine() core.Machine[S] { return t.machine }

// Move makes the move, in the transaction that ctx carries (tx.Manager's, or one of the application's
// own that tx.Join or gormdb.Join has joined), else in one of its own. A duplicate is not an error. A
// rejection is a *core.TransitionError, with core.ErrNotFound if there is no such row, and
// core.ErrLostOwner if the epoch or an owner's condition does not hold. A rejection does not roll back
// the transaction of ctx.
//
// A move is a duplicate if the row has just made it, in the same epoch; and, unless the table is
// Strict, if the row is in the target state, has passed it, or rests (rule SM2). A rejection with
// TransitionError.Early may succeed later.
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

// Try makes the move if the row can make it at once, and reports whether it did. If not, the observer
// is not notified; Move returns the reason.
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

// check checks a request, and returns its move and the row's key.
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

// bounded limits a wait outside transactions of ctx: it may be for a transaction that the caller has
// begun and not joined.
func (t *Table[S]) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, joins := tx.From(ctx, t.db.Name()); joins || t.options.wait <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, t.options.wait, errWaits{t.options.wait})
}

// errWaits is the cause of a wait that ended.
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

// errNoLonger means that a row moved between the UPDATE that did not find it and the query of the
// reason: now it would be found. It is returned only after mostTries times.
var errNoLonger = errors.New("the row changes faster than it can be updated")

const mostTries = 20
