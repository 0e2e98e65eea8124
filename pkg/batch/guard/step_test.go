package guard_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func count(t *testing.T, db tx.Database, query string) (n int) {
	t.Helper()
	require.NoError(t, db.Conn().QueryRowContext(t.Context(), query).Scan(&n))
	return n
}

func withNotes(id int64, owner *string, version *int64, note *string) guard.Request {
	return guard.Request{ID: id, Move: "claim", Epoch: 1, Set: []guard.Assignment{guard.Set("owner", "me")}, With: []guard.Step{
		{SQL: "INSERT INTO notes (id, note) SELECT id, ? FROM moved RETURNING note", Args: []any{"taken"}, Into: []any{note}},
		{SQL: "SELECT owner, version FROM moved WHERE owner = ?", Args: []any{"me"}, Into: []any{owner, version}},
	}}
}

func TestStepsOfAMoveAreDoneWithIt(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		table := newTable(t, db, nil, machine()...)
		_, err := db.Conn().ExecContext(t.Context(), "CREATE TABLE notes (id bigint PRIMARY KEY, note text)")
		require.NoError(t, err)
		insert(t, db, 1, "WAITING")
		var owner, note string
		var version int64
		r := withNotes(1, &owner, &version, &note)
		moved, err := table.Move(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, guard.Result[state]{Answer: core.Applied, Current: "WAITING", State: "RUNNING", Epoch: 1, Version: 1}, moved)
		require.Equal(t, []any{"me", "taken", int64(1)}, []any{owner, note, version})

		moved, err = table.Move(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, core.Duplicate, moved.Answer)
		require.Equal(t, 1, count(t, db, "SELECT count(*) FROM notes"), "the steps of a duplicate are not done")
	})
}

func TestAMoveIsNotMadeWhoseStepFailsOrFindsNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		var heard []core.Transitioned
		table := newTable(t, db, core.ObserverFunc(func(_ context.Context, e core.Event) { heard = append(heard, e.(core.Transitioned)) }), machine()...)
		_, err := db.Conn().ExecContext(t.Context(), "CREATE TABLE notes (id bigint PRIMARY KEY, note text)")
		require.NoError(t, err)
		insert(t, db, 1, "WAITING")
		var n int
		for _, sql := range []string{"UPDATE notes SET note = 'x' WHERE id = 7 RETURNING 1", "SELECT 1 FROM moved WHERE 1 = 0", "SELECT 1 FROM things, moved UNION ALL SELECT 2"} {
			_, err = table.Move(t.Context(), guard.Request{ID: 1, Move: "claim", With: []guard.Step{
				{SQL: "INSERT INTO notes (id) SELECT id FROM moved RETURNING 1", Into: []any{&n}}, {SQL: sql, Into: []any{&n}},
			}})
			require.ErrorContains(t, err, "a step of the move did not return one row", sql)
		}
		require.Zero(t, count(t, db, "SELECT count(*) FROM notes"))
		require.Equal(t, 1, count(t, db, "SELECT count(*) FROM things WHERE state = 'WAITING' AND version = 0"))
		require.Empty(t, heard)
	})
}

func TestATryThatMovesNothingIsNotHeardOf(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		var heard []core.Transitioned
		table := newTable(t, db, core.ObserverFunc(func(_ context.Context, e core.Event) { heard = append(heard, e.(core.Transitioned)) }), machine()...)
		insert(t, db, 1, "WAITING")
		_, made, err := table.Try(t.Context(), guard.Request{ID: 1, Move: "end"})
		require.NoError(t, err)
		require.False(t, made)
		require.Empty(t, heard)
		moved, made, err := table.Try(t.Context(), guard.Request{ID: 1, Move: "claim"})
		require.NoError(t, err)
		require.True(t, made)
		require.Equal(t, state("RUNNING"), moved.State)
		require.Len(t, heard, 1)
		_, _, err = table.Try(t.Context(), guard.Request{ID: 1, Move: "fly"})
		require.ErrorContains(t, err, `no move "fly"`)
	})
}
