package gormdb

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testkit/txtest"
	"github.com/surfin-batch/surfin/internal/txwork"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func stdlibPool(t *testing.T, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func pgxPool(t *testing.T, url string, with ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	require.NoError(t, err)
	config.MaxConns = 10
	for _, f := range with {
		f(config)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func sqlitePool(t *testing.T, options string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "app.db")+options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

const wal = "?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)"

func TestConformanceOfTheManagerOverPoolsOfTheApplication(t *testing.T) {
	t.Parallel()
	schema := inSchemas(t)
	for name, lend := range map[string]func(t *testing.T) Lent{
		"stdlib":      func(t *testing.T) Lent { return Lend(stdlibPool(t, schema(t))) },
		"pgxpool":     func(t *testing.T) Lent { return Lend(pgxPool(t, schema(t))) },
		"fromPgxpool": func(t *testing.T) Lent { return Lend(stdlib.OpenDBFromPool(pgxPool(t, schema(t)))) },
		"sqlite":      func(t *testing.T) Lent { return Lend(sqlitePool(t, wal)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			txtest.Run(t, func(t *testing.T) tx.Provider { return openWith(t, Config{Lent: lend(t)}) })
		})
	}
}

func TestAPoolThatWillNotDoIsRefusedWithWhatIsMissing(t *testing.T) {
	t.Parallel()
	small := stdlibPool(t, testdb.Postgres(t))
	small.SetMaxOpenConns(2)
	url := testdb.Postgres(t)
	var none *sql.DB
	for want, c := range map[string]Config{
		"database default: the pool of the application is nil":                                                                                         {Lent: Lend(none)},
		"database default: the pool of the application has at most 2 connections, but must have at least 3: a running step needs two":                  {Lent: Lend(small)},
		"database default: max_open is 12, but the pool of the application has at most 10 connections":                                                 {Lent: Lend(pgxPool(t, url)), MaxOpen: 12},
		"database default: it has a URL and a pool of the application: remove one of them":                                                             {Lent: Lend(pgxPool(t, url)), URL: url},
		"database default: the pool of the application is SQLite in memory, which is not supported":                                                    {Lent: Lend(memory(t))},
		"app.db is delete, but must be wal (rule R5): add ?_pragma=journal_mode(WAL) to the URL that the application opens":                            {Lent: Lend(sqlitePool(t, ""))},
		"database default: the pool of the application has the driver gormdb.wrappedDriver (allowed: pgx's stdlib and modernc.org/sqlite, not wrapped": {Lent: Lend(sql.OpenDB(wrappedConnector{}))},
	} {
		p, err := Open(t.Context(), map[string]Config{tx.Default: c})
		require.ErrorContains(t, err, want)
		require.Nil(t, p)
	}
}

func memory(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", ":memory:")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// Rules L7 and D5.
func TestABorrowedSessionGoesBackAsItWas(t *testing.T) {
	t.Parallel()
	pool := pgxPool(t, testdb.Postgres(t), func(c *pgxpool.Config) {
		c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "SET timezone = 'Asia/Tokyo'; SET datestyle = 'German, DMY'; SET statement_timeout = '77s'")
			return err
		}
	})
	p := openWith(t, Config{Lent: Lend(pool), IdleInTransaction: 7 * time.Second})
	db, err := p.Database("")
	require.NoError(t, err)
	settings := "SELECT concat_ws(' ', pg_backend_pid(), current_setting('timezone'), current_setting('datestyle'), " +
		"current_setting('idle_in_transaction_session_timeout'), current_setting('statement_timeout'))"
	var inside string
	require.NoError(t, db.Conn().QueryRowContext(t.Context(), settings).Scan(&inside))
	pid, rest, _ := strings.Cut(inside, " ")
	require.Equal(t, "UTC ISO, MDY 7s 77s", rest)
	control, err := p.Control("")
	require.NoError(t, err)
	var beside string
	require.NoError(t, control.Conn().QueryRowContext(t.Context(), settings).Scan(&beside))
	require.NotContains(t, beside, pid, "the control pool has connections of its own")

	require.NoError(t, p.Close())
	require.Zero(t, pool.Stat().AcquiredConns())
	var outside string
	require.NoError(t, pool.QueryRow(t.Context(), settings).Scan(&outside))
	require.Equal(t, pid+" Asia/Tokyo German, DMY 0 77s", outside, "the same session")
}

// Rule T8b.
func TestABorrowedSessionThatAStepHasChangedIsClosed(t *testing.T) {
	t.Parallel()
	for name, lend := range map[string]func(url string) (Lent, func(query string) string){
		"stdlib": func(url string) (Lent, func(string) string) {
			db := stdlibPool(t, url)
			db.SetMaxOpenConns(3)
			return Lend(db), func(query string) (x string) {
				require.NoError(t, db.QueryRowContext(t.Context(), query).Scan(&x))
				return x
			}
		},
		"pgxpool": func(url string) (Lent, func(string) string) {
			pool := pgxPool(t, url)
			return Lend(pool), func(query string) (x string) {
				require.NoError(t, pool.QueryRow(t.Context(), query).Scan(&x))
				return x
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lent, ask := lend(testdb.Postgres(t))
			p := openWith(t, Config{Lent: lent})
			db, err := p.Database("")
			require.NoError(t, err)
			step, aborter := txwork.WithAborter(t.Context())
			_, err = db.Conn().ExecContext(step, "SET work_mem = '7MB'; SELECT pg_advisory_lock(7)")
			require.NoError(t, err)
			pid, now := sessionOf(step, t, db)
			require.Equal(t, "7MB", now, "it is the step's own while it runs")
			aborter.End()
			again, now := sessionOf(t.Context(), t, db)
			require.NotEqual(t, pid, again)
			require.Equal(t, "4MB", now)
			require.Eventually(t, func() bool {
				return ask("SELECT count(*)::text FROM pg_locks JOIN pg_database d ON d.oid = database WHERE locktype = 'advisory' AND datname = current_database()") == "0"
			}, 5*time.Second, 5*time.Millisecond)
			require.NoError(t, p.Close())
			for range 5 {
				require.Equal(t, "4MB", ask("SELECT current_setting('work_mem')"))
			}
		})
	}
}

// Rule T8a.
func TestAForeignEndIsSeenOnABorrowedConnection(t *testing.T) {
	t.Parallel()
	for name, lent := range map[string]Lent{"postgres": Lend(pgxPool(t, testdb.Postgres(t))), "sqlite": Lend(sqlitePool(t, wal))} {
		p := openWith(t, Config{Lent: lent})
		db := birds(t, p)
		err := tx.NewManager(db).Do(t.Context(), tx.Attr{}, func(ctx context.Context) error {
			_, err := tx.ConnOf(ctx, db).ExecContext(ctx, "INSERT INTO bird VALUES (7, 'x'); COMMIT; BEGIN")
			return err
		})
		require.ErrorIs(t, err, tx.ErrForeignEnd, name)
	}
}

// Rule T7.
func TestAReconnectClosesTheConnectionsThatWereBorrowedBefore(t *testing.T) {
	t.Parallel()
	pool := pgxPool(t, testdb.Postgres(t))
	p := openWith(t, Config{Lent: Lend(pool)})
	db := birds(t, p)
	star := func() (columns []string) {
		rows, err := db.Conn().QueryContext(t.Context(), "SELECT * FROM bird WHERE id = $1", 1)
		require.NoError(t, err)
		columns, err = rows.Columns()
		require.NoError(t, err)
		require.NoError(t, rows.Close())
		return columns
	}
	require.Len(t, star(), 2)
	before, _ := sessionOf(t.Context(), t, db)
	_, err := pool.Exec(t.Context(), "ALTER TABLE bird ADD COLUMN wing integer")
	require.NoError(t, err)
	require.NoError(t, p.ForceReconnect(t.Context(), ""))
	require.Len(t, star(), 3)
	after, _ := sessionOf(t.Context(), t, db)
	require.NotEqual(t, before, after)
}

func TestACancelledStatementDoesNotCostTheBorrowedConnection(t *testing.T) {
	t.Parallel()
	p := openWith(t, Config{Lent: Lend(pgxPool(t, testdb.Postgres(t)))})
	db := birds(t, p)
	require.NoError(t, tx.NewManager(db).Do(t.Context(), tx.Attr{}, func(ctx context.Context) error {
		conn := tx.ConnOf(ctx, db)
		for _, run := range []func(ctx context.Context) error{
			func(ctx context.Context) error {
				_, err := conn.ExecContext(ctx, "SELECT pg_sleep(60)")
				return err
			},
			func(ctx context.Context) error {
				var void string
				return conn.QueryRowContext(ctx, "SELECT pg_sleep(60)::text").Scan(&void)
			},
		} {
			exec(t, conn, "SAVEPOINT s")
			short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			err := run(short)
			cancel()
			require.Error(t, err)
			exec(t, conn, "ROLLBACK TO SAVEPOINT s")
		}
		exec(t, conn, "INSERT INTO bird VALUES (9, 'rook')")
		return nil
	}))
	require.Equal(t, 4, count(t, db.Conn()))
}

func TestAnIdleApplicationHasAllItsConnections(t *testing.T) {
	t.Parallel()
	pool := pgxPool(t, testdb.Postgres(t))
	p := openWith(t, Config{Lent: Lend(pool)})
	birds(t, p)
	require.Positive(t, pool.Stat().AcquiredConns(), "kept for the next statement")
	require.Eventually(t, func() bool { return pool.Stat().AcquiredConns() == 0 }, 10*time.Second, 10*time.Millisecond)
}

func TestConnectionsThatDiedInThePoolOfTheApplicationAreSteppedOver(t *testing.T) {
	t.Parallel()
	url := testdb.Postgres(t)
	app := stdlibPool(t, url)
	app.SetMaxIdleConns(5)
	conns := make([]*sql.Conn, 5)
	for i := range conns {
		var err error
		conns[i], err = app.Conn(t.Context())
		require.NoError(t, err)
		require.NoError(t, conns[i].PingContext(t.Context()))
	}
	for _, c := range conns {
		require.NoError(t, c.Close())
	}
	killer, err := open(t, url).Database("")
	require.NoError(t, err)
	exec(t, killer.Conn(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()")
	birds(t, openWith(t, Config{Lent: Lend(app)}))
}
