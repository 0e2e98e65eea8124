package guard_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(payerURL); url != "" {
		os.Exit(payer(url))
	}
	os.Exit(testdb.Main(m))
}

func each(t *testing.T, f func(t *testing.T, db tx.Database)) {
	t.Helper()
	testdb.All(t, func(t *testing.T, url string) {
		provider, err := gormdb.Open(t.Context(), map[string]gormdb.Config{tx.Default: {URL: url}})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, provider.Close()) })
		db, err := provider.Database(tx.Default)
		require.NoError(t, err)
		f(t, db)
	})
}

type state string

const columns = `(id bigint PRIMARY KEY, state text NOT NULL, state_before text NOT NULL DEFAULT '', version bigint NOT NULL DEFAULT 0,
	epoch bigint NOT NULL DEFAULT 1, last_move text NOT NULL DEFAULT '', last_epoch bigint NOT NULL DEFAULT 0, owner text NOT NULL DEFAULT '', n bigint NOT NULL DEFAULT 0)`

func newTable(t *testing.T, db tx.Database, observer core.Observer, moves ...core.Move[state]) *guard.Table[state] {
	t.Helper()
	m, err := core.NewMachine("thing", moves...)
	require.NoError(t, err)
	_, err = db.Conn().ExecContext(t.Context(), ddl(db, "CREATE TABLE things "+columns))
	require.NoError(t, err)
	return guard.NewTable(db, "things", m, observer)
}

// ddl: a key of MySQL has a length.
func ddl(db tx.Database, text string) string {
	if db.Dialect() == tx.MySQL {
		return strings.ReplaceAll(text, "text PRIMARY KEY", "varchar(100) PRIMARY KEY")
	}
	return text
}

func insert(t *testing.T, db tx.Database, id int64, s state) {
	t.Helper()
	_, err := db.Conn().ExecContext(t.Context(), fmt.Sprintf("INSERT INTO things (id, state) VALUES (%d, '%s')", id, s))
	require.NoError(t, err)
}

func machine() []core.Move[state] {
	return []core.Move[state]{
		{Name: "claim", From: []state{"WAITING"}, To: "RUNNING", Intent: core.IntentBegin},
		{Name: "end", From: []state{"RUNNING"}, To: "DONE", Intent: core.IntentEnd},
		{Name: "again", From: []state{"DONE", "RUNNING"}, To: "WAITING", Intent: core.IntentTake},
	}
}

func owned(by string) guard.Condition {
	return guard.Condition{SQL: "owner = ?", Args: []any{by}, Reason: "another has it", Owner: true}
}

func TestAMoveIsAppliedOnceAndEveryOtherIsTold(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		var heard []core.Transitioned
		table := newTable(t, db, core.ObserverFunc(func(_ context.Context, e core.Event) { heard = append(heard, e.(core.Transitioned)) }), machine()...)
		insert(t, db, 1, "WAITING")
		move := func(r guard.Request) (guard.Result[state], error) { r.ID = 1; return table.Move(t.Context(), r) }

		got, err := move(guard.Request{Move: "claim", Epoch: 1, Set: []guard.Assignment{guard.Set("owner", "a"), guard.SetSQL("n", "n + ?", 2)}})
		require.NoError(t, err)
		require.Equal(t, guard.Result[state]{Answer: core.Applied, Current: "WAITING", State: "RUNNING", Epoch: 1, Version: 1}, got)

		got, err = move(guard.Request{Move: "claim", Epoch: 1})
		require.NoError(t, err, "a duplicate is success to the caller")
		require.Equal(t, core.Duplicate, got.Answer)

		_, err = move(guard.Request{Move: "end", Epoch: 1, Where: []guard.Condition{owned("b")}})
		require.ErrorIs(t, err, core.ErrLostOwner)
		require.ErrorContains(t, err, "another has it")
		_, err = move(guard.Request{Move: "end", Epoch: 1, Where: []guard.Condition{owned("a"), {SQL: "n > ?", Args: []any{2}, Reason: "too few"}}})
		require.ErrorContains(t, err, "too few")
		require.NotErrorIs(t, err, core.ErrLostOwner)

		got, err = move(guard.Request{Move: "again", Epoch: 1})
		require.NoError(t, err)
		require.EqualValues(t, 2, got.Epoch)
		_, err = move(guard.Request{Move: "end", Epoch: 1, Where: []guard.Condition{owned("a")}})
		require.ErrorIs(t, err, core.ErrLostOwner, "its epoch is over")
		require.ErrorContains(t, err, "requested for epoch 1, but it is in epoch 2")
		got, err = move(guard.Request{Move: "again", Epoch: 1})
		require.NoError(t, err)
		require.Equal(t, core.Duplicate, got.Answer, "the reply to the move may have been lost")
		_, err = move(guard.Request{Move: "end", Epoch: 2})
		refused, ok := errors.AsType[*core.TransitionError](err)
		require.True(t, ok)
		require.Equal(t, core.Status("WAITING"), refused.Current)
		_, err = table.Move(t.Context(), guard.Request{ID: 7, Move: "end"})
		require.ErrorIs(t, err, core.ErrNotFound)
		_, err = move(guard.Request{Move: "fly"})
		require.ErrorContains(t, err, `machine thing has no move "fly"`)

		answers := map[core.Answer]int{}
		for _, e := range heard {
			answers[e.Answer]++
		}
		require.Equal(t, map[core.Answer]int{core.Applied: 2, core.Duplicate: 2, core.Rejected: 5}, answers)
	})
}

