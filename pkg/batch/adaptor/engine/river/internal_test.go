package river

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestNamesOfQueuesAreDifferentInRiver(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"mail": "mail", "a-b_2": "a-b_2", strings.Repeat("a", 64): strings.Repeat("a", 64)} {
		require.Equal(t, want, queueOf(name))
	}
	seen := map[string]string{}
	for _, name := range []string{"Mail", "mail.send", "mail send", "x-1", "_a", "a_", "a--b", strings.Repeat("a", 65), "メール", queueOf("Mail")} {
		in := queueOf(name)
		require.Regexp(t, `^x-[0-9a-f]{40}$`, in)
		require.Empty(t, seen[in], "%s and %s", name, seen[in])
		seen[in] = name
	}
}

// The transaction belongs to its owner; River may set savepoints in it.
func TestABorrowedTransactionIsNotEnded(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	conn, err := pgx.Connect(ctx, testdb.Postgres(t))
	require.NoError(t, err)
	defer conn.Close(ctx) //nolint:errcheck // the test is over
	owner, err := conn.Begin(ctx)
	require.NoError(t, err)
	outer := &borrowed{conn: conn}
	require.ErrorIs(t, outer.Commit(ctx), tx.ErrNotOwner)
	require.ErrorIs(t, outer.Rollback(ctx), tx.ErrNotOwner)
	_, err = outer.Exec(ctx, "create table t(n int)")
	require.NoError(t, err)
	kept, err := outer.Begin(ctx)
	require.NoError(t, err)
	_, err = kept.Exec(ctx, "insert into t values (1)")
	require.NoError(t, err)
	inner, err := kept.Begin(ctx)
	require.NoError(t, err)
	_, err = inner.Exec(ctx, "insert into t values (2)")
	require.NoError(t, err)
	require.NoError(t, inner.Rollback(ctx))
	require.NoError(t, kept.Commit(ctx))
	require.NoError(t, owner.Commit(ctx))
	var sum int
	require.NoError(t, conn.QueryRow(ctx, "select sum(n) from t").Scan(&sum))
	require.Equal(t, 1, sum)
}
