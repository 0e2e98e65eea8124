package gormdb

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// file is an open SQLite file with the table bird, and a second provider on it, which SQLite treats like
// another process.
func file(t *testing.T) (db, foreign tx.Database) {
	t.Helper()
	url := testdb.SQLite(t)
	db = birds(t, open(t, url))
	foreign, err := open(t, url).Database("")
	require.NoError(t, err)
	return db, foreign
}

func TestWaitingForAForeignWriterHeedsTheContext(t *testing.T) {
	t.Parallel()
	db, foreign := file(t)
	h, err := foreign.Begin(t.Context(), tx.Attr{})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err = db.Begin(ctx, tx.Attr{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.True(t, dberr.IsBusy(err))
	_, err = db.Conn().ExecContext(ctx, "DELETE FROM bird")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(began), 25*time.Second, "SQLite itself would wait 30")
	require.Equal(t, 3, count(t, db.Conn()), "readers do not wait")
	require.NoError(t, h.Commit())
	exec(t, db.Conn(), "DELETE FROM bird")
}

func TestAForeignWriterIsWaitedFor(t *testing.T) {
	t.Parallel()
	db, foreign := file(t)
	h, err := foreign.Begin(t.Context(), tx.Attr{})
	require.NoError(t, err)
	wrote := make(chan error, 2)
	go func() {
		_, err := db.Conn().ExecContext(t.Context(), "INSERT INTO bird VALUES (4, 'gull')")
		wrote <- err
		wrote <- tx.NewManager(db).Do(t.Context(), tx.Attr{}, func(ctx context.Context) error {
			_, err := tx.ConnOf(ctx, db).ExecContext(ctx, "INSERT INTO bird VALUES (5, 'tern')")
			return err
		})
	}()
	exec(t, h.Conn(), "INSERT INTO bird VALUES (6, 'coot')")
	require.NoError(t, h.Commit())
	require.NoError(t, <-wrote)
	require.NoError(t, <-wrote)
	require.Equal(t, 6, count(t, db.Conn()))
}

func TestStatementsOutsideATransactionAreRoutedByWhatTheyDo(t *testing.T) {
	t.Parallel()
	db, _ := file(t)
	writes := []string{
		"INSERT INTO bird VALUES (4, 'gull') RETURNING id",
		"-- a comment\nUPDATE bird SET name = 'x' RETURNING id",
		"WITH n(i) AS (SELECT 5) INSERT INTO bird SELECT i, 'tern' FROM n RETURNING id",
		"DELETE FROM bird WHERE id = 4 RETURNING id",
	}
	readings := []string{
		"SELECT id FROM bird", "/* DELETE */ select id from bird", "VALUES (1)", "EXPLAIN SELECT 1",
		"WITH n(i) AS (SELECT 'INSERT' AS \"delete\") SELECT i FROM n", "PRAGMA user_version",
	}
	for _, query := range append(writes, readings...) {
		rows, err := db.Conn().QueryContext(t.Context(), query)
		require.NoError(t, err, query)
		require.NoError(t, rows.Close())
		require.NoError(t, rows.Err(), query)
	}
	err := tx.NewManager(db).Do(t.Context(), tx.Attr{}, func(ctx context.Context) error {
		for _, query := range writes {
			_, err := db.Conn().QueryContext(ctx, query) //nolint:sqlclosecheck,rowserrcheck // it fails
			require.ErrorIs(t, err, tx.ErrSingleWriter, query)
			require.ErrorIs(t, db.Conn().QueryRowContext(ctx, query).Err(), tx.ErrSingleWriter, query)
			_, err = db.Conn().PrepareContext(ctx, query) //nolint:sqlclosecheck // it fails
			require.ErrorIs(t, err, tx.ErrSingleWriter, query)
			_, err = db.Conn().ExecContext(ctx, query)
			require.ErrorIs(t, err, tx.ErrSingleWriter, query)
		}
		require.ErrorIs(t, db.Conn().Raw(ctx, func(any) error { return nil }), tx.ErrSingleWriter)
		for _, query := range readings {
			rows, err := db.Conn().QueryContext(ctx, query)
			require.NoError(t, err, query)
			require.NoError(t, rows.Close())
			require.NoError(t, rows.Err(), query)
		}
		return nil
	})
	require.NoError(t, err)
}

func TestAMisroutedWriteFailsOnAReader(t *testing.T) {
	t.Parallel()
	db, _ := file(t)
	err := db.Conn().QueryRowContext(t.Context(), "PRAGMA user_version = 7").Err()
	require.True(t, dberr.IsReadOnly(err), "%v", err)
	err = tx.NewManager(db).Do(t.Context(), tx.Attr{ReadOnly: true}, func(ctx context.Context) error {
		_, err := tx.ConnOf(ctx, db).ExecContext(ctx, "DELETE FROM bird")
		require.True(t, dberr.IsReadOnly(err), "%v", err)
		_, err = tx.ConnOf(ctx, db).ExecContext(ctx, "PRAGMA query_only = 0")
		return err
	})
	require.NoError(t, err)
	for range 2 * defaultSQLiteReaders { // whichever reader it was: it is protected again
		var on int
		require.NoError(t, db.Conn().QueryRowContext(t.Context(), "PRAGMA query_only").Scan(&on))
		require.Equal(t, 1, on)
	}
}

func TestAScriptOutsideATransactionIsAllOrNothing(t *testing.T) {
	t.Parallel()
	db, _ := file(t)
	_, err := db.Conn().ExecContext(t.Context(), "INSERT INTO bird VALUES (4, 'gull;'); INSERT INTO bird VALUES (1, 'twice')")
	require.True(t, dberr.IsUniqueViolation(err))
	require.Equal(t, 3, count(t, db.Conn()))
	exec(t, db.Conn(), "INSERT INTO bird VALUES (4, 'gull;'); INSERT INTO bird VALUES (5, 'tern');")
	require.Equal(t, 5, count(t, db.Conn()))
}

const endless = "WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i+1 FROM n) INSERT INTO bird SELECT i, 'x' FROM n"

func TestAnInterruptedWriteTakesItsTransactionAndNothingAfterItCommitsAlone(t *testing.T) {
	t.Parallel()
	db, _ := file(t)
	err := tx.NewManager(db).Do(t.Context(), tx.Attr{}, func(ctx context.Context) error {
		conn := tx.ConnOf(ctx, db)
		exec(t, conn, "INSERT INTO bird VALUES (4, 'gull')")
		var err error
		for limit := 30 * time.Millisecond; err == nil; limit *= 2 { // on a slow machine it is over before the write begins
			short, cancel := context.WithTimeout(ctx, limit)
			_, err = conn.ExecContext(short, endless)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			_, err = conn.ExecContext(ctx, "INSERT OR REPLACE INTO bird VALUES (5, 'tern')")
		}
		require.ErrorIs(t, err, sql.ErrTxDone)
		return nil // the work takes no notice
	})
	require.ErrorIs(t, err, tx.ErrForeignEnd)
	require.True(t, dberr.IsRolledBack(err), "%v", err)
	require.Equal(t, 3, count(t, db.Conn()))
	exec(t, db.Conn(), "INSERT INTO bird VALUES (6, 'coot')") // the writer serves again
}

func TestAnInterruptedWriteInNestedEndsTheWholeTransaction(t *testing.T) {
	t.Parallel()
	db, _ := file(t)
	manager := tx.NewManager(db)
	err := manager.Do(t.Context(), tx.Attr{}, func(ctx context.Context) error {
		exec(t, tx.ConnOf(ctx, db), "INSERT INTO bird VALUES (4, 'gull')")
		short := tx.Attr{Propagation: tx.Nested, Timeout: 30 * time.Millisecond}
		err := manager.Do(ctx, short, func(ctx context.Context) error {
			_, err := tx.ConnOf(ctx, db).ExecContext(ctx, endless)
			return err
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		return nil
	})
	var doomed *tx.RollbackOnlyError
	require.ErrorAs(t, err, &doomed)
	require.Equal(t, 3, count(t, db.Conn()))
}

func TestTheFileIsDurableWALWithForeignKeys(t *testing.T) {
	t.Parallel()
	db, _ := file(t)
	h, err := db.Begin(t.Context(), tx.Attr{})
	require.NoError(t, err)
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "20"} {
		for _, conn := range []tx.Conn{h.Conn(), db.Conn()} {
			var got string
			require.NoError(t, conn.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got))
			require.Equal(t, want, got, pragma)
		}
	}
	require.NoError(t, h.Rollback())
}

func TestOpenPoolsAreTheCallersOwn(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		db := birds(t, open(t, url))
		pool, err := db.Open()
		require.NoError(t, err)
		_, err = pool.ExecContext(t.Context(), "INSERT INTO bird VALUES (4, 'gull')")
		require.NoError(t, err)
		require.NoError(t, pool.Close())
		require.Equal(t, 4, count(t, db.Conn()))
	})
}

func TestWordsSkipLiteralsAndComments(t *testing.T) {
	t.Parallel()
	for query, control := range map[string]string{
		"COMMIT":                           "COMMIT",
		"/* x */ -- y\n begin":             "BEGIN",
		"ROLLBACK TO SAVEPOINT a":          "",
		"ROLLBACK TRANSACTION TO a":        "",
		"ROLLBACK WORK":                    "ROLLBACK",
		"START TRANSACTION":                "START",
		"PREPARE TRANSACTION 'x'":          "PREPARE",
		"PREPARE plan AS SELECT 1":         "",
		"SAVEPOINT a":                      "",
		"'COMMIT'":                         "",
		"SELECT 1; COMMIT":                 "", // the dialects' own guards find it
		"UPDATE t SET a = 'it''s; COMMIT'": "",
	} {
		require.Equal(t, control, transactionControl(query), query)
	}
	for query, script := range map[string]bool{
		"SELECT 1": false, "SELECT 1;": false, "SELECT 1; -- end": false, "SELECT ';' ; ": false,
		"SELECT 1; SELECT 2": true, strings.Repeat(" ", 10): false, `SELECT "a;b`: false,
	} {
		require.Equal(t, script, isScript(query), query)
	}
}
