package txtest

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

var refusals = []test{
	{"a read-only transaction refuses to write, and reads", func(b *bed) {
		require.NoError(b, b.insert(b.Context(), 1))
		err := b.manager.Do(b.Context(), tx.Attr{ReadOnly: true}, func(ctx context.Context) error {
			current, _ := tx.From(ctx, "")
			require.True(b, current.ReadOnly())
			require.Equal(b, []int{1}, b.rows(current.Conn()))
			return b.insert(ctx, 2)
		})
		require.Error(b, err)
		b.committed(1)
	}},
	{"after a read-only transaction the connections write again", func(b *bed) {
		for id := range 8 {
			require.NoError(b, b.manager.Do(b.Context(), tx.Attr{ReadOnly: true}, func(context.Context) error { return nil }))
			require.NoError(b, b.insert(b.Context(), id))
		}
		b.committed(0, 1, 2, 3, 4, 5, 6, 7)
	}},
	{"work that may write cannot join a read-only transaction", func(b *bed) {
		require.NoError(b, b.manager.Do(b.Context(), tx.Attr{ReadOnly: true}, func(ctx context.Context) error {
			for _, p := range []tx.Propagation{tx.Required, tx.Mandatory, tx.Nested} {
				require.ErrorContains(b, b.do(ctx, p, b.never), "read-only", p)
			}
			return b.manager.Do(ctx, tx.Attr{ReadOnly: true}, func(context.Context) error { return nil })
		}))
	}},
	{"an isolation level that the database lacks is refused at load and at begin", func(b *bed) {
		lacking := tx.Attr{Isolation: sql.LevelLinearizable}
		require.ErrorContains(b, b.db.Check(lacking), "Linearizable")
		require.Error(b, b.manager.Do(b.Context(), lacking, b.never))
		_, err := b.db.Begin(b.Context(), lacking)
		require.Error(b, err)
	}},
	{"a serializable transaction is had everywhere", func(b *bed) {
		serializable := tx.Attr{Isolation: sql.LevelSerializable}
		require.NoError(b, b.db.Check(serializable))
		require.NoError(b, b.manager.Do(b.Context(), serializable, b.inserting(1)))
		b.committed(1)
	}},
	{"an unknown propagation is refused with the known ones", func(b *bed) {
		require.ErrorContains(b, b.do(b.Context(), "SOMETIMES", b.never), "REQUIRES_NEW")
	}},
	{"the connection cannot end its transaction", cannotEnd},
	{"a script cannot end its transaction unnoticed", func(b *bed) {
		var said error
		err := b.do(b.Context(), tx.Required, func(ctx context.Context) error {
			_, said = tx.ConnOf(ctx, b.db).ExecContext(ctx, "INSERT INTO txtest (id) VALUES (1); COMMIT; INSERT INTO txtest (id) VALUES (2)")
			return nil
		})
		if b.db.Dialect() == tx.MySQL { // takes no scripts
			require.Error(b, said)
			b.committed()
			return
		}
		require.Error(b, err)
	}},
	{"after the end the connection fails, and the context is refused", afterEnd},
	{"Raw works on the pool and in a transaction, and hides driver.ErrBadConn", func(b *bed) {
		work := func(ctx context.Context) error {
			conn := tx.ConnOf(ctx, b.db)
			require.NoError(b, conn.Raw(ctx, func(driverConn any) error {
				require.NotNil(b, driverConn)
				return nil
			}))
			err := conn.Raw(ctx, func(any) error { return driver.ErrBadConn })
			require.Error(b, err)
			require.NotErrorIs(b, err, driver.ErrBadConn)
			require.ErrorIs(b, conn.Raw(ctx, func(any) error { return errWork }), errWork)
			require.PanicsWithValue(b, "boom", func() {
				_ = conn.Raw(ctx, func(any) error { panic("boom") }) //nolint:errcheck // it panics
			})
			return nil
		}
		require.NoError(b, work(b.Context()))
		require.NoError(b, b.do(b.Context(), tx.Required, func(ctx context.Context) error {
			require.NoError(b, work(ctx))
			return b.insert(ctx, 1)
		}))
		b.committed(1)
	}},
	{"a statement that fails fails its transaction where the work ignores it, or is undone", func(b *bed) {
		err := b.do(b.Context(), tx.Required, func(ctx context.Context) error {
			require.NoError(b, b.insert(ctx, 1))
			require.Error(b, b.insert(ctx, 1))
			return nil
		})
		if b.db.Dialect() != tx.Postgres { // a statement fails alone
			require.NoError(b, err)
			b.committed(1)
			return
		}
		require.Error(b, err)
		b.committed()
	}},
}

func cannotEnd(b *bed) {
	require.NoError(b, b.do(b.Context(), tx.Required, func(ctx context.Context) error {
		conn := tx.ConnOf(ctx, b.db)
		require.NoError(b, b.insert(ctx, 1))
		for _, statement := range []string{
			"COMMIT", "commit;", " -- done\n /* really */ COMMIT", "END", "ROLLBACK", "rollback transaction", "BEGIN", "BEGIN IMMEDIATE",
		} {
			_, err := conn.ExecContext(ctx, statement)
			require.ErrorIs(b, err, tx.ErrNotOwner, statement)
			_, err = conn.QueryContext(ctx, statement) //nolint:sqlclosecheck,rowserrcheck // it fails
			require.ErrorIs(b, err, tx.ErrNotOwner, statement)
			require.ErrorIs(b, conn.QueryRowContext(ctx, statement).Err(), tx.ErrNotOwner, statement)
			_, err = conn.PrepareContext(ctx, statement) //nolint:sqlclosecheck // it fails
			require.ErrorIs(b, err, tx.ErrNotOwner, statement)
		}
		if c, ok := conn.(interface {
			Commit() error
			Rollback() error
		}); ok {
			require.ErrorIs(b, c.Commit(), tx.ErrNotOwner)
			require.ErrorIs(b, c.Rollback(), tx.ErrNotOwner)
		}
		return b.insert(ctx, 2)
	}))
	b.committed(1, 2)
}

func afterEnd(b *bed) {
	var kept context.Context
	var stmt *sql.Stmt
	require.NoError(b, b.do(b.Context(), tx.Required, func(ctx context.Context) (err error) {
		kept = context.WithoutCancel(ctx)
		stmt, err = tx.ConnOf(ctx, b.db).PrepareContext(ctx, "INSERT INTO txtest (id) VALUES (9)")
		return err
	}))
	conn := tx.ConnOf(kept, b.db)
	_, err := conn.ExecContext(kept, "INSERT INTO txtest (id) VALUES (1)")
	require.ErrorIs(b, err, sql.ErrTxDone)
	_, err = conn.QueryContext(kept, "SELECT 1") //nolint:sqlclosecheck,rowserrcheck // it fails
	require.ErrorIs(b, err, sql.ErrTxDone)
	require.ErrorIs(b, conn.QueryRowContext(kept, "SELECT 1").Err(), sql.ErrTxDone)
	_, err = conn.PrepareContext(kept, "SELECT 1") //nolint:sqlclosecheck // it fails
	require.ErrorIs(b, err, sql.ErrTxDone)
	require.ErrorIs(b, conn.Raw(kept, func(any) error { return nil }), sql.ErrTxDone)
	_, err = stmt.ExecContext(kept)
	require.Error(b, err)
	for _, p := range tx.Propagations() {
		require.ErrorIs(b, b.do(kept, p, b.never), sql.ErrTxDone, p)
	}
	require.False(b, tx.WriterHeld(kept, ""))
	require.Zero(b, tx.Held(kept, ""))
	b.committed()
}
