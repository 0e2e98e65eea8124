package batch_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func TestALoadLeavesNoGoroutineAndNoConnection(t *testing.T) { // not parallel: it checks all goroutines
	url := testdb.Postgres(t)
	before := goleak.IgnoreCurrent()
	ctx := context.Background()
	app, err := batch.New(ctx, settingsFor(t, url), batch.Log(nil))
	require.NoError(t, err)
	require.NoError(t, app.Prepare(ctx))
	for name, end := range map[string]struct {
		line   string
		status core.Status
	}{"whole": {"300", core.StatusCompleted}, "unreadable": {"x", core.StatusFailed}, "twice": {"7", core.StatusFailed}} {
		file := jobFile(t, fmt.Sprintf(`
job: %[1]s
flow:
- step: make
  tasklet: {sql: "create table target_%[1]s (id bigint primary key)"}
- step: load
  chunk: {size: 10, reader: {csv: {path: in.csv, item: {id: int}}}, writer: {table: target_%[1]s}}
`, name))
		var lines strings.Builder
		for i := range 300 {
			fmt.Fprintln(&lines, i)
			if i == 200 {
				fmt.Fprintln(&lines, end.line)
			}
		}
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(file), "in.csv"), []byte("id\n"+lines.String()), 0o600))
		exec, err := app.Run(ctx, batch.RunRequest{File: file})
		require.NoError(t, err)
		require.Equal(t, end.status, exec.Status, exec.Error)
	}
	require.NoError(t, app.Close(ctx))
	goleak.VerifyNone(t, before)
	db, err := sql.Open("pgx", url)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	require.Eventually(t, func() bool { // the server sees the end of a connection a little later
		var others int
		err := db.QueryRowContext(ctx, "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()").Scan(&others)
		return err == nil && others == 0
	}, 20*time.Second, 20*time.Millisecond)
}
