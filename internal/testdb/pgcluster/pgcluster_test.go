//test:plain

package pgcluster

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestAClusterServesUntilItIsStoppedAndLeavesNothing(t *testing.T) {
	t.Parallel()
	c, err := Start(t.Context())
	require.NoError(t, err)
	conn, err := pgx.Connect(t.Context(), c.URL())
	require.NoError(t, err)
	var superuser bool
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT usesuper FROM pg_user WHERE usename = current_user").Scan(&superuser))
	require.True(t, superuser)
	require.NoError(t, c.Restart(t.Context()))
	require.Error(t, conn.Ping(t.Context()), "its sessions are over")
	conn, err = pgx.Connect(t.Context(), c.URL())
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
	require.NoError(t, c.Stop())
	require.NoDirExists(t, c.dir)
	_, err = pgx.Connect(t.Context(), c.URL())
	require.Error(t, err)
}
