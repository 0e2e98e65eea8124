package gormdb

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/migrator"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func each(t *testing.T, f func(t *testing.T, p *DBProvider, db tx.Database)) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		p := open(t, url)
		f(t, p, birds(t, p))
	})
}

func birds(t *testing.T, p *DBProvider) tx.Database {
	t.Helper()
	db, err := p.Database("")
	require.NoError(t, err)
	exec(t, db.Conn(), "CREATE TABLE bird (id integer PRIMARY KEY, name text)")
	exec(t, db.Conn(), "INSERT INTO bird VALUES (1, 'owl'), (2, 'swift'), (3, 'kite')")
	return db
}

func exec(t *testing.T, conn tx.Conn, query string, args ...any) {
	t.Helper()
	_, err := conn.ExecContext(t.Context(), query, args...)
	require.NoError(t, err)
}

func count(t *testing.T, conn tx.Conn) (n int) {
	t.Helper()
	require.NoError(t, conn.QueryRowContext(t.Context(), "SELECT count(*) FROM bird").Scan(&n))
	return n
}

func TestForceReconnectLetsTransactionsInFlightEndUndisturbed(t *testing.T) {
	each(t, func(t *testing.T, p *DBProvider, db tx.Database) {
		err := tx.NewManager(db).Do(t.Context(), tx.Attr{}, func(ctx context.Context) error {
			conn := tx.ConnOf(ctx, db)
			session, err := Session(ctx, db)
			require.NoError(t, err)
			stmt, err := conn.PrepareContext(ctx, "INSERT INTO bird (id, name) VALUES ("+db.Dialect().Placeholder(1)+", 'wren')")
			require.NoError(t, err)
			exec(t, conn, "INSERT INTO bird VALUES (10, 'crow')")

			require.NoError(t, p.ForceReconnect(ctx, ""))

			exec(t, conn, "INSERT INTO bird VALUES (11, 'rook')")
			require.NoError(t, session.Exec("INSERT INTO bird VALUES (?, 'jay')", 12).Error)
			_, err = stmt.ExecContext(ctx, 13)
			require.NoError(t, err)
			require.NoError(t, tx.NewManager(db).Do(ctx, tx.Attr{Propagation: tx.Nested}, func(ctx context.Context) error {
				_, err := tx.ConnOf(ctx, db).ExecContext(ctx, "DELETE FROM bird WHERE id = 1")
				return err
			}))
			require.Equal(t, 3, count(t, db.Conn()), "new work does not see it yet")
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, 6, count(t, db.Conn()))
	})
}

func TestForceReconnectLetsOpenRowsBeReadToTheirEnd(t *testing.T) {
	each(t, func(t *testing.T, p *DBProvider, db tx.Database) {
		rows, err := db.Conn().QueryContext(t.Context(), "SELECT id FROM bird ORDER BY id")
		require.NoError(t, err)
		defer func() { require.NoError(t, rows.Close()) }()
		var ids []int
		for rows.Next() {
			var id int
			require.NoError(t, rows.Scan(&id))
			ids = append(ids, id)
			require.NoError(t, p.ForceReconnect(t.Context(), tx.Default))
		}
		require.NoError(t, rows.Err())
		require.Equal(t, []int{1, 2, 3}, ids)
	})
}

func TestForceReconnectGivesNewWorkNewConnections(t *testing.T) {
	t.Parallel()
	p := open(t, testdb.Postgres(t))
	db, err := p.Database("")
	require.NoError(t, err)
	control, err := p.Control("")
	require.NoError(t, err)
	backend := func(db tx.Database) (pid int) {
		require.NoError(t, db.Conn().QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&pid))
		return pid
	}
	before, controlBefore := backend(db), backend(control)
	require.Equal(t, before, backend(db))
	require.NoError(t, p.ForceReconnect(t.Context(), ""))
	require.NotEqual(t, before, backend(db))
	require.NotEqual(t, controlBefore, backend(control))
}

