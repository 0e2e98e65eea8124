package gormdb

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestSessionsCarryTimeoutsKeepalivesAndUTC(t *testing.T) {
	t.Parallel()
	p := openWith(t, Config{URL: testdb.Postgres(t), IdleInTransaction: 7 * time.Second})
	db, err := p.Database("")
	require.NoError(t, err)
	for name, want := range map[string]string{
		"idle_in_transaction_session_timeout": "7s", "tcp_keepalives_idle": "10", "tcp_keepalives_interval": "5",
		"tcp_keepalives_count": "3", "TimeZone": "UTC", "application_name": "surfin",
	} {
		var got string
		require.NoError(t, db.Conn().QueryRowContext(t.Context(), "SELECT current_setting($1)", name).Scan(&got))
		require.Equal(t, want, got, name)
	}
}

func TestTimesMeanTheSameWhateverTheDefaultsOfTheServer(t *testing.T) {
	t.Parallel()
	base := testdb.Postgres(t)
	db, err := open(t, base).Database("")
	require.NoError(t, err)
	var name string
	require.NoError(t, db.Conn().QueryRowContext(t.Context(), "SELECT current_database()").Scan(&name))
	exec(t, db.Conn(), "ALTER DATABASE "+tx.Postgres.Quote(name)+" SET timezone = 'Asia/Tokyo'")
	exec(t, db.Conn(), "ALTER DATABASE "+tx.Postgres.Quote(name)+" SET datestyle = 'German, DMY'")
	separator := "?"
	if strings.Contains(base, "?") {
		separator = "&"
	}
	for _, url := range []string{base, base + separator + "TimeZone=Asia%2FTokyo&datestyle=SQL"} {
		db, err := open(t, url).Database("")
		require.NoError(t, err)
		var moment, day string
		require.NoError(t, db.Conn().QueryRowContext(t.Context(),
			"SELECT cast(timestamptz '2026-11-21 12:00:00+00' AS text), cast(date '2026-11-20' AS text)").Scan(&moment, &day))
		require.Equal(t, "2026-11-21 12:00:00+00", moment)
		require.Equal(t, "2026-11-20", day)
	}
}

func TestAValueHasOneTextWhateverTheDefaultsOfTheServer(t *testing.T) {
	t.Parallel()
	base := testdb.Postgres(t)
	db, err := open(t, base).Database("")
	require.NoError(t, err)
	var name string
	require.NoError(t, db.Conn().QueryRowContext(t.Context(), "SELECT current_database()").Scan(&name))
	for _, setting := range []string{"extra_float_digits = -10", "intervalstyle = 'sql_standard'", "bytea_output = 'escape'"} {
		exec(t, db.Conn(), "ALTER DATABASE "+tx.Postgres.Quote(name)+" SET "+setting)
	}
	separator := "?"
	if strings.Contains(base, "?") {
		separator = "&"
	}
	for _, url := range []string{base, base + separator + "extra_float_digits=0&INTERVALSTYLE=iso_8601"} {
		db, err := open(t, url).Database("")
		require.NoError(t, err)
		var got string
		require.NoError(t, db.Conn().QueryRowContext(t.Context(),
			`SELECT concat_ws(' ', array[0.30000000000000004::float8], point(0.1::float8 + 0.2::float8, 1), interval '1 mon -2 days', array['\x00ff'::bytea])`).Scan(&got))
		require.Equal(t, `{0.30000000000000004} (0.30000000000000004,1) 1 mon -2 days {"\\x00ff"}`, got)
	}
}

func TestAnOwnerThatIsFrozenInItsTransactionLosesItAtTheServer(t *testing.T) {
	t.Parallel()
	p := openWith(t, Config{URL: testdb.Postgres(t), IdleInTransaction: 50 * time.Millisecond})
	db := birds(t, p)
	frozen, err := db.Begin(t.Context(), tx.Attr{})
	require.NoError(t, err)
	frozen.(*handle).beat.Stop() // as in a stopped process; internal/acceptance stops one
	exec(t, frozen.Conn(), "UPDATE bird SET name = 'mine' WHERE id = 1")
	exec(t, db.Conn(), "UPDATE bird SET name = 'yours' WHERE id = 1") // waits for the row lock
	require.Error(t, frozen.Commit())
	var name string
	require.NoError(t, db.Conn().QueryRowContext(t.Context(), "SELECT name FROM bird WHERE id = 1").Scan(&name))
	require.Equal(t, "yours", name)
}

// Rule L7.
func TestATransactionIsKeptAliveWhileItsOwnerWorksWithoutSQL(t *testing.T) {
	t.Parallel()
	const limit = 600 * time.Millisecond
	p := openWith(t, Config{URL: testdb.Postgres(t), IdleInTransaction: limit})
	db := birds(t, p)
	h, err := db.Begin(t.Context(), tx.Attr{})
	require.NoError(t, err)
	exec(t, h.Conn(), "UPDATE bird SET name = 'eagle' WHERE id = 1")
	time.Sleep(3 * limit)
	exec(t, h.Conn(), "UPDATE bird SET name = 'heron' WHERE id = 2")
	require.NoError(t, h.Commit())

	h, err = db.Begin(t.Context(), tx.Attr{})
	require.NoError(t, err)
	_, err = h.Conn().ExecContext(t.Context(), "SELECT 1/0")
	require.Error(t, err)
	time.Sleep(3 * limit)
	require.Equal(t, "25P02", dberr.SQLState(func() error { _, err := h.Conn().ExecContext(t.Context(), "SELECT 1"); return err }()))
	require.NoError(t, h.Rollback())
	require.Equal(t, 3, count(t, db.Conn()))
}

