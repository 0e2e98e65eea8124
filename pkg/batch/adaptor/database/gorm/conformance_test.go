package gormdb

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testkit/txtest"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestConformanceOfTheManagerOnSQLite(t *testing.T) {
	t.Parallel()
	txtest.Run(t, func(t *testing.T) tx.Provider { return open(t, testdb.SQLite(t)) })
}

func TestConformanceOfTheManagerOnMySQL(t *testing.T) {
	t.Parallel()
	txtest.Run(t, func(t *testing.T) tx.Provider { return open(t, testdb.MySQL(t)) })
}

func TestConformanceOfTheManagerOnPostgreSQL(t *testing.T) {
	t.Parallel()
	schema := inSchemas(t)
	txtest.Run(t, func(t *testing.T) tx.Provider { return open(t, schema(t)) })
}

func TestConformanceOfTheManagerOnPostgreSQLThatBeginsLate(t *testing.T) {
	t.Parallel()
	schema := inSchemas(t)
	txtest.Run(t, func(t *testing.T) tx.Provider { return lateProvider{open(t, schema(t))} })
}

type lateProvider struct{ tx.Provider }

func (p lateProvider) Database(name string) (tx.Database, error) {
	db, err := p.Provider.Database(name)
	return lateDatabase{db}, err
}

type lateDatabase struct{ tx.Database }

func (d lateDatabase) Begin(ctx context.Context, attr tx.Attr) (tx.Handle, error) {
	attr.Late = true
	return d.Database.Begin(ctx, attr)
}

// inSchemas makes a database on PostgreSQL and returns a function that makes a new schema in it and returns
// its URL: a database for each sentence of the suite took the server most of its time.
func inSchemas(t *testing.T) func(t *testing.T) string {
	t.Helper()
	url := testdb.Postgres(t)
	db, err := open(t, url).Database(tx.Default)
	require.NoError(t, err)
	var made atomic.Int64
	return func(t *testing.T) string {
		t.Helper()
		name := fmt.Sprintf("txtest%d", made.Add(1))
		exec(t, db.Conn(), "CREATE SCHEMA "+name)
		return url + "&search_path=" + name
	}
}

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
