package guard

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Table is a table whose rows move by a machine. It is safe for concurrent use.
type Table[S ~string] struct {
	machine  core.Machine[S]
	db       tx.Database
	table    string
	observer core.Observer
	past     map[S]map[S]bool // of machines that only move forward: where a row has passed a state, or rests
}

// NewTable returns the table of a database, by its unquoted name. observer hears of each
// answer, as core.Transitioned, and may be nil.
func NewTable[S ~string](db tx.Database, table string, machine core.Machine[S], observer core.Observer) *Table[S] {
	t := &Table[S]{machine: machine, db: db, table: db.Dialect().Quote(table), observer: core.Observers(observer)}
	t.past = pastStates(machine)
	return t
}

// Name is the quoted name of the table.
func (t *Table[S]) Name() string { return t.table }

// Database is the database that the table is in.
func (t *Table[S]) Database() tx.Database { return t.db }

// Machine returns the transition table.
func (t *Table[S]) Machine() core.Machine[S] { return t.machine }

// Request asks for one move of one row.
type Request struct {
	ID   int64
	Move string
	// Epoch must be the row's; 0: any.
	Epoch int64
	// Where has further conditions that the row must fulfil.
	Where []Condition
	// Set has the columns that the move writes besides its own.
	Set []Assignment
	// With are done with the move, or the move is not made.
	With []Step
	// Trigger is what asked for the move, for logs and metrics; "": the move's name.
	Trigger string
	// Race says that others may try the same move: see core.Transitioned.
	Race bool
}

// Condition is an expression of the row's columns with a ? for each argument.
type Condition struct {
	SQL  string
	Args []any
	// Reason is what a rejection says where the condition is false. Owner: the caller does
	// not own the row, and the rejection is a core.ErrLostOwner.
	Reason string
	Owner  bool
}

// Assignment is a column and what it is set to: an SQL expression with a ? for each
// argument. "": a ?.
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
type Result[S ~string] struct {
	Answer core.Answer
	// Current is the state in which the row was found, State the one that it has now.
	Current, State S
	Epoch, Version int64 // as they are now
}

// Move makes the move, in the transaction that ctx carries, else in one of its own. A
// duplicate is not an error. A rejection is a *core.TransitionError, with core.ErrNotFound
// where there is no such row, and core.ErrLostOwner where the epoch or an owner's condition
// does not hold. A rejection does not roll back the transaction of ctx.
//
// Of a machine that only moves forward (no move of core.IntentTake, and none that leads back
// to a state over others), a move is a duplicate as well when the row has passed the state
// that the move leads to, or rests.
func (t *Table[S]) Move(ctx context.Context, r Request) (Result[S], error) {
	move := t.machine.Move(r.Move)
	if len(move.From) == 0 {
		return Result[S]{}, fmt.Errorf("machine %s has no move %q", t.machine.Name(), r.Move)
	}
	var result Result[S]
	var refused error
	err := errNoLonger
	for tries := 0; errors.Is(err, errNoLonger) && tries < mostTries; tries++ {
		err = t.update(ctx, move, r, &result)
		if errors.Is(err, sql.ErrNoRows) {
			result, refused, err = t.classify(ctx, move, r)
		}
	}
	if err != nil {
		return Result[S]{}, t.failed(r, err)
	}
	t.observe(ctx, move, r, result)
	return result, refused
}

// Try makes the move where the row can make it at once, and reports whether it has. Where it
// has not, the observer does not hear of it; Move answers why.
func (t *Table[S]) Try(ctx context.Context, r Request) (Result[S], bool, error) {
	move := t.machine.Move(r.Move)
	if len(move.From) == 0 {
		return Result[S]{}, false, fmt.Errorf("machine %s has no move %q", t.machine.Name(), r.Move)
	}
	var result Result[S]
	err := t.update(ctx, move, r, &result)
	if errors.Is(err, sql.ErrNoRows) {
		return Result[S]{}, false, nil
	}
	if err != nil {
		return Result[S]{}, false, t.failed(r, err)
	}
	t.observe(ctx, move, r, result)
	return result, true, nil
}

func (t *Table[S]) failed(r Request, err error) error {
	return fmt.Errorf("%s %d: %s: %w", t.machine.Name(), r.ID, r.Move, err)
}

// errNoLonger says that a row moved between the UPDATE that did not find it and the look
// why: now it would be found. It is returned only where that happened mostTries times.
var errNoLonger = errors.New("the row moves faster than it can be updated")

const mostTries = 20

// Bulk asks for one move of many rows.
type Bulk struct {
	Move string
	// Where selects rows, of those in a state from which the move leads.
	Where []Condition
	// OrderBy is an SQL list of columns; "": id. Limit bounds the rows; it is required.
	OrderBy string
	Limit   int
	Set     []Assignment
	Trigger string // as of Request
}

