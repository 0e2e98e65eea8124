package batch_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func ledgerJob(stumble func(o Order) error) *batch.Job {
	return batch.NewJob("ledger").
		Parameter(batch.Parameter{Name: "discount", Type: core.TypeInt, Default: 0}).
		Step("table", batch.Use("sql", "create table if not exists ledger(id bigint primary key, total bigint not null)")).
		Step("bill", batch.Chunk{
			Size:   1,
			Reader: batch.ReaderOf[Order](NewOrders),
			Processors: []batch.Component{batch.ProcessorOf[Order, Invoice](func(_ context.Context, o Order) (Invoice, error) {
				return Invoice{ID: o.ID, Total: o.Amount}, stumble(o)
			})},
			Writers: []batch.Component{batch.WriterOf[Invoice](NewLedger)},
		}).
		Step("count", batch.Use("sql", batch.Config{"query": "select count(*) as n from ledger where total >= ${params.discount}", "out": batch.Config{"n": "int"}}), batch.With{Expect: "out.n > 0"})
}

func TestAJobInGoGoesOnInAnotherProcess(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		var provider tx.Provider
		fails := true
		stumble := func(o Order) error {
			if o.ID == 3 && fails {
				return errors.New("not today")
			}
			return nil
		}
		first := newApp(t, settingsFor(t, url), batch.Jobs(ledgerJob(stumble)), fx.Populate(&provider))
		request := batch.RunRequest{Name: "ledger", Params: map[string]string{"discount": "0"}}
		failed, err := first.Run(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, core.StatusFailed, failed.Status)
		require.Contains(t, failed.Error, "not today")
		require.Equal(t, [][2]int64{{1, 100}, {2, 0}}, ledger(t, provider))

		fails = false
		second := newApp(t, settingsFor(t, url), batch.Jobs(ledgerJob(stumble)))
		again, err := second.Restart(t.Context(), batch.RestartRequest{Execution: failed.ID})
		require.NoError(t, err)
		completed, err := again.Follow(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, completed.Status, completed.Error)
		require.Equal(t, [][2]int64{{1, 100}, {2, 0}, {3, 300}}, ledger(t, provider))
		steps, err := second.Repository.Steps(t.Context(), completed.ID)
		require.NoError(t, err)
		require.Equal(t, "bill", steps[0].Name, "table is passed")
		require.EqualValues(t, 1, steps[0].Counters.Read, "it goes on at its position")
		exec, err := second.Repository.Execution(t.Context(), completed.ID)
		require.NoError(t, err)
		require.Empty(t, exec.Definition.Path)
		require.Contains(t, exec.Definition.Text, "ledger.bill.reader: \"*batch_test.Orders\"")

		_, err = second.Run(t.Context(), request)
		var complete *ports.InstanceCompleteError
		require.ErrorAs(t, err, &complete)
	})
}

