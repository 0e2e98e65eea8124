// Package bench measures operations that must be fast: launching a job and reading the history when that is
// long, and tasks from their submission to their end.
//
//	go run ./internal/testdb/cluster -- go -C bench test -run '^$' -bench .
//
// Each of them is to take less than 5 ms with 10,000 executions in the history.
//
// It imports the engine and the kits for tests; nothing imports it.
package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/errorclass"
	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/csv"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/table"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/partition/count"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestMain(m *testing.M) {
	if engine := os.Getenv(asWorker); engine != "" {
		if err := runWorker(engine); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(testdb.Main(m))
}

const past = 10_000

const nightly = `
job: nightly
parameters: {night: {type: int}, region: {type: string, default: north}, big: {type: int, default: 10, identifying: false}}
flow:
- step: seed
  tasklet: nothing
- step: load
  chunk:
    size: 10
    reader: {csv: {path: in.csv, item: {id: int, name: string}}}
    writer: {table: {name: rows, create: true}}
    skip: {limit: 5}
  expect: read == written
- decide: size
  choose:
  - {when: steps.load.written > params.big, next: parts}
  - next: report
- step: parts
  partition: {by: {count: 4}, workers: 1}
  tasklet: nothing
- step: report
  when: steps.load.skipped == 0
  tasklet: nothing
- step: publish
  tasklet: odd
`

type history struct {
	b       *testing.B
	db      tx.Database
	repo    *repository.Repository
	session *cli.Session
	app     cli.App
	dir     string
	owner   core.Owner
}

func each(b *testing.B, f func(h *history)) {
	b.Helper()
	for name, url := range map[string]func(testing.TB) string{"sqlite": testdb.SQLite, "postgres": testdb.Postgres} {
		b.Run(name, func(b *testing.B) {
			h := newHistory(b, url(b))
			b.ReportAllocs()
			f(h)
		})
	}
}

func newHistory(b *testing.B, url string) *history {
	b.Helper()
	ctx := context.Background()
	provider, err := gormdb.Open(ctx, map[string]gormdb.Config{tx.Default: {URL: url}})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, provider.Close()) })
	db, err := provider.Database(tx.Default)
	require.NoError(b, err)
	h := &history{b: b, db: db, repo: repository.New(db, repository.Options{}), dir: b.TempDir()}
	require.NoError(b, h.repo.Migrate(ctx))
	h.owner, err = job.CurrentOwner()
	require.NoError(b, err)
	h.assemble(provider)
	b.Chdir(h.dir)
	b.Setenv("DATABASE_URL", url)
	h.write("nightly.yaml", nightly)
	h.write("in.csv", "id,name\n"+strings.Repeat("1,a\n", 95))
	h.surfin(0, "run", "nightly.yaml", "night=0")
	h.surfin(1, "run", "nightly.yaml", "night=1")
	h.multiply()
	return h
}

func (h *history) assemble(provider *gormdb.DBProvider) {
	h.b.Helper()
	does := func(name string, f core.TaskletFunc) registry.Component {
		return registry.Component{
			Kind: registry.KindTasklet, Name: name, Summary: "for benchmarks",
			New: func(context.Context, any, registry.BuildContext) (any, error) { return f, nil },
		}
	}
	matchers, err := exception.NewMatchers(errorclass.Stock()...)
	require.NoError(h.b, err)
	components, err := registry.New(slices.Concat(csv.Components(), table.Components(), count.Components(), []registry.Component{
		does("nothing", func(context.Context, *core.StepContribution) error { return nil }),
		does("odd", func(ctx context.Context, c *core.StepContribution) error {
			if night, _ := c.Params.Get("night"); night.Value.(int64)%2 == 1 {
				return errors.New("the printer is on fire")
			}
			return nil
		}),
	}), nil, matchers)
	require.NoError(h.b, err)
	checkpoints := repository.NewCheckpoints(h.repo, provider, repository.CheckpointOptions{AutoMigrate: func(tx.Dialect) bool { return true }})
	launcher, err := job.NewLauncher(job.Config{
		Repository: h.repo.Ports(), Stores: checkpoints, Observer: core.ObserverFunc(func(context.Context, core.Event) {}), Lease: 30 * time.Second, Heartbeat: 5 * time.Second,
		Executor: step.NewSimpleStepExecutor(h.repo, h.db.Name(), core.ObserverFunc(func(context.Context, core.Event) {})),
	})
	require.NoError(h.b, err)
	service, err := operator.New(operator.Config{Repository: h.repo.Ports(), Launcher: launcher, Provider: provider, Registry: components})
	require.NoError(h.b, err)
	h.session = &cli.Session{
		Service: service, Provider: provider,
		Close: func(context.Context) error { return nil },
	}
	h.app = cli.App{Name: "surfin", Version: "bench", Registry: components, Open: func(context.Context, cli.Settings, core.Observer) (*cli.Session, error) {
		return h.session, nil
	}}
}