// Moved is one row that moved.
type Moved[S ~string] struct {
	ID             int64
	Before         S
	Epoch, Version int64 // as they are now
}

// MoveAll moves rows, and leaves those that another transaction is working on. The result
// is in the order of ids.
func (t *Table[S]) MoveAll(ctx context.Context, b Bulk) ([]Moved[S], error) {
	move := t.machine.Move(b.Move)
	if len(move.From) == 0 {
		return nil, fmt.Errorf("machine %s has no move %q", t.machine.Name(), b.Move)
	}
	s := t.setting(move, b.Set)
	s.add(" WHERE id IN (SELECT id FROM " + t.table + " WHERE ").states(texts(move.From)).conditions(b.Where)
	order := b.OrderBy
	if order == "" {
		order = "id"
	}
	s.add(" ORDER BY " + order + " LIMIT ?").arg(b.Limit)
	if t.db.Dialect() == tx.Postgres {
		s.add(" FOR UPDATE SKIP LOCKED")
	}
	s.add(") AND ").states(texts(move.From))
	s.add(" RETURNING id, state_before, epoch, version")
	moved, err := t.collect(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("%s: %s of many: %w", t.machine.Name(), b.Move, err)
	}
	slices.SortFunc(moved, func(x, y Moved[S]) int { return cmp.Compare(x.ID, y.ID) })
	for _, m := range moved {
		t.observe(ctx, move, Request{ID: m.ID, Trigger: b.Trigger}, Result[S]{Answer: core.Applied, Current: m.Before})
	}
	return moved, nil
}

func (t *Table[S]) collect(ctx context.Context, s *statement) (moved []Moved[S], err error) {
	rows, err := tx.ConnOf(ctx, t.db).QueryContext(ctx, s.text(t.db.Dialect()), s.args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var m Moved[S]
		if err := rows.Scan(&m.ID, &m.Before, &m.Epoch, &m.Version); err != nil {
			return nil, err
		}
		moved = append(moved, m)
	}
	return moved, rows.Err()
}

// setting begins the UPDATE of a move.
func (t *Table[S]) setting(move core.Move[S], set []Assignment) *statement {
	s := &statement{}
	s.add("UPDATE "+t.table+" SET state_before = state, state = ?, last_move = ?, last_epoch = epoch, version = version + 1").arg(string(move.To), move.Name)
	if move.Intent == core.IntentTake {
		s.add(", epoch = epoch + 1")
	}
	for _, a := range set {
		s.add(", " + t.db.Dialect().Quote(a.Column) + " = " + orValue(a.SQL)).arg(a.Args...)
	}
	return s
}

// update is the guarded UPDATE, with its steps; sql.ErrNoRows where it finds no row.
func (t *Table[S]) update(ctx context.Context, move core.Move[S], r Request, result *Result[S]) error {
	s := t.setting(move, r.Set)
	s.add(" WHERE id = ? AND ").arg(r.ID).states(texts(move.From))
	if r.Epoch != 0 {
		s.add(" AND epoch = ?").arg(r.Epoch)
	}
	s.conditions(r.Where)
	result.Answer = core.Applied
	into := []any{&result.Current, &result.State, &result.Epoch, &result.Version}
	switch {
	case len(r.With) == 0:
		s.add(" RETURNING state_before, state, epoch, version")
	case t.db.Dialect() == tx.Postgres:
		s, into = withSteps(s, r.With, into)
	default:
		s.add(" RETURNING state_before, state, epoch, version")
		return tx.NewManager(t.db).Do(ctx, tx.Attr{Propagation: tx.Nested}, func(ctx context.Context) error {
			row := tx.ConnOf(ctx, t.db).QueryRowContext(ctx, s.text(t.db.Dialect()), s.args...)
			if err := row.Scan(into...); err != nil {
				return err
			}
			return t.steps(ctx, r)
		})
	}
	return tx.ConnOf(ctx, t.db).QueryRowContext(ctx, s.text(t.db.Dialect()), s.args...).Scan(into...)
}

