package keyrange_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

// each runs f on an empty database of every kind.
func each(t *testing.T, f func(t *testing.T, db tx.Database)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, url string) {
		p, err := gormdb.Open(context.Background(), map[string]gormdb.Config{tx.Default: {URL: url}})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, p.Close()) })
		db, err := p.Database("")
		require.NoError(t, err)
		f(t, db)
	})
}

func exec(t require.TestingT, db tx.Database, statement string, args ...any) {
	_, err := db.Conn().ExecContext(context.Background(), statement, args...)
	require.NoError(t, err)
}

func statement(text string, args ...any) core.SQL {
	return core.SQL{Parts: strings.Split(text, "${}"), Args: args}
}