func (h *history) write(name, text string) {
	h.b.Helper()
	require.NoError(h.b, os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600))
}

func (h *history) surfin(want int, args ...string) string {
	h.b.Helper()
	var out, log bytes.Buffer
	if got := cli.Main(context.Background(), h.app, args, strings.NewReader(""), &out, &log); got != want {
		require.Equal(h.b, want, got, "%v\n%s%s", args, out.String(), log.String())
	}
	return out.String()
}

func (h *history) exec(query string, args ...any) {
	h.b.Helper()
	_, err := h.db.Conn().ExecContext(context.Background(), query, args...)
	require.NoError(h.b, err, query)
}

const apart = 100

// multiply copies the two executions until there are enough, each copy as an instance
// of its own with a night of its own.
func (h *history) multiply() {
	h.b.Helper()
	copies := past / 2
	for from := 1; from <= copies; from += 500 {
		var values []string
		for i := from; i < from+500; i++ {
			for _, night := range []int64{0, 1} {
				values = append(values, fmt.Sprintf("(%d, 'nightly', '%s', (select created_at from surfin_job_instance where id = 1))", int64(i*apart)+night+1, h.params(int64(2*i)+night).Key()))
			}
		}
		h.exec("insert into surfin_job_instance (id, job_name, instance_key, created_at) values " + strings.Join(values, ", "))
	}
	h.copied("job_execution", copies, map[string]string{"id": "t.id + n.i * %d", "instance_id": "t.instance_id + n.i * %d"})
	h.copied("job_execution_param", copies, map[string]string{
		"job_execution_id": "t.job_execution_id + n.i * %d",
		"value":            "case t.name when 'night' then cast(2 * n.i + cast(case t.name when 'night' then t.value else '0' end as integer) as text) else t.value end",
	})
	h.copied("step_execution", copies, map[string]string{"id": "t.id + n.i * %d", "job_execution_id": "t.job_execution_id + n.i * %d", "first_id": "t.first_id + n.i * %d"})
	h.copied("audit", copies, map[string]string{"id": "t.id + n.i * %d", "job_execution_id": "t.job_execution_id + n.i * %d", "step_execution_id": "case t.step_execution_id when 0 then 0 else t.step_execution_id + n.i * %d end"})
	if h.db.Dialect() == tx.Postgres {
		for _, table := range []string{"job_instance", "job_execution", "step_execution", "audit"} {
			h.exec(fmt.Sprintf("select setval(pg_get_serial_sequence('surfin_%[1]s', 'id'), (select max(id) from surfin_%[1]s))", table))
		}
		h.exec("analyze")
	}
	h.check()
}

func (h *history) copied(table string, copies int, replaced map[string]string) {
	h.b.Helper()
	columns := h.columns(table)
	values := make([]string, len(columns))
	for i, c := range columns {
		values[i] = "t." + c
		if v, ok := replaced[c]; ok {
			values[i] = strings.ReplaceAll(v, "%d", fmt.Sprint(apart))
		}
	}
	h.exec(fmt.Sprintf("insert into surfin_%s (%s) with recursive n(i) as (select 1 union all select i + 1 from n where i < %d) select %s from surfin_%s t, n order by n.i",
		table, strings.Join(columns, ", "), copies, strings.Join(values, ", "), table))
}

func (h *history) columns(table string) []string {
	h.b.Helper()
	rows, err := h.db.Conn().QueryContext(context.Background(), "select * from surfin_"+table+" limit 0")
	require.NoError(h.b, err)
	defer rows.Close()
	columns, err := rows.Columns()
	require.NoError(h.b, err)
	require.NoError(h.b, rows.Err())
	return columns
}

