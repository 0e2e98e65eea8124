package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Bulk requests one move of many rows.
type Bulk struct {
	Move string
	// Where selects rows among those in a state from which the move leads.
	Where []Condition
	// OrderBy is an SQL list of columns; "" means the key. Limit bounds the rows; it is required.
	OrderBy string
	Limit   int
	Set     []Assignment
	Trigger string // as in Request
}

// Moved is one row that moved.
type Moved[S core.StateType] struct {
	ID  int64
	Key any // as the database returns it; nil in a table with Columns.ID
	// Before is the zero state if it is not known: the move leads from several states, and the table
	// has no Columns.StateBefore.
	Before         S
	Epoch, Version int64 // current values
}

// MoveAll moves rows, except those that another transaction is working on. The result is in the order
// of keys.
func (t *Table[S]) MoveAll(ctx context.Context, b Bulk) ([]Moved[S], error) {
	if t.wrong != nil {
		return nil, t.wrong
	}
	move := t.lines[b.Move]
	if move == nil {
		return nil, fmt.Errorf("machine %s has no move %q", t.machine.Name(), b.Move)
	}
	ctx, done := t.bounded(ctx)
	defer done()
	s, key := t.setting(move, b.Set), t.columns.key()
	begin, end := " IN (SELECT "+key+" FROM "+t.table+" WHERE ", ")"
	switch t.db.Dialect() {
	case tx.Postgres: // it may execute a query in IN several times, each with other rows
		begin, end = " = ANY(ARRAY(SELECT "+key+" FROM "+t.table+" WHERE ", " FOR UPDATE SKIP LOCKED))"
	case tx.MySQL: // the rows are locked before the UPDATE (rule MY8)
		begin, end = " IS NOT NULL AND ", " FOR UPDATE SKIP LOCKED"
	case tx.SQLite:
	}
	s.add(" WHERE "+key+begin).states(t.columns.State, move.from).conditions(b.Where)
	s.add(" ORDER BY " + cmp.Or(b.OrderBy, key) + " LIMIT ?").arg(b.Limit).add(end)
	if t.db.Dialect() != tx.MySQL {
		s.add(" AND ").states(t.columns.State, move.from)
	}
	moved, err := t.collect(ctx, move, s)
	if err != nil {
		if waits, ok := errors.AsType[errWaits](context.Cause(ctx)); ok {
			err = fmt.Errorf("%w: %w", waits, err)
		}
		return nil, fmt.Errorf("%s: %s of many: %w", t.machine.Name(), b.Move, err)
	}
	slices.SortFunc(moved, func(x, y Moved[S]) int {
		if x.Key == nil {
			return cmp.Compare(x.ID, y.ID)
		}
		return cmp.Compare(keyText(Request{Key: x.Key}), keyText(Request{Key: y.Key}))
	})
	known := t.columns.StateBefore != "" || len(move.From) == 1
	for _, m := range moved {
		var before core.Status
		if known {
			before = move.textOf(m.Before)
		}
		t.observe(ctx, move, Request{ID: m.ID, Key: m.Key, Trigger: b.Trigger}, core.Applied, before, false)
	}
	return moved, nil
}

func (t *Table[S]) collect(ctx context.Context, move *line[S], s *statement) (moved []Moved[S], err error) {
	var m Moved[S]
	into := []any{&m.ID}
	if t.columns.Key != "" {
		into[0] = &m.Key
	}
	columns := t.columns.key()
	for _, c := range []struct {
		column string
		into   any
	}{{t.columns.StateBefore, &m.Before}, {t.columns.Epoch, &m.Epoch}, {t.columns.Version, &m.Version}} {
		if c.column != "" {
			columns += ", " + c.column
			into = append(into, c.into)
		}
	}
	if t.columns.StateBefore == "" && len(move.From) == 1 {
		m.Before = move.From[0]
	}
	s.add(" RETURNING " + columns)
	rows, err := tx.ConnOf(ctx, t.db).QueryContext(ctx, s.text(t.db.Dialect()), s.args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		moved = append(moved, m)
	}
	return moved, rows.Err()
}
