package gormdb

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestOnlySingleStatementsOnRowsAreKeptPrepared(t *testing.T) {
	t.Parallel()
	for query, keeps := range map[string]bool{
		"select 1": true, " /* why */ WITH x AS (SELECT 1) SELECT * FROM x": true, "REPLACE INTO bird VALUES (1, 'a')": true,
		"PRAGMA query_only = 1": false, "CREATE TABLE t (id int)": false, "BEGIN": false, "": false, "-- ping": false,
		"DELETE FROM bird; DELETE FROM nest": false, "SELECT '" + strings.Repeat("a", longestStatement) + "'": false,
	} {
		require.Equal(t, keeps, keepsPrepared(query), query)
	}
}

func onWriter(t *testing.T, db tx.Database, f func(ctx context.Context, conn tx.Conn)) {
	t.Helper()
	require.NoError(t, tx.NewManager(db).Do(t.Context(), tx.Attr{}, func(ctx context.Context) error {
		f(ctx, tx.ConnOf(ctx, db))
		return nil
	}))
}

func TestAKeptStatementSeesTheSchemaAsItIs(t *testing.T) {
	t.Parallel()
	db, foreign := file(t)
	const all = "SELECT * FROM bird WHERE id = ?"
	columns := func() (names []string) {
		onWriter(t, db, func(ctx context.Context, conn tx.Conn) {
			rows, err := conn.QueryContext(ctx, all, 1)
			require.NoError(t, err)
			names, err = rows.Columns()
			require.NoError(t, err)
			require.True(t, rows.Next())
			types, err := rows.ColumnTypes()
			require.NoError(t, err)
			require.Len(t, types, len(names))
			require.Equal(t, "INTEGER", types[0].DatabaseTypeName())
			require.NoError(t, rows.Close())
		})
		return names
	}
	before := columns()
	exec(t, foreign.Conn(), "ALTER TABLE bird ADD COLUMN wings int DEFAULT 2")
	require.Equal(t, append(before, "wings"), columns())
	exec(t, db.Conn(), "DROP TABLE bird")
	exec(t, db.Conn(), "CREATE TABLE bird (id integer)")
	exec(t, db.Conn(), "INSERT INTO bird VALUES (1)")
	require.Equal(t, []string{"id"}, columns())
}

func TestAKeptStatementIsUsedByOneAtATimeAndNotAfterItFailed(t *testing.T) {
	t.Parallel()
	db, _ := file(t)
	onWriter(t, db, func(ctx context.Context, conn tx.Conn) {
		const each = "SELECT id FROM bird ORDER BY id"
		outer, err := conn.QueryContext(ctx, each)
		require.NoError(t, err)
		for want := 1; outer.Next(); want++ {
			var id int
			require.NoError(t, outer.Scan(&id))
			require.Equal(t, want, id)
			require.NoError(t, conn.QueryRowContext(ctx, each).Scan(&id), "the same text, while its rows are open")
			require.Equal(t, 1, id)
		}
		require.NoError(t, outer.Close())
		const insert = "INSERT INTO bird VALUES (?, ?)"
		for id, fails := range map[int]bool{1: true, 10: false, 2: true, 11: false} {
			_, err := conn.ExecContext(ctx, insert, id, "gull")
			require.Equal(t, fails, err != nil, id)
			_, err = conn.ExecContext(ctx, insert, 100+id, "gull")
			require.NoError(t, err)
		}
	})
	require.Equal(t, 9, count(t, db.Conn()))
}

func TestAConnectionKeepsABoundedNumberOfStatementsAndClosesThem(t *testing.T) {
	t.Parallel()
	db, _ := file(t)
	onWriter(t, db, func(ctx context.Context, conn tx.Conn) {
		for i := range 3 * keptStatements {
			var n int
			require.NoError(t, conn.QueryRowContext(ctx, fmt.Sprintf("SELECT %d", i)).Scan(&n))
			require.Equal(t, i, n)
		}
	})
	own, ok := db.(*database)
	require.True(t, ok)
	lite, ok := own.backend.(*sqliteFile)
	require.True(t, ok)
	writer, err := lite.writer.acquire(t.Context())
	require.NoError(t, err)
	physical, err := physicalOf[*liteConn](writer)
	require.NoError(t, err)
	require.LessOrEqual(t, len(physical.kept), keptStatements)
	require.Greater(t, len(physical.kept), keptStatements/2)
	require.NoError(t, physical.Close())
	require.Empty(t, physical.kept)
	require.NoError(t, writer.Close())
}
