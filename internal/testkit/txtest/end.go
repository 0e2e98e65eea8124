package txtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

var ends = []test{
	{"a rollback-only mark makes the commit a typed error", func(b *bed) {
		err := b.do(b.Context(), tx.Required, func(ctx context.Context) error {
			current, found := tx.From(ctx, tx.Default)
			require.True(b, found)
			require.Equal(b, tx.Default, current.Database())
			current.SetRollbackOnly(errWork)
			current.SetRollbackOnly(errors.New("a later cause"))
			return b.insert(ctx, 1)
		})
		doomed, ok := errors.AsType[*tx.RollbackOnlyError](err)
		require.True(b, ok, "%v", err)
		require.Equal(b, errWork, doomed.Cause)
		b.committed()
	}},
	{"what is to be called at the end is called once the outermost transaction has ended", func(b *bed) {
		var calls []string
		note := func(ctx context.Context, name string) {
			tx.AtEnd(ctx, tx.Default, func(committed bool) { calls = append(calls, fmt.Sprint(name, " ", committed)) })
		}
		note(b.Context(), "outside")
		require.Equal(b, []string{"outside true"}, calls)
		require.NoError(b, b.do(b.Context(), tx.Required, func(ctx context.Context) error {
			note(ctx, "owner")
			require.NoError(b, b.do(ctx, tx.Required, func(ctx context.Context) error { note(ctx, "joined"); return nil }))
			require.NoError(b, b.do(ctx, tx.Nested, func(ctx context.Context) error { note(ctx, "nested"); return nil }))
			require.Len(b, calls, 1)
			require.ErrorIs(b, b.do(ctx, tx.Nested, func(ctx context.Context) error { note(ctx, "undone"); return errWork }), errWork)
			require.Equal(b, "undone false", calls[len(calls)-1])
			require.NoError(b, b.do(ctx, tx.NotSupported, func(ctx context.Context) error { note(ctx, "suspended"); return nil }))
			return nil
		}))
		require.Equal(b, []string{"outside true", "undone false", "suspended true", "owner true", "joined true", "nested true"}, calls)

		calls = nil
		require.ErrorIs(b, b.do(b.Context(), tx.Required, func(ctx context.Context) error { note(ctx, "owner"); return errWork }), errWork)
		require.Panics(b, func() {
			_ = b.do(b.Context(), tx.Required, func(ctx context.Context) error { note(ctx, "panic"); panic("boom") }) //nolint:errcheck // it panics
		})
		require.Equal(b, []string{"owner false", "panic false"}, calls)
	}},
	{"a panic rolls back and goes on unchanged", func(b *bed) {
		require.PanicsWithValue(b, "boom", func() {
			_ = b.do(b.Context(), tx.Required, func(ctx context.Context) error { //nolint:errcheck // it panics
				require.NoError(b, b.insert(ctx, 1))
				panic("boom")
			})
		})
		b.committed()
		require.NoError(b, b.do(b.Context(), tx.Required, b.inserting(2))) // the connection is free
		b.committed(2)
	}},
	{"a panic of joined work dooms the owner that recovers it", func(b *bed) {
		err := b.do(b.Context(), tx.Required, func(ctx context.Context) error {
			require.Panics(b, func() {
				_ = b.do(ctx, tx.Mandatory, func(context.Context) error { panic("boom") }) //nolint:errcheck // it panics
			})
			return b.insert(ctx, 1)
		})
		_, doomed := errors.AsType[*tx.RollbackOnlyError](err)
		require.True(b, doomed, "%v", err)
		b.committed()
	}},
	{"a panic in NESTED rolls back to the savepoint", func(b *bed) {
		require.NoError(b, b.do(b.Context(), tx.Required, func(ctx context.Context) error {
			require.Panics(b, func() {
				_ = b.do(ctx, tx.Nested, func(ctx context.Context) error { //nolint:errcheck // it panics
					require.NoError(b, b.insert(ctx, 1))
					panic("boom")
				})
			})
			return b.insert(ctx, 2)
		}))
		b.committed(2)
	}},
	{"a goroutine that exits in its work rolls back", func(b *bed) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = b.do(b.Context(), tx.Required, func(ctx context.Context) error { //nolint:errcheck // it exits
				if err := b.insert(ctx, 1); err != nil {
					b.Error(err)
				}
				runtime.Goexit()
				return nil
			})
		}()
		<-done
		b.committed()
		require.NoError(b, b.do(b.Context(), tx.Required, b.inserting(2)))
	}},
	{"a timeout that the work does not notice does not commit", func(b *bed) {
		err := b.manager.Do(b.Context(), tx.Attr{Timeout: 20 * time.Millisecond}, func(ctx context.Context) error {
			if err := b.insert(ctx, 1); err != nil {
				return err
			}
			<-ctx.Done()
			return nil
		})
		require.ErrorIs(b, err, context.DeadlineExceeded)
		b.committed()
	}},
	{"a timeout frees the locks of work that hangs", timeoutFreesLocks},
	{"a timeout of NESTED rolls back to the savepoint", func(b *bed) {
		require.NoError(b, b.do(b.Context(), tx.Required, func(ctx context.Context) error {
			short := tx.Attr{Propagation: tx.Nested, Timeout: 20 * time.Millisecond}
			err := b.manager.Do(ctx, short, func(ctx context.Context) error {
				if err := b.insert(ctx, 1); err != nil {
					return err
				}
				<-ctx.Done()
				return nil
			})
			require.ErrorIs(b, err, context.DeadlineExceeded)
			return b.insert(ctx, 2)
		}))
		b.committed(2)
	}},
	{"a timeout of joined work dooms the owner", func(b *bed) {
		err := b.do(b.Context(), tx.Required, func(ctx context.Context) error {
			short := tx.Attr{Propagation: tx.Required, Timeout: time.Millisecond}
			err := b.manager.Do(ctx, short, func(ctx context.Context) error {
				<-ctx.Done()
				return nil
			})
			require.ErrorIs(b, err, context.DeadlineExceeded)
			return b.insert(ctx, 1)
		})
		require.ErrorIs(b, err, context.DeadlineExceeded)
		b.committed()
	}},
	{"a context that ends after the last statement does not commit", func(b *bed) {
		ctx, cancel := context.WithCancel(b.Context())
		err := b.do(ctx, tx.Required, func(ctx context.Context) error {
			defer cancel()
			return b.insert(ctx, 1)
		})
		require.ErrorIs(b, err, context.Canceled)
		b.committed()
	}},
	{"the transaction does not end with the context that it began with", func(b *bed) {
		ctx, cancel := context.WithCancel(b.Context())
		h, err := b.db.Begin(ctx, tx.Attr{})
		require.NoError(b, err)
		cancel()
		_, err = h.Conn().ExecContext(b.Context(), "INSERT INTO txtest (id) VALUES (1)")
		require.NoError(b, err)
		require.NoError(b, h.Commit())
		b.committed(1)
	}},
	{"a context that has ended begins nothing", func(b *bed) {
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		require.ErrorIs(b, b.do(ctx, tx.Required, b.never), context.Canceled)
	}},
	{"the transactions of two databases on one context are two", func(b *bed) {
		require.NoError(b, b.do(b.Context(), tx.Required, func(ctx context.Context) error {
			_, found := tx.From(ctx, "another")
			require.False(b, found)
			require.False(b, tx.WriterHeld(ctx, "another"))
			require.True(b, tx.WriterHeld(ctx, tx.Default))
			return nil
		}))
	}},
	{"a handle ends once", func(b *bed) {
		h, err := b.db.Begin(b.Context(), tx.Attr{})
		require.NoError(b, err)
		require.NoError(b, h.Rollback())
		require.ErrorIs(b, h.Rollback(), sql.ErrTxDone)
		require.ErrorIs(b, h.Commit(), sql.ErrTxDone)
	}},
}

func timeoutFreesLocks(b *bed) {
	// On a slow machine the time is over before the first insert: then with more.
	for timeout, locked := 50*time.Millisecond, false; !locked; timeout *= 2 {
		require.Less(b, timeout, time.Minute)
		err := b.manager.Do(b.Context(), tx.Attr{Timeout: timeout}, func(ctx context.Context) error {
			if err := b.insert(ctx, 1); err != nil {
				return err
			}
			locked = true
			// The work ignores its context; its lock is free, otherwise the insert would wait.
			waiting, cancel := context.WithTimeout(b.Context(), 30*time.Second)
			defer cancel()
			if err := b.do(waiting, tx.Required, b.inserting(1)); err != nil {
				return errors.Join(errors.New("the lock was held"), err)
			}
			_, err := tx.ConnOf(ctx, b.db).ExecContext(b.Context(), "INSERT INTO txtest (id) VALUES (2)")
			require.ErrorIs(b, err, sql.ErrTxDone)
			require.ErrorIs(b, err, context.DeadlineExceeded)
			return nil
		})
		require.ErrorIs(b, err, context.DeadlineExceeded)
	}
	b.committed(1)
}