func TestForceReconnectMakesPreparedStatementsFresh(t *testing.T) {
	t.Parallel()
	p := openWith(t, Config{URL: testdb.Postgres(t), MaxOpen: 3})
	db := birds(t, p)
	star := func() (columns []string, err error) {
		rows, err := db.Conn().QueryContext(t.Context(), "SELECT * FROM bird WHERE id = $1", 1)
		if err != nil {
			return nil, err
		}
		columns, err = rows.Columns()
		require.NoError(t, err)
		for rows.Next() {
		}
		require.NoError(t, rows.Close())
		return columns, rows.Err()
	}
	other := open(t, p.databases[tx.Default].backend.(*postgres).server.config.ConnString())
	change := func(statement string) {
		odb, err := other.Database("")
		require.NoError(t, err)
		exec(t, odb.Conn(), statement)
	}
	_, err := star()
	require.NoError(t, err)

	change("ALTER TABLE bird ADD COLUMN wing integer")
	_, err = star() // the statement cached on the one connection is stale
	require.Equal(t, "0A000", dberr.SQLState(err), "a stale plan: %v", err)

	_, err = star()
	require.NoError(t, err)
	change("ALTER TABLE bird ADD COLUMN beak integer")
	require.NoError(t, p.ForceReconnect(t.Context(), ""))
	columns, err := star()
	require.NoError(t, err)
	require.Equal(t, []string{"id", "name", "wing", "beak"}, columns)
}

func TestForceReconnectNeverMeetsWorkBetweenPoolAndConnection(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		p := openWith(t, Config{URL: url, MaxOpen: 3})
		db := birds(t, p)
		manager := tx.NewManager(db)
		var all sync.WaitGroup
		var done atomic.Bool
		var worked atomic.Int64
		work := func(i int) error {
			if i%2 == 0 {
				var n int
				return db.Conn().QueryRowContext(t.Context(), "SELECT count(*) FROM bird").Scan(&n)
			}
			return manager.Do(t.Context(), tx.Attr{}, func(ctx context.Context) error {
				_, err := tx.ConnOf(ctx, db).ExecContext(ctx, "UPDATE bird SET name = 'x' WHERE id = 1")
				return err
			})
		}
		for i := range 6 {
			all.Go(func() {
				for !done.Load() {
					if err := work(i); err != nil {
						t.Error(err)
						return
					}
					worked.Add(1)
				}
			})
		}
		for i := range 40 {
			for worked.Load() < int64(i) && !t.Failed() {
				require.Equal(t, 3, count(t, db.Conn()))
			}
			require.NoError(t, p.ForceReconnect(t.Context(), ""))
		}
		done.Store(true)
		all.Wait()
	})
}

func migrate(ctx context.Context, p *DBProvider, db tx.Database) error {
	fsys := fstest.MapFS{"m/1_wing.up.sql": {Data: []byte("ALTER TABLE bird ADD COLUMN wing integer")}}
	if _, err := migrator.Run(ctx, db, migrator.Options{FS: fsys, Dir: "m", Command: migrator.Up}); err != nil {
		return err
	}
	return p.ForceReconnect(ctx, db.Name())
}

func TestAMigrationAddsAColumnWhileAnotherTransactionCommitsUndisturbed(t *testing.T) {
	each(t, func(t *testing.T, p *DBProvider, db tx.Database) {
		exec(t, db.Conn(), "CREATE TABLE log (line text)")
		// SQLite has one writer: the operation in flight there is a reader.
		h, err := db.Begin(t.Context(), tx.Attr{ReadOnly: db.SingleWriter()})
		require.NoError(t, err)
		if db.SingleWriter() {
			require.Equal(t, 3, count(t, h.Conn()))
		} else {
			exec(t, h.Conn(), "INSERT INTO log VALUES ('before')")
		}

		require.NoError(t, migrate(t.Context(), p, db))

		exec(t, db.Conn(), "INSERT INTO bird (id, name, wing) VALUES (4, 'gull', 2)")
		if db.SingleWriter() {
			require.Equal(t, 3, count(t, h.Conn()), "the snapshot is as it was")
		} else {
			exec(t, h.Conn(), "INSERT INTO log VALUES ('after')")
		}
		require.NoError(t, h.Commit())
		var lines int
		require.NoError(t, db.Conn().QueryRowContext(t.Context(), "SELECT count(*) FROM log").Scan(&lines))
		require.Equal(t, map[bool]int{true: 0, false: 2}[db.SingleWriter()], lines)
		require.Equal(t, 4, count(t, db.Conn()))
	})
}

