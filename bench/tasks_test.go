package bench

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/bench/hashing"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/engine/river"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

const (
	shortTasks = 10_000
	paced      = 200
	workSlots  = 32
	asWorker   = "SURFIN_BENCH_WORKER"
	slotsOf    = "SURFIN_BENCH_SLOTS"
	// profileTo is a folder: workers write CPU profiles to it.
	profileTo = "SURFIN_BENCH_PROFILE"
)

func nothing(context.Context, task.Task) (task.Outcome, error) { return task.Success(), nil }

func taskApp(ctx context.Context, engine, url string) (*batch.App, error) {
	s, err := settings.Load(settings.Source{Dir: os.TempDir(), Environ: []string{"DATABASE_URL=" + url, "SURFIN_ENGINE=" + engine, "SURFIN_AUTO_MIGRATE=true"}})
	if err != nil {
		return nil, err
	}
	app, err := batch.New(ctx, s, river.Module(), hashing.Components(), batch.Handler("nothing", func() task.HandlerFunc { return nothing }))
	if err != nil {
		return nil, err
	}
	return app, app.Prepare(ctx)
}

func runWorker(engine string) error {
	if dir := os.Getenv(profileTo); dir != "" {
		f, err := os.Create(dir + "/" + engine + "-" + strconv.Itoa(os.Getpid()) + ".pprof")
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	slog.SetDefault(slog.New(slog.DiscardHandler)) // logging each claim that was too late costs more than the claim
	ctx, end := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer end()
	slots, err := strconv.Atoi(os.Getenv(slotsOf))
	if err != nil {
		return err
	}
	app, err := taskApp(context.Background(), engine, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	return app.Work(context.Background(), ctx.Done(), runtime.Options{Slots: slots, Poll: 100 * time.Millisecond, Types: []string{"nothing"}})
}

func startWorkers(b *testing.B, app *batch.App, engine, url string, slots int) {
	b.Helper()
	for range 2 {
		w := exec.Command(os.Args[0])
		w.Env = append(os.Environ(), asWorker+"="+engine, slotsOf+"="+strconv.Itoa(slots), "DATABASE_URL="+url)
		w.Stderr = os.Stderr
		require.NoError(b, w.Start())
		b.Cleanup(func() {
			require.NoError(b, w.Process.Signal(syscall.SIGTERM))
			require.NoError(b, w.Wait())
		})
	}
	require.Eventually(b, func() bool {
		workers, err := app.Tasks.Workers(b.Context())
		return err == nil && len(workers) == 2
	}, time.Minute, 10*time.Millisecond)
	submitTasks(b, app, 2*slots)
}

// serverCPU is the CPU seconds of the database's current backends, if it runs on this machine: on a busy
// machine this is more meaningful than the time.
func serverCPU(b *testing.B, url string) (seconds float64) {
	b.Helper()
	config, err := pgx.ParseConfig(url)
	require.NoError(b, err)
	lists, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(b, err)
	for _, list := range lists {
		command, err := os.ReadFile(list) //nolint:gosec // of /proc
		if err != nil || !strings.HasPrefix(string(command), "postgres: ") || !strings.Contains(string(command), " "+config.Database+" ") {
			continue // it has ended, or is another one
		}
		stat, err := os.ReadFile(filepath.Dir(list) + "/stat")
		if err != nil {
			continue
		}
		_, after, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(after)
		for _, ticks := range fields[11:13] { // utime, stime
			n, err := strconv.Atoi(ticks)
			require.NoError(b, err)
			seconds += float64(n) / 100
		}
	}
	return seconds
}

func submitTasks(b *testing.B, app *batch.App, n int) task.GroupID {
	b.Helper()
	accepted, err := app.Tasks.Submit(b.Context(), task.Submission{Type: "nothing", Tasks: make([]task.Spec, n)})
	require.NoError(b, err)
	for {
		status, err := app.Tasks.Status(b.Context(), accepted.Group)
		require.NoError(b, err)
		if status.Succeeded == n {
			return accepted.Group
		}
		time.Sleep(2*time.Millisecond + time.Duration(n)*10*time.Microsecond) // the question reads all tasks of the group
	}
}

// waited returns the median and the 99th percentile of milliseconds from the due time of a task to the start
// of its handler, for groups from one on.
func waited(b *testing.B, url string, from task.GroupID) (p50, p99 float64) {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), url)
	require.NoError(b, err)
	defer conn.Close(b.Context()) //nolint:errcheck // it has only read
	require.NoError(b, conn.QueryRow(b.Context(), `SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY ms), percentile_cont(0.99) WITHIN GROUP (ORDER BY ms)
		FROM (SELECT 1000 * extract(epoch FROM a.started_at - t.delivered_at)::float8 AS ms
			FROM surfin_task t JOIN surfin_task_attempt a ON a.task_id = t.id WHERE t.group_id >= $1) AS waits`, from).Scan(&p50, &p99))
	return p50, p99
}

// BenchmarkTasks is 10,000 tasks that do nothing, submitted as one group to two worker processes, and 200
// submitted one after the other. With the engine river it is to be at least 1,000 tasks in a second.
func BenchmarkTasks(b *testing.B) {
	for _, engine := range []string{"river", "local"} {
		b.Run(engine, func(b *testing.B) {
			url := testdb.Postgres(b)
			app, err := taskApp(b.Context(), engine, url)
			require.NoError(b, err)
			b.Cleanup(func() { require.NoError(b, app.Close(context.Background())) })
			startWorkers(b, app, engine, url, workSlots)
			var group task.GroupID
			spent := serverCPU(b, url)
			b.ResetTimer()
			for b.Loop() {
				group = submitTasks(b, app, shortTasks)
			}
			b.ReportMetric((serverCPU(b, url)-spent)*1000/float64(b.N*shortTasks), "server-cpu-ms/task")
			rate := float64(b.N*shortTasks) / b.Elapsed().Seconds()
			b.ReportMetric(rate, "tasks/s")
			p50, p99 := waited(b, url, group)
			b.ReportMetric(p50, "flood-p50-ms")
			b.ReportMetric(p99, "flood-p99-ms")
			for i := range paced {
				if g := submitTasks(b, app, 1); i == 0 {
					group = g
				}
			}
			p50, p99 = waited(b, url, group)
			b.ReportMetric(p50, "idle-p50-ms")
			b.ReportMetric(p99, "idle-p99-ms")
		})
	}
}

// BenchmarkIdleStart is 200 tasks submitted one after the other to an idle worker of the same process.
func BenchmarkIdleStart(b *testing.B) {
	for _, engine := range []string{"river", "local"} {
		b.Run(engine, func(b *testing.B) {
			url := testdb.Postgres(b)
			app, err := taskApp(b.Context(), engine, url)
			require.NoError(b, err)
			stop, ended := make(chan struct{}), make(chan error, 1)
			go func() {
				ended <- app.Work(context.Background(), stop, runtime.Options{Slots: workSlots, Types: []string{"nothing"}})
			}()
			submitTasks(b, app, workSlots)
			group := submitTasks(b, app, 1)
			for b.Loop() {
				for range paced {
					submitTasks(b, app, 1)
				}
			}
			p50, p99 := waited(b, url, group)
			b.ReportMetric(p50, "idle-p50-ms")
			b.ReportMetric(p99, "idle-p99-ms")
			close(stop)
			require.NoError(b, <-ended)
			require.NoError(b, app.Close(context.Background()))
		})
	}
}
