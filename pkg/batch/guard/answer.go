package guard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// found is the state of a row that the UPDATE did not find.
type found[S core.StateType] struct {
	result Result[S]
	last   core.Mark
	holds  []int // of the request's conditions
}

// classify reads why the UPDATE found no row. refused is the rejection, and why is the same with its
// wrapped errors; nil for a duplicate.
func (t *Table[S]) classify(ctx context.Context, move *line[S], key any, r Request) (result Result[S], refused *core.TransitionError, why, err error) {
	row, err := t.read(ctx, key, r.Where)
	refused = &core.TransitionError{Machine: t.machine.Name(), ID: r.ID, Move: move.Name, To: move.toAs, From: move.fromAs}
	if r.Key != nil {
		refused.Key = keyText(r)
	}
	if errors.Is(err, sql.ErrNoRows) {
		refused.Early = !t.options.strict // an event may come before its row
		return Result[S]{Answer: core.Rejected}, refused, fmt.Errorf("%w: %w", refused, core.ErrNotFound), nil
	}
	if err != nil {
		return result, nil, nil, err
	}
	result = row.result
	refused.Current, refused.Epoch, refused.Last = core.Status(core.StateText(result.State)), result.Epoch, row.last
	for i, c := range r.Where {
		if row.holds[i] == 0 && c.Owner {
			refused.Reason = c.Reason
			return result, refused, fmt.Errorf("%w: %w", refused, core.ErrLostOwner), nil
		}
	}
	epoch := r.Epoch
	if epoch == 0 {
		epoch = result.Epoch
	}
	starts := slices.Contains(move.From, result.State)
	switch {
	case t.machine.Answer(move.Name, epoch, result.State, row.last) == core.Duplicate:
		result.Answer = core.Duplicate
		return result, nil, nil, nil
	case epoch != result.Epoch:
		refused.Reason = fmt.Sprintf("requested for epoch %d, but it is in epoch %d", epoch, result.Epoch)
		return result, refused, fmt.Errorf("%w: %w", refused, core.ErrLostOwner), nil
	case !starts && !t.options.strict:
		switch moves[S](t.machine.Moves()).relation(result.State, move.To) {
		case passed, rests:
			result.Answer = core.Duplicate
			return result, nil, nil, nil
		case early:
			refused.Early = true
		case unrelated:
		}
	}
	for i, c := range r.Where {
		if row.holds[i] == 0 {
			refused.Reason = c.Reason
			return result, refused, refused, nil
		}
	}
	if starts {
		return result, nil, nil, errNoLonger
	}
	return result, refused, refused, nil
}

// read reads a row, and the conditions that it fulfils.
func (t *Table[S]) read(ctx context.Context, key any, where []Condition) (found[S], error) {
	row := found[S]{result: Result[S]{Answer: core.Rejected}, holds: make([]int, len(where))}
	var s statement
	s.add("SELECT " + t.columns.State)
	into := []any{&row.result.State}
	for _, c := range []struct {
		column string
		into   any
	}{{t.columns.Epoch, &row.result.Epoch}, {t.columns.Version, &row.result.Version}, {t.columns.LastMove, &row.last.Move}, {t.columns.LastEpoch, &row.last.Epoch}} {
		if c.column != "" {
			s.add(", " + c.column)
			into = append(into, c.into)
		}
	}
	for i, c := range where {
		s.add(", COALESCE(CASE WHEN " + c.SQL + " THEN 1 ELSE 0 END, 0)").arg(c.Args...)
		into = append(into, &row.holds[i])
	}
	s.add(" FROM " + t.table + " WHERE " + t.columns.key() + " = ?").arg(key)
	err := tx.ConnOf(ctx, t.db).QueryRowContext(ctx, s.text(t.db.Dialect()), s.args...).Scan(into...)
	row.result.Current = row.result.State
	return row, err
}

// observe reports an answer, for an applied move when it is committed.
func (t *Table[S]) observe(ctx context.Context, move *line[S], r Request, answer core.Answer, current core.Status, early bool) {
	event := core.Transitioned{
		Machine: t.machine.Name(), Move: move.Name, ID: r.ID, To: move.toAs, Current: current,
		Answer: answer, Trigger: r.Trigger, Early: early, Race: r.Race,
	}
	if r.Key != nil {
		event.Key = keyText(r)
	}
	if event.Trigger == "" {
		event.Trigger = move.Name
	}
	if answer != core.Applied {
		t.observer.Observe(ctx, event)
		return
	}
	tx.AtEnd(ctx, t.db.Name(), func(committed bool) {
		if committed {
			t.observer.Observe(ctx, event)
		}
	})
}
