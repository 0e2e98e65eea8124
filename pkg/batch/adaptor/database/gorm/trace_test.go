package gormdb

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/txwork"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestTextsThatLeaveTheSessionAsItIsAreKnown(t *testing.T) {
	t.Parallel()
	for query, keeps := range map[string]bool{
		"select count(*), coalesce(sum(a), 0) from b where c in (1, 2)":                    true,
		"insert into out(id, name) values (1, 'set'), (2, $1) on conflict (id) do nothing": true,
		`UPDATE "a" SET b = $1 WHERE c = $2 RETURNING (SELECT d FROM e)`:                   true,
		"with x(a) as (select 1) select * from x":                                          true,
		"copy t (a, b) from stdin":                                                         true,
		"create table t(id varchar(10), x my.type(3)); create index i on t(id)":            true,
		"set local search_path = a; insert into t values (1)":                              true,
		"savepoint a; rollback to savepoint a":                                             true,
		"set search_path = a":                                                              false,
		"set":                                                                              false,
		"select 1; set role x":                                                             false,
		"select set_config('a.b', 'c', false)":                                             false,
		"select my.function(1)":                                                            false,
		"insert into t select f(x) from y":                                                 false,
		"select pg_advisory_lock(1)":                                                       false,
		"select pg_advisory_xact_lock(1)":                                                  true,
		"create temp table t(id int)":                                                      false,
		"select 1 into temporary t":                                                        false,
		"prepare p as select 1":                                                            false,
		"listen x":                                                                         false,
		"do $$ begin end $$":                                                               false,
		"call p()":                                                                         false,
		"declare c cursor with hold for select 1":                                          false,
		`select E'\''; set role x`:                                                         false,
		"discard all":                                                                      false,
		"select f (1)":                                                                     true, // not seen, as the type says
	} {
		require.Equal(t, keeps, keepsPostgres(query), query)
	}
	for query, keeps := range map[string]bool{
		"insert into t values (1)": true, "replace into t values (1)": true, "pragma table_info(t)": true, "pragma foreign_keys": true,
		"create table t(id int); insert into t values (1)": true, protect: true,
		"pragma foreign_keys = off": false, "pragma query_only(1)": false, "attach 'x' as y": false, "create temp view v as select 1": false,
		"select 1; pragma case_sensitive_like = 1": false,
	} {
		require.Equal(t, keeps, keepsSQLite(query), query)
	}
}

func sessionOf(ctx context.Context, t *testing.T, db tx.Database) (pid int, workMem string) {
	t.Helper()
	require.NoError(t, db.Conn().QueryRowContext(ctx, "SELECT pg_backend_pid(), current_setting('work_mem')").Scan(&pid, &workMem))
	return pid, workMem
}

func TestASessionIsTheStepsOwnWhileItRuns(t *testing.T) {
	t.Parallel()
	db, err := open(t, testdb.Postgres(t)).Database("")
	require.NoError(t, err)
	one, endOfOne := txwork.WithAborter(t.Context())
	two, _ := txwork.WithAborter(t.Context())
	set := func() int {
		_, err := db.Conn().ExecContext(one, "SET work_mem = '7MB'")
		require.NoError(t, err)
		pid, now := sessionOf(one, t, db)
		require.Equal(t, "7MB", now)
		return pid
	}
	pid := set()
	again, now := sessionOf(two, t, db)
	require.Equal(t, pid, again, "it is renewed, and not replaced")
	require.Equal(t, "4MB", now)
	require.Equal(t, pid, set())
	endOfOne.End()
	again, now = sessionOf(t.Context(), t, db)
	require.Equal(t, pid, again)
	require.Equal(t, "4MB", now)
	_, err = db.Conn().ExecContext(one, "SET work_mem = '7MB'") // a leftover goroutine
	require.NoError(t, err)
	_, now = sessionOf(t.Context(), t, db)
	require.Equal(t, "4MB", now)
}

func TestAnAbortedStepLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	db, err := open(t, testdb.Postgres(t)).Database("")
	require.NoError(t, err)
	ctx, aborter := txwork.WithAborter(t.Context())
	done := make(chan error)
	set, aborted := make(chan struct{}), make(chan struct{})
	go func() {
		done <- tx.NewManager(db).Do(ctx, tx.Attr{}, func(ctx context.Context) error {
			_, err := tx.ConnOf(ctx, db).ExecContext(ctx, "SELECT pg_advisory_lock(7)")
			close(set)
			<-aborted
			return err
		})
	}()
	<-set
	require.NoError(t, aborter.Abort())
	aborter.End()
	close(aborted)
	require.ErrorIs(t, <-done, txwork.ErrAborted)
	var locks int
	require.NoError(t, db.Conn().QueryRowContext(t.Context(), "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()").Scan(&locks))
	require.Zero(t, locks)
}

func BenchmarkTransaction(b *testing.B) {
	for name, url := range map[string]string{"postgres": testdb.Postgres(b), "sqlite": testdb.SQLite(b)} {
		b.Run(name, func(b *testing.B) {
			p, err := Open(b.Context(), map[string]Config{tx.Default: {URL: url}})
			require.NoError(b, err)
			defer p.Close() //nolint:errcheck // a benchmark
			db, err := p.Database("")
			require.NoError(b, err)
			_, err = db.Conn().ExecContext(b.Context(), "CREATE TABLE IF NOT EXISTS bench (id bigint)")
			require.NoError(b, err)
			manager := tx.NewManager(db)
			for b.Loop() {
				require.NoError(b, manager.Do(b.Context(), tx.Attr{}, func(ctx context.Context) error {
					_, err := tx.ConnOf(ctx, db).ExecContext(ctx, "UPDATE bench SET id = 1")
					return err
				}))
			}
		})
	}
}

// Rules R8 and T8b.
func TestStepsThatChangeTheirSessionsWaitForEachOther(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func() *DBProvider{
		"postgres": func() *DBProvider { return openWith(t, Config{URL: testdb.Postgres(t), MaxOpen: 3}) },
		"lent":     func() *DBProvider { return openWith(t, Config{Lent: Lend(pgxPool(t, testdb.Postgres(t))), MaxOpen: 3}) },
		"stdlib": func() *DBProvider {
			db := stdlibPool(t, testdb.Postgres(t))
			db.SetMaxOpenConns(3)
			return openWith(t, Config{Lent: Lend(db)})
		},
		"sqlite": func() *DBProvider { return openWith(t, Config{URL: "sqlite:" + t.TempDir() + "/x.db"}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, err := open().Database("")
			require.NoError(t, err)
			change := "SELECT set_config('work_mem', '7MB', false)"
			if db.Dialect() == tx.SQLite {
				change = "PRAGMA case_sensitive_like = 1"
			}
			failed := make(chan error, 12)
			for range cap(failed) {
				go func() {
					var err error
					for range 20 {
						step, aborter := txwork.WithAborter(t.Context())
						err = errors.Join(err, run(step, db.Conn(), change))
						err = errors.Join(err, run(step, db.Conn(), "SELECT 1"))
						aborter.End()
					}
					failed <- err
				}()
			}
			for range cap(failed) {
				require.NoError(t, <-failed)
			}
		})
	}
}

func run(ctx context.Context, conn tx.Conn, query string) error {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	for rows.Next() {
	}
	return errors.Join(rows.Err(), rows.Close())
}

func TestAPreparedStatementOutlivesItsSession(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Config{
		"lent":   {Lent: Lend(pgxPool(t, testdb.Postgres(t)))},
		"sqlite": {URL: "sqlite:" + t.TempDir() + "/x.db"},
	} {
		db, err := openWith(t, c).Database("")
		require.NoError(t, err)
		change := "SELECT set_config('work_mem', '7MB', false)"
		if db.Dialect() == tx.SQLite {
			change = "PRAGMA case_sensitive_like = 1"
		}
		stmt, err := db.Conn().PrepareContext(t.Context(), "SELECT 7")
		require.NoError(t, err)
		for range 5 {
			step, aborter := txwork.WithAborter(t.Context())
			require.NoError(t, run(step, db.Conn(), change))
			aborter.End()
			var seven int
			require.NoError(t, stmt.QueryRowContext(t.Context()).Scan(&seven), name)
			require.Equal(t, 7, seven)
		}
		require.NoError(t, stmt.Close())
	}
}