// Rules F4, F4a.
func TestAChangedJobInGoIsJudgedAsAChangedFile(t *testing.T) {
	t.Parallel()
	changed := batch.NewJob("ledger").
		Parameter(batch.Parameter{Name: "discount", Type: core.TypeInt, Default: 0}).
		Step("table", batch.Use("sql", "create table if not exists ledger(id bigint primary key, total bigint not null)")).
		Step("bill", batch.Chunk{
			Reader:     batch.ReaderOf[Order](func() other { return other{NewOrders()} }),
			Processors: []batch.Component{batch.ProcessorOf[Order, Order](func(_ context.Context, o Order) (Order, error) { return o, nil })},
			Writers:    []batch.Component{batch.WriterOf[Order](func(context.Context, []Order) error { return nil })},
		})
	unread := batch.NewJob("ledger").
		Parameter(batch.Parameter{Name: "discount", Type: core.TypeInt, Default: 0}).
		Step("table", batch.Use("sql", "create table if not exists ledger(id bigint primary key, total bigint not null)")).
		Step("bill", batch.Chunk{
			Reader:  batch.ReaderOf[Order](func() other { return other{NewOrders()} }),
			Writers: []batch.Component{batch.WriterOf[Order](func(context.Context, []Order) error { return nil })},
		})
	const before = "the job file has changed since execution 1 in what committed work depends on: "
	for name, c := range map[string]struct {
		job     *batch.Job
		fails   func(Order) error
		refused string
	}{
		"nothing is committed":                            {changed, func(Order) error { return errors.New("never") }, ""},
		"nothing is committed, and the processor is gone": {unread, func(Order) error { return errors.New("never") }, ""},
		"two orders are committed": {changed, func(o Order) error {
			if o.ID == 3 {
				return errors.New("never")
			}
			return nil
		}, before + `job ledger: step bill: chunk.reader: step bill has committed work with reader ledger.bill.reader: go "*batch_test.Orders", and it is "batch_test.other" now; ` +
			`job ledger: step bill: chunk.writer: step bill has committed work with writer ledger.bill.writer: go "*batch_test.Ledger", and it is "batch.writerFunc[github.com/surfin-batch/surfin/pkg/batch_test.Order]" now`},
		"two orders are committed, and the processor is gone": {unread, func(o Order) error {
			if o.ID == 3 {
				return errors.New("never")
			}
			return nil
		}, before + "step bill has committed work, and its recorded definition can no longer be read, so the two cannot be compared: " +
			"job ledger: step bill: chunk.processor: there is no processor ledger.bill.processor (allowed: dedupe, filter, lookup, map, validate)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := testdb.SQLite(t)
			first := newApp(t, settingsFor(t, url), batch.Jobs(ledgerJob(c.fails)))
			failed, err := first.Run(t.Context(), batch.RunRequest{Name: "ledger"})
			require.NoError(t, err)
			require.Equal(t, core.StatusFailed, failed.Status)
			second := newApp(t, settingsFor(t, url), batch.Jobs(c.job))
			again, err := second.Restart(t.Context(), batch.RestartRequest{Execution: failed.ID})
			if c.refused != "" {
				var refused *jobfile.ChangedError
				require.ErrorAs(t, err, &refused)
				require.Empty(t, refused.Diff, "there is no file")
				require.EqualError(t, err, c.refused)
				again, err = second.Restart(t.Context(), batch.RestartRequest{Execution: failed.ID, AcceptChanges: true})
			}
			require.NoError(t, err)
			completed, err := again.Follow(t.Context(), nil)
			require.NoError(t, err)
			require.Equal(t, core.StatusCompleted, completed.Status, completed.Error)
		})
	}
}

type other struct{ *Orders }

func TestAFlowInGoGoesItsWay(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		trail := make(chan string, 100)
		mark := func(name string) batch.Component {
			return batch.TaskletOf(func(_ context.Context, c *batch.StepContribution) error {
				trail <- name
				return nil
			})
		}
		child := batch.NewJob("child").Parameter(batch.Parameter{Name: "n", Type: core.TypeInt}).
			Step("inside", mark("inside"), batch.With{When: "params.n == 4"})
		job := batch.NewJob("flow").
			Parameter(batch.Parameter{Name: "n", Type: core.TypeInt, Default: 4}).
			Step("begin", mark("begin")).
			Decide("which", batch.If("params.n > 3", batch.To("both")), batch.Else(batch.To("small"))).
			Step("small", mark("small"), batch.With{On: batch.On{"COMPLETED": batch.End("SMALL")}}).
			Split("both", []*batch.Flow{batch.NewFlow().Step("left", mark("left")), batch.NewFlow().Step("right", mark("right"))}).
			Child("sub", child, map[string]string{"n": "${params.n}"}).
			Atomic("group", batch.NewFlow().Step("one", mark("one")).Step("two", mark("two"))).
			DecideBy("coin", batch.DeciderOf(func(context.Context, *batch.View) (string, error) { return "TAILS", nil }),
				batch.With{On: batch.On{"HEADS": batch.Fail(""), "TAILS": batch.To("last")}}).
			Step("last", mark("last"), batch.With{Partition: &batch.Partitioned{By: batch.Use("count", 3), Workers: 1}}).
			Finally(batch.NewFlow().Step("tidy", mark("tidy")))
		app := newApp(t, settingsFor(t, url), batch.Jobs(job))
		done, err := app.Run(t.Context(), batch.RunRequest{Name: "flow"})
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, done.Status, done.Error)
		close(trail)
		var names []string
		for name := range trail {
			names = append(names, name)
		}
		require.ElementsMatch(t, []string{"begin", "left", "right", "inside", "one", "two", "last", "last", "last", "tidy"}, names)
	})
}