// classify reads why the UPDATE found no row.
func (t *Table[S]) classify(ctx context.Context, move core.Move[S], r Request) (Result[S], error, error) {
	var s statement
	s.add("SELECT state, epoch, version, last_move, last_epoch")
	for _, c := range r.Where {
		s.add(", COALESCE(CASE WHEN " + c.SQL + " THEN 1 ELSE 0 END, 0)").arg(c.Args...)
	}
	s.add(" FROM " + t.table + " WHERE id = ?").arg(r.ID)
	var last core.Mark
	result := Result[S]{Answer: core.Rejected}
	holds := make([]int, len(r.Where))
	into := []any{&result.State, &result.Epoch, &result.Version, &last.Move, &last.Epoch}
	for i := range holds {
		into = append(into, &holds[i])
	}
	refused := &core.TransitionError{Machine: t.machine.Name(), ID: r.ID, Move: move.Name, To: core.Status(move.To), From: statuses(move.From)}
	err := tx.ConnOf(ctx, t.db).QueryRowContext(ctx, s.text(t.db.Dialect()), s.args...).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return result, fmt.Errorf("%w: %w", refused, core.ErrNotFound), nil
	}
	if err != nil {
		return result, nil, err
	}
	result.Current = result.State
	refused.Current, refused.Epoch, refused.Last = core.Status(result.State), result.Epoch, last
	for i, c := range r.Where {
		if holds[i] == 0 && c.Owner {
			refused.Reason = c.Reason
			return result, fmt.Errorf("%w: %w", refused, core.ErrLostOwner), nil
		}
	}
	epoch := r.Epoch
	if epoch == 0 {
		epoch = result.Epoch
	}
	switch answer := t.machine.Answer(move.Name, epoch, result.State, last); {
	case answer == core.Duplicate || t.past[move.To][result.State]:
		result.Answer = core.Duplicate
		return result, nil, nil
	case epoch != result.Epoch:
		refused.Reason = fmt.Sprintf("asked for in epoch %d, and it is in epoch %d", epoch, result.Epoch)
		return result, fmt.Errorf("%w: %w", refused, core.ErrLostOwner), nil
	}
	for i, c := range r.Where {
		if holds[i] == 0 {
			refused.Reason = c.Reason
			return result, refused, nil
		}
	}
	if slices.Contains(move.From, result.State) {
		return result, nil, errNoLonger
	}
	return result, refused, nil
}

// observe tells of an answer: of an applied move when it is committed.
func (t *Table[S]) observe(ctx context.Context, move core.Move[S], r Request, result Result[S]) {
	event := core.Transitioned{
		Machine: t.machine.Name(), Move: move.Name, ID: r.ID, To: core.Status(move.To), Current: core.Status(result.Current),
		Answer: result.Answer, Trigger: r.Trigger, Race: r.Race,
	}
	if event.Trigger == "" {
		event.Trigger = move.Name
	}
	if result.Answer != core.Applied {
		t.observer.Observe(ctx, event)
		return
	}
	tx.AtEnd(ctx, t.db.Name(), func(committed bool) {
		if committed {
			t.observer.Observe(ctx, event)
		}
	})
}

// pastStates returns, for each state, those that come after it and those that rest; nil
// for a machine that raises epochs, or moves in a circle: a row in it has passed nothing.
func pastStates[S ~string](m core.Machine[S]) map[S]map[S]bool {
	next := map[S][]S{}
	for _, move := range m.Moves() {
		if move.Intent == core.IntentTake {
			return nil
		}
		for _, from := range move.From {
			next[from] = append(next[from], move.To)
		}
	}
	past := map[S]map[S]bool{}
	for from := range next {
		if reachedFrom(from, next)[from] {
			return nil
		}
	}
	for _, move := range m.Moves() {
		reached := reachedFrom(move.To, next)
		reached[move.To] = true
		for _, other := range m.Moves() {
			if len(next[other.To]) == 0 {
				reached[other.To] = true
			}
		}
		past[move.To] = reached
	}
	return past
}

// reachedFrom returns the states that moves lead to from a state, over others as well.
func reachedFrom[S ~string](from S, next map[S][]S) map[S]bool {
	reached := map[S]bool{}
	for todo := slices.Clone(next[from]); len(todo) > 0; todo = todo[1:] {
		if !reached[todo[0]] {
			reached[todo[0]] = true
			todo = append(todo, next[todo[0]]...)
		}
	}
	return reached
}

func texts[S ~string](states []S) []string {
	list := make([]string, len(states))
	for i, s := range states {
		list[i] = string(s)
	}
	return list
}

func statuses[S ~string](states []S) []core.Status {
	list := make([]core.Status, len(states))
	for i, s := range states {
		list[i] = core.Status(s)
	}
	return list
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

// states adds the condition that a row is in one of the states.
func (s *statement) states(from []string) *statement {
	s.add("state IN (" + list(len(from)) + ")")
	for _, state := range from {
		s.arg(state)
	}
	return s
}

func (s *statement) conditions(list []Condition) *statement {
	for _, c := range list {
		s.add(" AND (" + c.SQL + ")").arg(c.Args...)
	}
	return s
}

// text returns the statement as the dialect takes it.
func (s *statement) text(d tx.Dialect) string { return d.Bind(s.sql.String()) }

func orValue(sql string) string {
	if sql == "" {
		return "?"
	}
	return sql
}

func list(n int) string { return strings.Join(slices.Repeat([]string{"?"}, n), ", ") }