func TestBeginStepsOverConnectionsThatTheServerHasClosed(t *testing.T) {
	t.Parallel()
	url := testdb.Postgres(t)
	db := birds(t, open(t, url))
	exec(t, db.Conn(), "SELECT 1")
	foreign, err := open(t, url).Database("")
	require.NoError(t, err)
	exec(t, foreign.Conn(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()")
	h, err := db.Begin(t.Context(), tx.Attr{})
	require.NoError(t, err)
	require.NoError(t, h.Commit())
}

func TestARollbackOnALostConnectionHasHappened(t *testing.T) {
	t.Parallel()
	url := testdb.Postgres(t)
	db := birds(t, open(t, url))
	foreign, err := open(t, url).Database("")
	require.NoError(t, err)
	h, err := db.Begin(t.Context(), tx.Attr{})
	require.NoError(t, err)
	var pid int
	require.NoError(t, h.Conn().QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&pid))
	exec(t, foreign.Conn(), "SELECT pg_terminate_backend($1, 5000)", pid)
	_, err = h.Conn().ExecContext(t.Context(), "DELETE FROM bird")
	require.True(t, dberr.IsConnectionLost(err), "%v", err)
	require.NoError(t, h.Rollback())
	require.Equal(t, 3, count(t, db.Conn()))
}

func TestACancelledStatementLeavesTheConnectionToItsSavepoint(t *testing.T) {
	t.Parallel()
	db := birds(t, open(t, testdb.Postgres(t)))
	manager := tx.NewManager(db)
	require.NoError(t, manager.Do(t.Context(), tx.Attr{}, func(ctx context.Context) error {
		exec(t, tx.ConnOf(ctx, db), "INSERT INTO bird VALUES (4, 'gull')")
		short := tx.Attr{Propagation: tx.Nested, Timeout: 50 * time.Millisecond}
		err := manager.Do(ctx, short, func(ctx context.Context) error {
			_, err := tx.ConnOf(ctx, db).ExecContext(ctx, "SELECT pg_sleep(60)")
			return err
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		exec(t, tx.ConnOf(ctx, db), "INSERT INTO bird VALUES (5, 'tern')")
		return nil
	}))
	require.Equal(t, 5, count(t, db.Conn()))
}

func TestTransactionsThatWouldWaitForThemselvesAreRefused(t *testing.T) {
	t.Parallel()
	db := birds(t, openWith(t, Config{URL: testdb.Postgres(t), MaxOpen: 3}))
	manager := tx.NewManager(db)
	again := tx.Attr{Propagation: tx.RequiresNew}
	require.NoError(t, manager.Do(t.Context(), tx.Attr{}, func(ctx context.Context) error {
		return manager.Do(ctx, again, func(ctx context.Context) error {
			return manager.Do(ctx, again, func(ctx context.Context) error {
				err := manager.Do(ctx, again, func(context.Context) error { return nil })
				require.ErrorContains(t, err, "max_open")
				return nil
			})
		})
	}))
}

func TestControlWorkGoesOnWhenTheDataPoolIsUsedUp(t *testing.T) {
	t.Parallel()
	p := openWith(t, Config{URL: testdb.Postgres(t), MaxOpen: 3})
	db := birds(t, p)
	ctx := tx.WithHoldings(t.Context(), nil, nil)
	for range 2 { // and the third is the transaction below
		h, err := db.Begin(ctx, tx.Attr{})
		require.NoError(t, err)
		tx.Hold(ctx, db.Name())
		defer func() { require.NoError(t, h.Rollback()) }()
	}
	control, err := p.Control("")
	require.NoError(t, err)
	err = tx.NewManager(db).Do(ctx, tx.Attr{}, func(ctx context.Context) error {
		require.Same(t, tx.ConnOf(ctx, db), tx.ConnOf(ctx, control), "work in the transaction joins it")
		require.Equal(t, 3, count(t, control.Conn()))
		return nil
	})
	require.NoError(t, err)
}

func TestRawGivesPgxConnection(t *testing.T) {
	t.Parallel()
	db := birds(t, open(t, testdb.Postgres(t)))
	require.NoError(t, tx.NewManager(db).Do(t.Context(), tx.Attr{}, func(ctx context.Context) error {
		return tx.ConnOf(ctx, db).Raw(ctx, func(driverConn any) error {
			c, ok := driverConn.(*stdlib.Conn)
			require.True(t, ok)
			_, err := c.Conn().Exec(ctx, "INSERT INTO bird VALUES (4, 'gull')")
			return err
		})
	}))
	require.Equal(t, 4, count(t, db.Conn()))
}

func TestACommitOfAnAbortedTransactionIsKnownToBeRolledBack(t *testing.T) {
	t.Parallel()
	db := birds(t, open(t, testdb.Postgres(t)))
	err := tx.NewManager(db).Do(t.Context(), tx.Attr{}, func(ctx context.Context) error {
		_, err := tx.ConnOf(ctx, db).ExecContext(ctx, "INSERT INTO bird VALUES (1, 'twice')")
		require.True(t, dberr.IsUniqueViolation(err))
		return nil
	})
	require.True(t, dberr.IsRolledBack(err), "%v", err)
	require.ErrorIs(t, err, tx.ErrRolledBack)
	var commit *tx.CommitError
	require.ErrorAs(t, err, &commit)
}
