package pgcluster

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestAPoolerServesADatabaseUntilItIsStoppedAndLeavesNothing(t *testing.T) {
	t.Parallel()
	c, err := Start(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Stop()) })
	p, err := StartPooler(t.Context(), c.URL(), "session")
	require.NoError(t, err)
	conn, err := pgx.Connect(t.Context(), p.URL())
	require.NoError(t, err)
	var database string
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT current_database()").Scan(&database))
	require.Equal(t, "postgres", database)
	require.NoError(t, p.Stop(), "though a client is connected")
	require.NoDirExists(t, p.dir)
	require.Error(t, conn.Ping(t.Context()))
}
