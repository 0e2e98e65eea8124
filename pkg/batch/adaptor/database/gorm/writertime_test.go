package gormdb

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Rule L9.
func TestTheTimeIsCountedInWhichThisProcessHoldsTheWriter(t *testing.T) {
	t.Parallel()
	url := testdb.SQLite(t)
	ours := birds(t, open(t, url))
	theirs, err := open(t, url).Database("")
	require.NoError(t, err)
	before := ours.WriterHeld()

	h, err := theirs.Begin(t.Context(), tx.Attr{})
	require.NoError(t, err)
	waiting, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := ours.Conn().ExecContext(waiting, "INSERT INTO bird VALUES (4, 'crow')")
		done <- err
	}()
	_, err = ours.Begin(waiting, tx.Attr{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, <-done, context.DeadlineExceeded)
	require.Less(t, ours.WriterHeld()-before, 100*time.Millisecond)
	require.NoError(t, h.Rollback())

	before = ours.WriterHeld()
	began := time.Now()
	h, err = ours.Begin(t.Context(), tx.Attr{})
	require.NoError(t, err)
	time.Sleep(200 * time.Millisecond)
	require.GreaterOrEqual(t, ours.WriterHeld()-before, 200*time.Millisecond, "while it lasts")
	require.NoError(t, h.Rollback())
	held := ours.WriterHeld() - before
	require.GreaterOrEqual(t, held, 200*time.Millisecond)
	require.LessOrEqual(t, held, time.Since(began))
	time.Sleep(50 * time.Millisecond)
	require.Equal(t, before+held, ours.WriterHeld(), "it is over")

	before = ours.WriterHeld()
	began = time.Now()
	exec(t, ours.Conn(), `CREATE TABLE many AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 300000) SELECT n FROM c`)
	took := time.Since(began)
	require.GreaterOrEqual(t, ours.WriterHeld()-before, took-100*time.Millisecond, "a statement outside of a transaction")
	require.LessOrEqual(t, ours.WriterHeld()-before, took)
}
