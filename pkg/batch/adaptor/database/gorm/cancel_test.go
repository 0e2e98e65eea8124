package gormdb

import (
	"bytes"
	"context"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func birdsOver(t *testing.T, wrap func(net.Conn) net.Conn) tx.Database {
	t.Helper()
	pool := pgxPool(t, testdb.Postgres(t), func(config *pgxpool.Config) {
		dial := config.ConnConfig.DialFunc
		config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return wrap(conn), nil
		}
	})
	return birds(t, openWith(t, Config{Lent: Lend(pool)}))
}

// lateConn holds a statement back, so that a request to cancel it arrives first.
type lateConn struct{ net.Conn }

func (c lateConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("pg_sleep")) {
		time.Sleep(200 * time.Millisecond)
	}
	return c.Conn.Write(b)
}

// The server forgets a request to cancel a statement that it has not yet received.
func TestARequestToCancelThatComesBeforeTheStatementIsRepeated(t *testing.T) {
	t.Parallel()
	db := birdsOver(t, func(conn net.Conn) net.Conn { return lateConn{conn} })
	require.NoError(t, tx.NewManager(db).Do(t.Context(), tx.Attr{}, func(ctx context.Context) error {
		conn := tx.ConnOf(ctx, db)
		exec(t, conn, "SAVEPOINT s")
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		_, err := conn.ExecContext(short, "SELECT pg_sleep(60)")
		require.Error(t, err)
		exec(t, conn, "ROLLBACK TO SAVEPOINT s")
		return nil
	}))
}

type brokenConn struct {
	net.Conn
	over <-chan struct{}
}

func (c brokenConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("pg_sleep")) {
		<-c.over
		return 0, c.Close()
	}
	return c.Conn.Write(b)
}

func TestAConnectionThatIsLostAtATimeoutTellsTheTimeout(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	db := birdsOver(t, func(conn net.Conn) net.Conn { return brokenConn{conn, over} })
	err := tx.NewManager(db).Do(t.Context(), tx.Attr{Timeout: 20 * time.Millisecond}, func(ctx context.Context) error {
		context.AfterFunc(ctx, func() { close(over) })
		_, err := tx.ConnOf(ctx, db).ExecContext(ctx, "SELECT pg_sleep(60)")
		return err
	})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