func (h *history) params(night int64) core.Parameters {
	h.b.Helper()
	params, err := core.NewParameters(
		core.Parameter{Name: "night", Type: core.TypeInt, Value: night, Identifying: true},
		core.Parameter{Name: "region", Type: core.TypeString, Value: "north", Identifying: true},
		core.Parameter{Name: "big", Type: core.TypeInt, Value: int64(10)},
	)
	require.NoError(h.b, err)
	return params
}

const (
	completed = past/4*apart + 1
	failed    = past/4*apart + 2
)

func (h *history) check() {
	h.b.Helper()
	for table, least := range map[string]int{"job_execution": past + 2, "step_execution": 8 * past, "audit": 10 * past} {
		var n int
		require.NoError(h.b, h.db.Conn().QueryRowContext(context.Background(), "select count(*) from surfin_"+table).Scan(&n))
		require.GreaterOrEqual(h.b, n, least, table)
	}
	said := h.surfin(0, "explain", fmt.Sprint(failed))
	require.Contains(h.b, said, "the printer is on fire")
	require.Contains(h.b, said, "surfin restart "+fmt.Sprint(failed))
	require.Contains(h.b, said, fmt.Sprintf("night=%d", past/2+1))
	require.Contains(h.b, h.surfin(4, "run", "nightly.yaml", fmt.Sprintf("night=%d", past/2)), "")
	require.Contains(h.b, h.surfin(0, "show", fmt.Sprint(completed)), "4 partitions: 4 COMPLETED")
}

func BenchmarkLaunch(b *testing.B) {
	each(b, func(h *history) {
		ctx, night := context.Background(), int64(10*past)
		for h.b.Loop() {
			night++
			launched, err := h.repo.Launch(ctx, ports.LaunchRequest{
				JobName: "nightly", Params: h.params(night), Restartable: true, Owner: h.owner, Lease: time.Minute, Definition: core.Definition{Hash: "bench", Text: nightly},
			})
			require.NoError(h.b, err)
			h.b.StopTimer()
			exec := launched.Execution
			_, err = h.repo.ChangeJob(ctx, ports.JobRef{ID: exec.ID, Owner: exec.Owner, Epoch: exec.Epoch}, ports.JobChange{To: core.StatusFailed})
			require.NoError(h.b, err)
			h.b.StartTimer()
		}
	})
}

// BenchmarkRun is a job of one step that does nothing, from its launch to its end.
func BenchmarkRun(b *testing.B) {
	each(b, func(h *history) {
		nothing, err := step.NewTasklet(step.TaskletConfig{Name: "nothing", Database: h.db, Assemble: func(context.Context, *model.StepRun) (core.Tasklet, error) {
			return core.TaskletFunc(func(context.Context, *core.StepContribution) error { return nil }), nil
		}})
		require.NoError(h.b, err)
		j := &model.Job{Name: "nightly", Restartable: true, Definition: core.Definition{Hash: "bench", Text: nightly}}
		j.Flow.Elements = []model.Element{&model.StepElement{Step: nothing}}
		night := int64(10 * past)
		for h.b.Loop() {
			night++
			params := h.params(night)
			exec, err := h.session.Service.Run(context.Background(), operator.RunRequest{Job: j, Exactly: &params})
			require.NoError(h.b, err)
			require.Equal(h.b, core.StatusCompleted, exec.Status)
		}
	})
}

// The commands, as typed, without the start of a process and without opening the database.
func BenchmarkList(b *testing.B) { commands(b, "list") }

func BenchmarkListFiltered(b *testing.B) {
	commands(b, "list", "--job", "nightly", "--status", "failed", "--before", fmt.Sprint(failed))
}

func BenchmarkListInstances(b *testing.B) { commands(b, "list", "instances", "--job", "nightly") }

func BenchmarkListJobs(b *testing.B) { commands(b, "list", "jobs") }

func BenchmarkShow(b *testing.B) { commands(b, "show", fmt.Sprint(failed)) }

func BenchmarkShowAudit(b *testing.B) { commands(b, "show", fmt.Sprint(failed), "--audit") }

func BenchmarkExplainCompleted(b *testing.B) { commands(b, "explain", fmt.Sprint(completed)) }

func BenchmarkExplainFailed(b *testing.B) { commands(b, "explain", fmt.Sprint(failed)) }

func commands(b *testing.B, args ...string) {
	b.Helper()
	each(b, func(h *history) {
		for h.b.Loop() {
			h.surfin(0, args...)
		}
	})
}