func TestOneOfManyWins(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		table := newTable(t, db, nil, machine()...)
		insert(t, db, 1, "WAITING")
		var wg sync.WaitGroup
		answers := make([]core.Answer, 8)
		for i := range answers {
			wg.Go(func() {
				got, err := table.Move(t.Context(), guard.Request{ID: 1, Move: "claim", Epoch: 1})
				if err == nil {
					answers[i] = got.Answer
				}
			})
		}
		wg.Wait()
		count := map[core.Answer]int{}
		for _, a := range answers {
			count[a]++
		}
		require.Equal(t, map[core.Answer]int{core.Applied: 1, core.Duplicate: 7}, count)
	})
}

func TestEventsThatComeTwiceAndOutOfOrder(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		table := newTable(t, db, nil,
			core.Move[state]{Name: "pay", From: []state{"NEW"}, To: "PAID", Intent: core.IntentBegin},
			core.Move[state]{Name: "hand_over", From: []state{"PAID"}, To: "DONE", Intent: core.IntentEnd},
			core.Move[state]{Name: "cancel", From: []state{"NEW"}, To: "CANCELLED", Intent: core.IntentEnd})
		for i, c := range []struct {
			found, move string
			want        core.Answer
		}{
			{"NEW", "pay", core.Applied},
			{"NEW", "hand_over", core.Rejected},
			{"PAID", "pay", core.Duplicate},
			{"PAID", "cancel", core.Rejected},
			{"DONE", "pay", core.Duplicate},
			{"DONE", "cancel", core.Duplicate},
			{"CANCELLED", "pay", core.Duplicate},
			{"CANCELLED", "hand_over", core.Duplicate},
		} {
			insert(t, db, int64(i), state(c.found))
			got, err := table.Move(t.Context(), guard.Request{ID: int64(i), Move: c.move})
			require.Equal(t, c.want, got.Answer, c)
			require.Equal(t, c.want == core.Rejected, err != nil, c)
		}
	})
}

// Rule R7.
func TestAnAppliedMoveIsToldWhenItIsCommitted(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		heard := 0
		table := newTable(t, db, core.ObserverFunc(func(context.Context, core.Event) { heard++ }), machine()...)
		insert(t, db, 1, "WAITING")
		undone := errors.New("undone")
		err := tx.NewManager(db).Do(t.Context(), tx.Attr{}, func(ctx context.Context) error {
			_, err := table.Move(ctx, guard.Request{ID: 1, Move: "claim"})
			require.NoError(t, err)
			require.Zero(t, heard)
			return undone
		})
		require.ErrorIs(t, err, undone)
		require.Zero(t, heard)
		got, err := table.Move(t.Context(), guard.Request{ID: 1, Move: "claim"})
		require.NoError(t, err)
		require.Equal(t, core.Applied, got.Answer)
		require.Equal(t, 1, heard)
	})
}

func TestAMachineThatMovesInACircleIgnoresNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		table := newTable(t, db, nil,
			core.Move[state]{Name: "on", From: []state{"OFF"}, To: "ON", Intent: core.IntentBegin},
			core.Move[state]{Name: "dim", From: []state{"ON"}, To: "DIM", Intent: core.IntentBegin},
			core.Move[state]{Name: "off", From: []state{"ON", "DIM"}, To: "OFF", Intent: core.IntentBegin})
		insert(t, db, 1, "DIM")
		_, err := table.Move(t.Context(), guard.Request{ID: 1, Move: "on"})
		require.Error(t, err)
		for _, want := range []core.Answer{core.Applied, core.Duplicate} {
			got, err := table.Move(t.Context(), guard.Request{ID: 1, Move: "off"})
			require.NoError(t, err)
			require.Equal(t, want, got.Answer)
		}
	})
}