func TestAMigrationWaitsForAWriterInFlightAndBothSucceed(t *testing.T) {
	each(t, func(t *testing.T, p *DBProvider, db tx.Database) {
		h, err := db.Begin(t.Context(), tx.Attr{})
		require.NoError(t, err)
		exec(t, h.Conn(), "INSERT INTO bird VALUES (4, 'gull')")
		migrated := make(chan error, 1)
		started := make(chan struct{})
		go func() {
			close(started)
			migrated <- migrate(t.Context(), p, db)
		}()
		<-started
		exec(t, h.Conn(), "INSERT INTO bird VALUES (5, 'tern')")
		require.NoError(t, h.Commit())
		require.NoError(t, <-migrated)
		var wings sql.NullInt64
		require.NoError(t, db.Conn().QueryRowContext(t.Context(), "SELECT max(wing) FROM bird").Scan(&wings))
		require.Equal(t, 5, count(t, db.Conn()))
	})
}

func TestCloseIsFinal(t *testing.T) {
	each(t, func(t *testing.T, p *DBProvider, db tx.Database) {
		require.NoError(t, p.Close())
		_, err := db.Conn().ExecContext(t.Context(), "SELECT 1")
		require.Error(t, err)
		_, err = db.Begin(t.Context(), tx.Attr{})
		require.Error(t, err)
	})
}

func TestOpenReportsEverythingThatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := Open(t.Context(), map[string]Config{
		"a": {URL: "sqlite::memory:"},
		"b": {URL: "oracle://x"},
		"c": {URL: "sqlite:/nowhere/at/all/x.db"},
		"d": {URL: "postgres://u:secret@127.0.0.1:1/x?sslmode=disable"},
		"e": {URL: "x", MaxOpen: -1, IdleInTransaction: -1},
		"f": {URL: "postgres://u:secret@127.0.0.1:port/x"},
		"g": {URL: "postgres://u:secret@127.0.0.1:1/x", MaxOpen: 2},
	})
	for _, says := range []string{
		"database a: SQLite in memory is not supported", `database b: the URL's scheme "oracle" is unknown`,
		"database c: open /nowhere/at/all/x.db", "database d: connect", "database e: the URL has no scheme",
		"max_open is -1", "idle_in_transaction", "database f: the URL is malformed",
		"database g: max_open is 2, but must be at least 3: a running step needs two connections",
	} {
		require.ErrorContains(t, err, says)
	}
	require.NotContains(t, err.Error(), "secret")
}

func TestAnUnknownDatabaseIsAnErrorThatListsTheKnownOnes(t *testing.T) {
	t.Parallel()
	p, err := Open(t.Context(), map[string]Config{
		"default": {URL: testdb.SQLite(t)}, "sales": {URL: testdb.SQLite(t)},
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	require.Equal(t, []string{"default", "sales"}, p.Names())
	_, err = p.Database("sails")
	require.EqualError(t, err, `database "sails" is not configured (configured: default, sales)`)
	require.Error(t, p.ForceReconnect(t.Context(), "sails"))
	sales, err := p.Database("sales")
	require.NoError(t, err)
	require.Equal(t, "sales", fmt.Sprint(sales.Name()))
}
