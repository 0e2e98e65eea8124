package batch_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type letters struct{ sent chan string }

type mail struct{ letters *letters }

func (m *mail) Execute(_ context.Context, t task.Task) (task.Outcome, error) {
	var to string
	if err := t.Decode(&to); err != nil {
		return task.Outcome{}, err
	}
	if to == "nobody" {
		return task.Failure("no such address"), nil
	}
	m.letters.sent <- to
	return task.Success(), nil
}

func newMail(l *letters) *mail { return &mail{l} }

func never() task.DeciderFunc {
	return func(task.Case) task.Decision { return task.MarkDead("never again") }
}

func TestAnApplicationExecutesTasksOfItsOwn(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s, err := settings.Load(settings.Source{Dir: t.TempDir(), Environ: []string{"DATABASE_URL=" + url, "SURFIN_AUTO_MIGRATE=true"}})
		require.NoError(t, err)
		box := &letters{make(chan string, 10)}
		app, err := batch.New(t.Context(), s, fx.Supply(box), batch.Handler("mail", newMail), batch.TaskDecider("never", never))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, app.Close(context.WithoutCancel(t.Context()))) })
		require.NoError(t, app.Prepare(t.Context()))
		stop, ended := make(chan struct{}), make(chan error, 1)
		go func() { ended <- app.Work(t.Context(), stop, runtime.Options{Poll: 20 * time.Millisecond, Slots: 2}) }()
		accepted, err := app.Tasks.Submit(t.Context(), task.Submission{
			Type: "mail", Decider: "never", Tasks: []task.Spec{{Payload: []byte(`"me"`)}, {Payload: []byte(`"nobody"`)}},
		})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		g, err := app.Tasks.Wait(ctx, accepted.Group)
		require.NoError(t, err)
		require.Equal(t, []int{1, 1}, []int{g.Succeeded, g.Failed})
		require.Equal(t, "me", <-box.sent)
		close(stop)
		require.NoError(t, <-ended)
	})
}

func TestAWorkerRunsJobsAsTasks(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s, err := settings.Load(settings.Source{Dir: t.TempDir(), Environ: []string{"DATABASE_URL=" + url, "SURFIN_AUTO_MIGRATE=true"}})
		require.NoError(t, err)
		job := batch.NewJob("ledger").Step("table", batch.Use("sql", "create table lines(id bigint)"))
		var provider tx.Provider
		app, err := batch.New(t.Context(), s, batch.Jobs(job), fx.Populate(&provider))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, app.Close(context.WithoutCancel(t.Context()))) })
		require.NoError(t, app.Prepare(t.Context()))
		stop, ended := make(chan struct{}), make(chan error, 1)
		go func() { ended <- app.Work(t.Context(), stop, runtime.Options{Poll: 20 * time.Millisecond}) }()
		accepted, err := app.Tasks.Submit(t.Context(), task.Submission{Tasks: []task.Spec{{Type: task.TypeJob, Payload: []byte(`{"job": "ledger"}`)}}})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		g, err := app.Tasks.Wait(ctx, accepted.Group)
		require.NoError(t, err)
		list, err := app.Tasks.Attempts(t.Context(), accepted.Tasks[0])
		require.NoError(t, err)
		require.Equal(t, task.GroupCompleted, g.State, "%+v", list)
		require.JSONEq(t, `{"job_execution": 1, "status": "COMPLETED", "exit_code": "COMPLETED"}`, string(list[0].Outcome.Artifacts[0].JSON))
		close(stop)
		require.NoError(t, <-ended)
		purgedByLeader(t, app, provider, accepted.Group)
	})
}

// purgedByLeader checks rule PU1: the leader of the workers deletes work that has been over for longer
// than the setting, and nothing before that.
func purgedByLeader(t *testing.T, app *batch.App, provider tx.Provider, group task.GroupID) {
	t.Helper()
	acted, err := app.Tasks.Set(t.Context(), taskports.HistoryRetention, "1", runtime.By{Actor: "me"})
	require.NoError(t, err)
	require.Equal(t, "applied", acted.Answer)
	db, err := provider.Database(tx.Default)
	require.NoError(t, err)
	earlier := map[tx.Dialect]string{tx.SQLite: " - 172800000000", tx.Postgres: " - interval '2 days'"}[db.Dialect()]
	for _, column := range []string{"job_execution.ended_at", "task_group.created_at", "task.updated_at"} {
		table, column, _ := strings.Cut(column, ".")
		_, err := db.Conn().ExecContext(t.Context(), "UPDATE surfin_"+table+" SET "+column+" = "+column+earlier)
		require.NoError(t, err)
	}
	young, err := app.Run(t.Context(), batch.RunRequest{Name: "ledger", Again: true})
	require.NoError(t, err)
	working(t, app)
	require.Eventually(t, func() bool {
		_, gone := app.Tasks.Group(t.Context(), group)
		return errors.Is(gone, core.ErrNotFound)
	}, time.Minute, 20*time.Millisecond, "the leader does not purge")
	_, err = app.Repository.Execution(t.Context(), 1)
	require.ErrorIs(t, err, core.ErrNotFound, "executions go before the tasks that ran them")
	_, err = app.Repository.Execution(t.Context(), young.ID)
	require.NoError(t, err, "it is young")
}

func TestAHandlerThatCannotBeMadeIsAnErrorAtStart(t *testing.T) {
	t.Parallel()
	s, err := settings.Load(settings.Source{Dir: t.TempDir(), Environ: []string{"DATABASE_URL=" + testdb.SQLite(t)}})
	require.NoError(t, err)
	for want, o := range map[string]fx.Option{
		`handler of tasks "mail" needs a *batch_test.letters`:      batch.Handler("mail", newMail),
		`the constructor takes a batch_test.options`:               batch.Handler("mail", func(options) *mail { return nil }),
		`which is not a task.Handler`:                              batch.Handler("mail", func() int { return 1 }),
		`handler of tasks "shell": the name is used twice`:         batch.Handler("shell", func() *mail { return &mail{} }),
		`decider of tasks "x": the constructor returns int, which`: batch.TaskDecider("x", func() int { return 1 }),
	} {
		_, err := batch.New(t.Context(), s, o)
		require.ErrorContains(t, err, want)
	}
	app, err := batch.New(t.Context(), s, batch.Handler("mail", func() (*mail, error) { return nil, errors.New("no server") }))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, app.Close(context.WithoutCancel(t.Context()))) })
	require.ErrorContains(t, app.Work(t.Context(), nil, runtime.Options{}), `handler of tasks of type "mail": no server`)
}

type options struct{ Server string }
