package bench

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/bench/hashing"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
)

const (
	hashedItems = 30_000
	scaleParts  = 4
)

// BenchmarkScale is one CPU-bound step of 30,000 items, in three kinds of run: as one step, as 4 partitions
// in one process, and as 4 partitions on 2 worker processes with the engine river. It reports how many times
// as fast as one step the others are, by the times of the execution in the database; on 2 free cores each is
// to be at least 1.6.
func BenchmarkScale(b *testing.B) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	url := testdb.Postgres(b)
	app, err := taskApp(b.Context(), "river", url)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, app.Close(context.Background())) })
	startWorkers(b, app, "river", url, 1)
	seconds := map[string]float64{}
	partition := fmt.Sprintf("{by: {count: %d}, %%s}", scaleParts)
	for b.Loop() {
		for _, k := range []struct{ kind, how string }{{"one", ""}, {"local", fmt.Sprintf(partition, "workers: 4")}, {"remote", fmt.Sprintf(partition, "remote: true")}} {
			kind := k.kind
			file := filepath.Join(b.TempDir(), kind+".yaml")
			require.NoError(b, os.WriteFile(file, []byte(hashing.Job(kind, k.how, hashedItems)), 0o600))
			begin, spent := time.Now(), cpuSeconds(b)
			exec, err := app.Run(b.Context(), batch.RunRequest{File: file, Again: true})
			require.NoError(b, err)
			require.Equal(b, "COMPLETED", string(exec.Status))
			b.Logf("%s: %.2f s until its command ended, on %.2f CPUs", kind, time.Since(begin).Seconds(), (cpuSeconds(b)-spent)/time.Since(begin).Seconds())
			seconds[kind] += executed(b, url, int64(exec.ID))
		}
	}
	for kind, s := range seconds {
		b.ReportMetric(s/float64(b.N), kind+"-s")
		if kind != "one" {
			b.ReportMetric(seconds["one"]/s, kind+"/one")
		}
	}
}

func cpuSeconds(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// executed returns the seconds from the begin of an execution to its end, on the database's
// clock.
func executed(b *testing.B, url string, id int64) (s float64) {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), url)
	require.NoError(b, err)
	defer conn.Close(b.Context()) //nolint:errcheck // it has only read
	require.NoError(b, conn.QueryRow(b.Context(), "SELECT extract(epoch FROM ended_at - created_at)::float8 FROM surfin_job_execution WHERE id = $1", id).Scan(&s))
	return s
}
