package gormdb

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
	"github.com/surfin-batch/surfin/pkg/batch/tx/txtest"
)

func TestConformanceOfTheManagerOnSQLite(t *testing.T) {
	t.Parallel()
	txtest.Run(t, func(t *testing.T) tx.Provider { return open(t, testdb.SQLite(t)) })
}

func TestConformanceOfTheManagerOnPostgreSQL(t *testing.T) {
	t.Parallel()
	txtest.Run(t, func(t *testing.T) tx.Provider { return open(t, testdb.Postgres(t)) })
}

// open opens one database, named default.
func open(t *testing.T, url string) *DBProvider {
	t.Helper()
	return openWith(t, Config{URL: url})
}

func openWith(t *testing.T, c Config) *DBProvider {
	t.Helper()
	p, err := Open(t.Context(), map[string]Config{tx.Default: c})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}
