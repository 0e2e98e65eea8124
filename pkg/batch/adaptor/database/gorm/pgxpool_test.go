package gormdb

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func pgxSession(t *testing.T, p *DBProvider) string {
	t.Helper()
	db, err := p.find(tx.Default)
	require.NoError(t, err)
	pool, err := db.PgxPool(t.Context(), 2)
	require.NoError(t, err)
	defer pool.Close()
	require.EqualValues(t, 2, pool.Config().MaxConns)
	var name string
	require.NoError(t, pool.QueryRow(t.Context(), "select concat_ws(' ', current_setting('timezone'), current_setting('application_name'), current_setting('search_path'))").Scan(&name))
	return name
}

func TestAPoolOfPgxHasTheSessionsOfItsDatabase(t *testing.T) {
	t.Parallel()
	url := testdb.Postgres(t)
	require.Equal(t, `UTC surfin "$user", public`, pgxSession(t, open(t, url)))
	require.Equal(t, `UTC surfin "$user", public`, pgxSession(t, open(t, testdb.Pooled(t, url, "session"))))

	config, err := pgxpool.ParseConfig(url)
	require.NoError(t, err)
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "set search_path = lent")
		return err
	}
	lent, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	defer lent.Close()
	p, err := Open(t.Context(), map[string]Config{tx.Default: {Lent: Lend(lent)}})
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	require.Equal(t, "UTC surfin lent", pgxSession(t, p))
}

func TestSQLiteHasNoPoolOfPgx(t *testing.T) {
	t.Parallel()
	db, err := open(t, testdb.SQLite(t)).find(tx.Default)
	require.NoError(t, err)
	_, err = db.PgxPool(t.Context(), 2)
	require.True(t, errors.Is(err, errors.ErrUnsupported), "%v", err)
}