func TestAJobFileOfAFileSystemGoesOnInAnotherProcess(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		fsys := fstest.MapFS{
			"jobs/all.yaml":  {Data: []byte("job: all\nflow:\n- {step: table, tasklet: {sql: create table t(id bigint)}}\n- {job: part, file: part.yaml}\n")},
			"jobs/part.yaml": {Data: []byte("job: part\nflow: [{step: fill, tasklet: fill}]\n")},
		}
		fails := true
		fill := batch.Tasklet("fill", func() batch.TaskletFunc {
			return func(context.Context, *batch.StepContribution) error {
				if fails {
					return errors.New("empty")
				}
				return nil
			}
		})
		first := newApp(t, settingsFor(t, url), fill)
		failed, err := first.Run(t.Context(), batch.RunRequest{Source: batch.FS(fsys, "jobs/all.yaml")})
		require.NoError(t, err)
		require.Equal(t, core.StatusFailed, failed.Status)
		again, err := newApp(t, settingsFor(t, url), fill).Restart(t.Context(), batch.RestartRequest{Execution: failed.ID})
		require.NoError(t, err, "the history has it")
		failed, err = again.Follow(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusFailed, failed.Status)

		fails = false
		second := newApp(t, settingsFor(t, url), fill, batch.JobFiles(batch.FS(fsys, "jobs/all.yaml")))
		again, err = second.Restart(t.Context(), batch.RestartRequest{Execution: failed.ID})
		require.NoError(t, err)
		completed, err := again.Follow(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, completed.Status, completed.Error)
	})
}

func TestAJobThatIsWrongIsAnErrorOfNew(t *testing.T) {
	t.Parallel()
	_, err := batch.New(t.Context(), settingsFor(t, testdb.SQLite(t)), batch.Jobs(batch.NewJob("a").Step("b", nil)), batch.JobFiles(batch.Bytes("c", []byte("job: c\n"))))
	require.ErrorContains(t, err, "job a: step b: step b has no work")
	require.ErrorContains(t, err, `c:1:1: a job file needs the key "flow"`)
	app := newApp(t, settingsFor(t, testdb.SQLite(t)))
	_, err = app.Run(t.Context(), batch.RunRequest{Name: "nobody"})
	require.ErrorIs(t, err, ports.ErrNoSuchJob)
	_, err = app.Run(t.Context(), batch.RunRequest{Source: batch.Bytes("c", []byte("job: c\n"))})
	require.ErrorContains(t, err, `c:1:1: a job file needs the key "flow"`)
}

func TestAJobInGoSurvivesAKill(t *testing.T) {
	t.Parallel()
	const victim = "SURFIN_TEST_VICTIM"
	if url := os.Getenv(victim); url != "" {
		app := newApp(t, settingsFor(t, url), batch.Jobs(ledgerJob(func(o Order) error {
			if o.ID == 3 {
				return syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
			return nil
		})))
		_, err := app.Run(t.Context(), batch.RunRequest{Name: "ledger"})
		t.Fatal("it lives", err)
	}
	testdb.Each(t, func(t *testing.T, url string) {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAJobInGoSurvivesAKill$")
		child.Env = append(os.Environ(), victim+"="+url)
		out, err := child.CombinedOutput()
		require.ErrorContains(t, err, "signal: killed", "%s", out)

		var provider tx.Provider
		app := newApp(t, settingsFor(t, url), batch.Jobs(ledgerJob(func(Order) error { return nil })), fx.Populate(&provider))
		done, err := app.Run(t.Context(), batch.RunRequest{Name: "ledger"})
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, done.Status, done.Error)
		require.Equal(t, 2, done.Attempt)
		require.Equal(t, [][2]int64{{1, 100}, {2, 0}, {3, 300}}, ledger(t, provider))
		steps, err := app.Repository.Steps(t.Context(), done.ID)
		require.NoError(t, err)
		require.EqualValues(t, 1, steps[0].Counters.Read)
	})
}
