package jobfile_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Rule C20c: while a session locks the row of the step, one chunk waits for its commit, and the next one is in
// the file, too.
func TestAChunkOfAFileIsWrittenWhileTheOneBeforeItCommits(t *testing.T) {
	t.Parallel()
	const rows, size = 4000, 10
	url := testdb.Postgres(t)
	e := testengine.New(t, url)
	dir := t.TempDir()
	var in strings.Builder
	in.WriteString("id,name\n")
	for n := range rows {
		fmt.Fprintf(&in, "%d,n%d\n", n, n)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in.csv"), []byte(in.String()), 0o600))
	reg := shipped(t)
	file, err := jobfile.Parse(filepath.Join(dir, "job.yaml"), fmt.Appendf(nil, `job: copy
flow:
- step: copy
  chunk:
    size: %d
    reader: {csv: {path: in.csv, item: {id: int, name: string}}}
    writer: {csv: out.csv}
`, size), reg)
	require.NoError(t, err)
	compiled, err := file.Compile(jobfile.Deps{Provider: e.Provider, Registry: reg})
	require.NoError(t, err)
	var exec *core.JobExecution
	ended := make(chan error, 1)
	go func() {
		var err error
		exec, err = e.Launcher.Run(t.Context(), compiled, core.Parameters{}, nil)
		ended <- err
	}()

	commits := func() int64 { return e.Ints("select coalesce(max(commit_count), 0) from surfin_step_execution")[0] }
	require.Eventually(t, func() bool { return commits() > 1 }, 20*time.Second, time.Millisecond)
	other, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, other.Close(context.Background())) })
	held, err := other.Begin(t.Context())
	require.NoError(t, err)
	committed := 0
	require.NoError(t, held.QueryRow(t.Context(), "select commit_count from surfin_step_execution for update").Scan(&committed))
	require.Less(t, (committed+2)*size, rows)
	require.Eventually(t, func() bool { return linesOf(t, dir) == 1+(committed+2)*size }, 20*time.Second, 5*time.Millisecond)
	require.EqualValues(t, committed, commits())
	require.NoError(t, held.Rollback(t.Context()))

	require.NoError(t, <-ended)
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	got, err := os.ReadFile(filepath.Join(dir, "out.csv"))
	require.NoError(t, err)
	require.Equal(t, in.String(), string(got))
}

// linesOf counts the lines of the part.
func linesOf(t *testing.T, dir string) int {
	t.Helper()
	parts, err := filepath.Glob(filepath.Join(dir, "out.csv.part*"))
	require.NoError(t, err)
	require.Len(t, parts, 1)
	text, err := os.ReadFile(parts[0])
	require.NoError(t, err)
	return bytes.Count(text, []byte("\n"))
}
