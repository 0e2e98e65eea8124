package gormdb

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestATransactionThatAStatementEndedIsAnErrorOfItsOwner(t *testing.T) {
	t.Parallel()
	const insert = "INSERT INTO bird VALUES (4, 'gull'); "
	for script, c := range map[string]struct {
		rows  int
		fails bool // the script itself
	}{
		"COMMIT; BEGIN":             {4, false},
		"COMMIT":                    {4, false},
		"COMMIT AND CHAIN":          {4, false},
		"ROLLBACK; BEGIN":           {3, false},
		"ROLLBACK AND CHAIN":        {3, false},
		"COMMIT; BEGIN; SELECT 1/0": {4, true},
		"COMMIT; SELECT 1/0":        {4, true},
		"ROLLBACK; SELECT 1/0":      {3, true},
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			db := birds(t, open(t, testdb.Postgres(t)))
			for _, raw := range []bool{false, true} {
				exec(t, db.Conn(), "DELETE FROM bird WHERE id = 4")
				err := tx.NewManager(db).Do(t.Context(), tx.Attr{}, func(ctx context.Context) error {
					if !raw {
						_, err := tx.ConnOf(ctx, db).ExecContext(ctx, insert+script)
						return err
					}
					return tx.ConnOf(ctx, db).Raw(ctx, func(driverConn any) error {
						return driverConn.(*stdlib.Conn).Conn().PgConn().Exec(ctx, insert+script).Close()
					})
				})
				require.ErrorIs(t, err, tx.ErrForeignEnd)
				require.Equal(t, c.fails, err.Error()[:5] == "ERROR", "%v", err)
				require.Equal(t, c.rows, count(t, db.Conn()))
			}
		})
	}
}

func TestAScriptThatFailsInItsTransactionIsAnOrdinaryError(t *testing.T) {
	t.Parallel()
	db := birds(t, open(t, testdb.Postgres(t)))
	for _, script := range []string{"INSERT INTO bird VALUES (4, 'gull'); SELECT 1/0", "SAVEPOINT a; SELECT 1/0"} {
		err := tx.NewManager(db).Do(t.Context(), tx.Attr{}, func(ctx context.Context) error {
			_, err := tx.ConnOf(ctx, db).ExecContext(ctx, script)
			return err
		})
		require.ErrorContains(t, err, "division by zero")
		require.NotErrorIs(t, err, tx.ErrForeignEnd)
		require.Equal(t, 3, count(t, db.Conn()))
	}
}

type counted struct {
	net.Conn
	sent *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	c.sent.Add(1)
	return c.Conn.Write(b)
}

func TestTheProofOfATransactionTakesNoMessageOfItsOwn(t *testing.T) {
	t.Parallel()
	db, err := open(t, testdb.Postgres(t)).find("")
	require.NoError(t, err)
	p, ok := db.backend.(*postgres)
	require.True(t, ok)
	var sent atomic.Int64
	dial := p.server.config.DialFunc
	p.server.config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return counted{conn, &sent}, err
	}
	require.NoError(t, p.reconnect())
	exec(t, p.conn(), "CREATE TABLE out (id bigint)")
	var costs []int64
	for range 3 {
		before := sent.Load()
		h, err := p.begin(t.Context(), tx.Attr{})
		require.NoError(t, err)
		exec(t, h.Conn(), "INSERT INTO out VALUES ($1)", 1)
		nonce, err := h.Fence()
		require.NoError(t, err)
		result, err := h.Conn().ExecContext(t.Context(), "UPDATE out SET id = 2 WHERE current_setting('surfin.tx', true) = $1", nonce)
		require.NoError(t, err)
		rows, err := result.RowsAffected()
		require.NoError(t, err)
		require.Positive(t, rows)
		require.NoError(t, h.Commit())
		costs = append(costs, sent.Load()-before)
	}
	require.Equal(t, []int64{4, 4}, costs[1:], "BEGIN, INSERT, UPDATE, COMMIT")
}
