package bench

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
)

const (
	// hashedItems is how many items the job of BenchmarkScale has, hashRounds how often each is hashed.
	hashedItems = 30_000
	hashRounds  = 400
	scaleParts  = 4
)

// share is what a part reads: every so-many-th number below hashedItems.
type share struct {
	First int64 `key:"first" required:"true" doc:"The first number."`
	Step  int64 `key:"step" required:"true" doc:"The distance of two numbers."`
}

type numbers struct{ share }

func (n *numbers) Read(context.Context) (int64, error) {
	if n.First >= hashedItems {
		return 0, io.EOF
	}
	n.First += n.Step
	return n.First - n.Step, nil
}

func (n *numbers) Open(_ context.Context, at batch.Position) error {
	if at == nil {
		return nil
	}
	_, err := fmt.Sscan(string(at), &n.First)
	return err
}

func (n *numbers) Position() (batch.Position, error) { return batch.Position(fmt.Sprint(n.First)), nil }

// hash is work for a CPU.
type hash struct{}

func (hash) Process(_ context.Context, n int64) (string, error) {
	sum := sha256.Sum256([]byte(fmt.Sprint(n)))
	for range hashRounds {
		sum = sha256.Sum256(sum[:])
	}
	return string(sum[:8]), nil
}

type forget struct{}

func (forget) Write(context.Context, []string) error { return nil }

// hashing are the components of the job.
func hashing() fx.Option {
	return fx.Options(
		batch.Reader[int64]("numbers", func(s share) *numbers { return &numbers{s} }),
		batch.Processor[int64, string]("hash", func() hash { return hash{} }),
		batch.Writer[string]("forget", func() forget { return forget{} }),
	)
}

// BenchmarkScale is one CPU-bound step of 30,000 items, in a run of three kinds: as one step,
// as 4 partitions in one process, and as 4 partitions on 2 worker processes with the engine
// river. It reports how many times as fast as one step the others are, by the times of the
// execution in the database; on 2 free cores each is to be at least 1.6.
func BenchmarkScale(b *testing.B) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	url := testdb.Postgres(b)
	app, err := taskApp(b.Context(), "river", url)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, app.Close(context.Background())) })
	startWorkers(b, app, "river", url, 1)
	seconds := map[string]float64{}
	partition := fmt.Sprintf("  partition: {by: {count: %d}, %%s}\n", scaleParts)
	for b.Loop() {
		for _, k := range []struct{ kind, how string }{{"one", ""}, {"local", fmt.Sprintf(partition, "workers: 4")}, {"remote", fmt.Sprintf(partition, "remote: true")}} {
			kind, how, first, step := k.kind, k.how, "0", "1"
			if how != "" {
				first, step = "${part.index}", "${part.count}"
			}
			file := filepath.Join(b.TempDir(), kind+".yaml")
			require.NoError(b, os.WriteFile(file, fmt.Appendf(nil, "job: %s\nflow:\n- step: work\n%s  chunk:\n    size: 100\n    reader: {numbers: {first: %q, step: %q}}\n    processor: hash\n    writer: forget\n",
				kind, how, first, step), 0o600))
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

// cpuSeconds are those of this process: how many CPUs a run was given tells whether the
// machine was free.
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
