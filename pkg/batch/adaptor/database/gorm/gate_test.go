package gormdb

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/errorclass"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func readOne(ctx context.Context, c tx.Conn) error {
	var n int
	return c.QueryRowContext(ctx, "SELECT 1").Scan(&n)
}

func TestWorkThatHoldsAConnectionAlwaysGetsAnother(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		for _, size := range []int{3, 10} {
			p := openWith(t, Config{URL: url, MaxOpen: size})
			db, err := p.Database("")
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var group sync.WaitGroup
			errs := make([]error, 24)
			for i := range errs {
				group.Go(func() { errs[i] = threeAtOnce(ctx, db) })
			}
			group.Wait()
			require.NoError(t, errors.Join(errs...))
		}
	})
}

func threeAtOnce(ctx context.Context, db tx.Database) error {
	ctx = tx.WithHoldings(ctx, nil, nil)
	for range 10 {
		snapshot, err := db.Begin(ctx, tx.Attr{ReadOnly: true})
		if err != nil {
			return err
		}
		release := tx.Hold(ctx, db.Name())
		err = tx.NewManager(db).Do(ctx, tx.Attr{}, func(ctx context.Context) error {
			return errors.Join(readOne(ctx, snapshot.Conn()), readOne(ctx, tx.ConnOf(ctx, db)), readOne(ctx, db.Conn()))
		})
		release()
		if err := errors.Join(err, snapshot.Rollback()); err != nil {
			return err
		}
	}
	return nil
}

func TestAWaitForAConnectionIsNamedAndEnds(t *testing.T) {
	t.Parallel()
	p := openWith(t, Config{URL: testdb.Postgres(t), MaxOpen: 3})
	db, err := p.Database("")
	require.NoError(t, err)
	pool := p.databases[tx.Default].backend.(*postgres).pool
	pool.gate.first, pool.gate.nested = 20*time.Millisecond, 20*time.Millisecond
	stop, stopped := make(chan struct{}), errors.New("a stop was asked for")
	ctx := tx.WithHoldings(t.Context(), stop, stopped)
	held, err := db.Begin(ctx, tx.Attr{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, held.Rollback()) })

	_, err = db.Begin(ctx, tx.Attr{})
	require.ErrorContains(t, err, "a connection of database default: all that it may use of 3 (max_open) are in use: run less in parallel")
	require.True(t, errorclass.IsUnreachable(err), "it is worth another try")

	pool.gate.first = time.Hour
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	_, err = db.Begin(short, tx.Attr{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "of database default")

	close(stop)
	_, err = db.Begin(ctx, tx.Attr{})
	require.ErrorIs(t, err, stopped)

	for range 2 { // work that holds one has the reserve
		defer tx.Hold(ctx, db.Name())()
		another, err := db.Begin(ctx, tx.Attr{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, another.Rollback()) })
	}
	tx.Hold(ctx, db.Name())
	_, err = db.Begin(ctx, tx.Attr{})
	require.ErrorContains(t, err, "it would wait for itself")
}
