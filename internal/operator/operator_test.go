package operator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type desk struct {
	*testing.T
	e *testengine.Engine
	*operator.Service
	elsewhere *operator.Service // of another process
	load      *model.Job
	work      func(ctx context.Context) error // of the step
	sawMu     sync.Mutex
	saw       []core.Parameters
}

func newDesk(t *testing.T, url string, change ...func(*operator.Config)) *desk {
	d := &desk{T: t, e: testengine.New(t, url)}
	d.load = testengine.Job("load", d.e.Tasklet("work", tx.Attr{Propagation: tx.NotSupported}, func(ctx context.Context, c *core.StepContribution) error {
		d.sawMu.Lock()
		d.saw = append(d.saw, c.Params)
		d.sawMu.Unlock()
		if d.work == nil {
			return nil
		}
		return d.work(ctx)
	}))
	d.load.Parameters = []core.ParameterSpec{
		{Name: "run", Type: core.TypeInt, Identifying: true, Default: int64(1)}, {Name: "input", Type: core.TypeString, Default: "in.csv"},
	}
	d.load.Incrementer = job.Count("run")
	config := operator.Config{
		Repository: d.e.Repository.Ports(), Launcher: d.e.Launcher, Actor: "ada",
		Jobs: func(_ context.Context, name string) (*model.Job, error) {
			if name != "load" {
				return nil, fmt.Errorf("%s: %w", name, ports.ErrNoSuchJob)
			}
			return d.load, nil
		},
	}
	for _, c := range change {
		c(&config)
	}
	var err error
	d.Service, err = operator.New(config)
	require.NoError(t, err)
	d.elsewhere, err = operator.New(config)
	require.NoError(t, err)
	return d
}

func (d *desk) start(name string, params core.Parameters) (*operator.Running, error) {
	return d.Start(d.Context(), operator.RunRequest{Name: name, Exactly: &params})
}

func (d *desk) next(given map[string]string) (*operator.Running, error) {
	return d.Start(d.Context(), operator.RunRequest{Name: "load", Params: given})
}

func (d *desk) nextParameters(name string, given map[string]string) (core.Parameters, error) {
	choice, err := d.Choose(d.Context(), operator.RunRequest{Name: name, Params: given, Next: true})
	if err != nil {
		return core.Parameters{}, err
	}
	return choice.Params.Parameters, nil
}

func (d *desk) restart(id core.JobExecutionID) (*operator.Running, error) {
	return d.Restart(d.Context(), operator.RestartRequest{Execution: id})
}

func (d *desk) wait(r *operator.Running, err error) *operator.Execution {
	d.Helper()
	require.NoError(d, err)
	exec, err := r.Wait()
	require.NoError(d, err)
	return exec
}

func (d *desk) run(n int64) core.Parameters { return parameters(d.T, intParameter("run", n)) }

func parameters(t *testing.T, list ...core.Parameter) core.Parameters {
	t.Helper()
	p, err := core.NewParameters(list...)
	require.NoError(t, err)
	return p
}

func intParameter(name string, v int64) core.Parameter {
	return core.Parameter{Name: name, Type: core.TypeInt, Value: v, Identifying: true}
}

func text(name, v string) core.Parameter {
	return core.Parameter{Name: name, Type: core.TypeString, Value: v}
}

func refusalOf(t *testing.T, err error) *operator.Refusal {
	t.Helper()
	var r *operator.Refusal
	require.ErrorAs(t, err, &r)
	return r
}

func failing(context.Context) error { return errors.New("told to fail") }

func TestARestartIsOfTheNewestExecutionWithItsParameters(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		d := newDesk(t, url)
		d.work = failing
		params := parameters(t, intParameter("run", 3), text("input", "other.csv"))
		first := d.wait(d.start("load", params))
		require.Equal(t, core.StatusFailed, first.Status)
		second := d.wait(d.restart(first.ID))
		require.Equal(t, first.InstanceID, second.InstanceID)
		require.Equal(t, params, second.Params.Parameters)
		_, err := d.restart(first.ID)
		require.ErrorIs(t, err, ports.ErrNotMostRecent)
		require.ErrorContains(t, err, fmt.Sprintf("execution %d (FAILED)", second.ID))

		d.work = nil
		third := d.wait(d.restart(second.ID))
		require.Equal(t, core.StatusCompleted, third.Status)
		require.Equal(t, []core.Parameters{params, params, params}, d.saw)
		_, err = d.restart(third.ID)
		var complete *ports.InstanceCompleteError
		require.ErrorAs(t, err, &complete)
		require.Equal(t, third.ID, complete.Execution.ID)
	})
}

func TestARestartIsRefusedWithItsReason(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		d, ctx := newDesk(t, url), t.Context()
		_, err := d.restart(99)
		require.ErrorIs(t, err, core.ErrNotFound)
		d.work = failing
		exec := d.wait(d.start("load", d.run(1)))
		d.load.Restartable = false
		_, err = d.restart(exec.ID)
		require.ErrorIs(t, err, ports.ErrNotRestartable)
		d.load.Restartable = true

		d.e.Exec("UPDATE surfin_job_execution SET status = 'UNKNOWN'")
		_, err = d.restart(exec.ID)
		require.ErrorIs(t, err, ports.ErrUnknownStatus)
		abandoned, err := d.Abandon(ctx, exec.ID)
		require.NoError(t, err)
		require.Equal(t, core.StatusAbandoned, abandoned.Status)
		_, err = d.restart(exec.ID)
		require.ErrorIs(t, err, ports.ErrAbandoned)
		d.e.Exec("UPDATE surfin_job_execution SET status = 'FAILED', job_name = 'gone'")
		_, err = d.restart(exec.ID)
		require.ErrorIs(t, err, ports.ErrNoSuchJob)
		_, err = d.start("gone", core.Parameters{})
		require.ErrorIs(t, err, ports.ErrNoSuchJob)
	})
}

func TestTheNextInstanceFollowsWhenTheNewestHasCompleted(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		d, ctx := newDesk(t, url), t.Context()
		first := d.wait(d.next(map[string]string{"input": "a.csv"}))
		want := parameters(t, intParameter("run", 1), text("input", "a.csv"))
		require.Equal(t, want, first.Params.Parameters)

		d.work = failing
		second := d.wait(d.next(nil))
		want = parameters(t, intParameter("run", 2), text("input", "in.csv")) // the default
		require.Equal(t, want, second.Params.Parameters)
		require.Equal(t, core.StatusFailed, second.Status)

		third := d.wait(d.next(map[string]string{"input": "b.csv"}))
		require.Equal(t, second.InstanceID, third.InstanceID, "the incomplete instance goes on")
		input, _ := third.Params.Get("input")
		require.Equal(t, "b.csv", input.Value, "with what is given")
		params, err := d.nextParameters("load", nil)
		require.NoError(t, err)
		require.Equal(t, parameters(t, intParameter("run", 3), text("input", "in.csv")), params)
		d.load.Inherit = []string{"input"}
		params, err = d.nextParameters("load", nil)
		require.NoError(t, err)
		require.Equal(t, parameters(t, intParameter("run", 3), text("input", "b.csv")), params)

		d.work = nil
		other := d.wait(d.next(map[string]string{"run": "9"}))
		require.NotEqual(t, second.InstanceID, other.InstanceID, "another instance is named")
		next := d.wait(d.next(nil))
		run, _ := next.Params.Get("run")
		require.Equal(t, int64(10), run.Value)

		d.work = failing
		failed := d.wait(d.next(nil))
		_, err = d.Abandon(ctx, failed.ID)
		require.NoError(t, err)
		d.work = nil
		after := d.wait(d.next(nil))
		require.NotEqual(t, failed.InstanceID, after.InstanceID, "an abandoned one does not")
	})
}

func TestTheNextInstanceIsRefusedWithItsReason(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		d := newDesk(t, url)
		var wrong *ports.ParameterError
		_, err := d.next(map[string]string{"inptu": "x"})
		require.ErrorAs(t, err, &wrong)
		require.ErrorContains(t, err, "input, run")
		_, err = d.nextParameters("load", map[string]string{"run": "foo"})
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, "run", wrong.Name)
		d.load.Parameters[1].Default, d.load.Parameters[1].Required = nil, true
		_, err = d.nextParameters("load", nil)
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, "input", wrong.Name)
		_, err = d.nextParameters("gone", nil)
		require.ErrorIs(t, err, ports.ErrNoSuchJob)
		d.load.Incrementer = nil
		_, err = d.nextParameters("load", nil)
		require.ErrorIs(t, err, ports.ErrNoIncrementer)
		require.ErrorContains(t, err, "job load")
	})
}

func TestAParameterThatTheJobHasNoMoreIsNotCarriedOn(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		d := newDesk(t, url)
		d.wait(d.start("load", parameters(t, intParameter("run", 1), text("old", "x"), intParameter("surfin.again", 2))))
		params, err := d.nextParameters("load", nil)
		require.NoError(t, err)
		require.Equal(t, parameters(t, intParameter("run", 2), text("input", "in.csv")), params)
		d.load.Parameters = nil // Go code without declarations has the count nevertheless
		params, err = d.nextParameters("load", nil)
		require.NoError(t, err)
		run, _ := params.Get("run")
		require.Equal(t, int64(2), run.Value)
	})
}

func TestAStopFromElsewhereStandsThoughTheOwnerCannotBeTold(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		var told []core.JobExecutionID
		fails := errors.New("no route")
		d, ctx := newDesk(t, url, func(c *operator.Config) {
			c.Notify = func(_ context.Context, exec core.JobExecution) error {
				told = append(told, exec.ID)
				return fails
			}
		}), t.Context()
		started, release := make(chan struct{}), make(chan struct{})
		d.work = func(context.Context) error { close(started); <-release; return core.ErrStopped }
		running, err := d.start("load", d.run(1))
		require.NoError(t, err)
		<-started
		exec, err := d.elsewhere.Stop(ctx, running.Execution().ID)
		require.ErrorIs(t, err, fails)
		require.Equal(t, core.StatusStopping, exec.Status)
		require.Equal(t, []core.JobExecutionID{exec.ID}, told)
		close(release)
		require.Equal(t, core.StatusStopped, d.wait(running, nil).Status)

		exec, err = d.elsewhere.Stop(ctx, exec.ID)
		require.Equal(t, refusal.Over, refusalOf(t, err).Reason)
		require.Equal(t, core.StatusStopped, exec.Status)
		require.Len(t, told, 1)
		_, err = d.Stop(ctx, 99)
		require.ErrorIs(t, err, core.ErrNotFound)
	})
}

func TestAServiceRecoversPurgesAndDeletesInItsName(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		swept, sweeps := 0, error(nil)
		d, ctx := newDesk(t, url, func(c *operator.Config) {
			c.Dead = func(o core.Owner) bool { return o.Host == "lost" }
			c.Provider = twoDatabases{c.Provider}
			c.Checkpoints = collector(func() error { swept++; return sweeps })
		}), t.Context()
		launched, err := d.e.Repository.Launch(ctx, ports.LaunchRequest{JobName: "load", Params: d.run(1), Restartable: true, Owner: core.Owner{Host: "lost"}, Lease: time.Hour})
		require.NoError(t, err)
		_, err = d.Abandon(ctx, launched.Execution.ID)
		var running *ports.AlreadyRunningError
		require.ErrorAs(t, err, &running)
		ended, err := d.Recover(ctx)
		require.NoError(t, err)
		require.Len(t, ended, 1)
		again := d.wait(d.restart(ended[0].ID))
		require.Equal(t, core.StatusCompleted, again.Status)
		_, err = d.Abandon(ctx, again.ID)
		require.ErrorAs(t, err, &running, "there is nothing to abandon")

		audit, err := d.e.Repository.Audit(ctx, ended[0].ID)
		require.NoError(t, err)
		require.Equal(t, "ada", audit[len(audit)-1].Actor)
		purged, err := d.Purge(ctx, operator.PurgeRequest{EndedBefore: time.Now().Add(time.Hour), DryRun: true})
		require.NoError(t, err)
		require.Equal(t, operator.Purged{Instances: 1, Executions: 2, Steps: 1, DryRun: true}, purged)
		require.Zero(t, swept, "a dry run")
		purged, err = d.Purge(ctx, operator.PurgeRequest{Instance: again.InstanceID})
		require.NoError(t, err)
		require.Equal(t, operator.Purged{Instances: 1, Executions: 2, Steps: 1}, purged)
		_, err = d.Purge(ctx, operator.PurgeRequest{Instance: again.InstanceID})
		require.ErrorIs(t, err, core.ErrNotFound)
		require.Equal(t, refusal.NotFound, refusalOf(t, err).Reason)
		require.Equal(t, 1, swept)
		d.wait(d.start("load", d.run(2)))
		sweeps = errors.New("no connection")
		purged, err = d.Purge(ctx, operator.PurgeRequest{EndedBefore: time.Now().Add(time.Hour)})
		require.ErrorIs(t, err, sweeps)
		require.Equal(t, int64(1), purged.Instances)
		require.Equal(t, 2, swept)
	})
}

func TestAServiceWithoutALauncherStartsNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t, testdb.SQLite(t), func(c *operator.Config) { c.Launcher, c.Actor, c.Dead = nil, "", nil })
	_, err := d.start("load", d.run(1))
	require.ErrorContains(t, err, "no launcher")
	_, err = operator.New(operator.Config{})
	require.ErrorContains(t, err, "repository")
	o, err := operator.New(operator.Config{Repository: d.e.Repository.Ports()})
	require.NoError(t, err)
	_, err = o.Start(t.Context(), operator.RunRequest{Name: "load"})
	require.ErrorIs(t, err, ports.ErrNoSuchJob)
}

type twoDatabases struct{ tx.Provider }

func (twoDatabases) Names() []string { return []string{tx.Default, "other"} }

type collector func() error

func (c collector) Migrate(context.Context, string) error { return nil }
func (c collector) HasCommitted(context.Context, string, core.JobInstanceID, string, core.StepExecutionID) (bool, error) {
	return false, nil
}
func (c collector) CheckSchema(context.Context, string) error                    { return nil }
func (c collector) CollectGarbage(_ context.Context, name string) (int64, error) { return 0, c() }

// A service starts the next instance of a job, and continues the one that has not completed.
func ExampleService() {
	ctx := context.Background()
	_, db, done := testexample.SQLite()
	defer done()
	r := repository.New(db, repository.Options{})
	testexample.Check(r.Migrate(ctx))
	launcher := testexample.Must(job.NewLauncher(job.Config{
		Repository: r.Ports(), Executor: step.NewSimpleStepExecutor(r, db.Name(), nil),
	}))
	fails := true
	report := testexample.Must(step.NewTasklet(step.TaskletConfig{
		Name: "report", Database: db,
		Assemble: func(context.Context, *model.StepRun) (core.Tasklet, error) {
			return core.TaskletFunc(func(context.Context, *core.StepContribution) error {
				if fails {
					return errors.New("no paper")
				}
				return nil
			}), nil
		},
	}))
	daily := &model.Job{
		Name: "daily", Restartable: true, Incrementer: job.NextDay("day"),
		Parameters: []core.ParameterSpec{{Name: "day", Type: core.TypeDate, Required: true, Identifying: true}},
		Flow:       model.Flow{Elements: []model.Element{&model.StepElement{Step: report}}},
	}
	service := testexample.Must(operator.New(operator.Config{
		Repository: r.Ports(), Launcher: launcher, Actor: "ada",
		Jobs: func(_ context.Context, name string) (*model.Job, error) {
			if name != daily.Name {
				return nil, ports.ErrNoSuchJob
			}
			return daily, nil
		},
	}))
	show := func(running *operator.Running, err error) core.JobExecutionID {
		testexample.Check(err)
		exec := testexample.Must(running.Wait())
		day, _ := exec.Params.Get("day")
		fmt.Println(day.Value, exec.Status)
		return exec.ID
	}
	id := show(service.Start(ctx, operator.RunRequest{Job: daily, Params: map[string]string{"day": "2026-02-28"}}))
	fails = false
	show(service.Restart(ctx, operator.RestartRequest{Execution: id}))
	show(service.Start(ctx, operator.RunRequest{Name: "daily"}))
	_, err := service.Restart(ctx, operator.RestartRequest{Execution: id})
	fmt.Println(err)
	// Output:
	// 2026-02-28 FAILED
	// 2026-02-28 COMPLETED
	// 2026-03-01 COMPLETED
	// job daily, execution 1: a later execution of the instance exists: execution 2 (COMPLETED)
}

func TestARedriveIsNoNewestInstance(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		d := newDesk(t, url, func(c *operator.Config) { c.Dead = func(o core.Owner) bool { return o.Host == "lost" } })
		first := d.wait(d.start("load", d.run(4)))
		mark := core.Parameter{Name: "run.redrive", Type: core.TypeString, Value: "1.work.1", Identifying: true}
		_, err := d.e.Repository.Launch(t.Context(), ports.LaunchRequest{
			JobName: "load", Params: parameters(t, intParameter("run", 9), mark), Restartable: true, RedriveOf: first.ID,
			Owner: core.Owner{Host: "lost"}, Lease: time.Hour,
		})
		require.NoError(t, err)
		ended, err := d.Recover(t.Context())
		require.NoError(t, err)
		require.Equal(t, []operator.Action{{Kind: refusal.ActRedrive, Execution: first.ID, Step: "work"}}, ended[0].Actions)

		params, err := d.nextParameters("load", nil)
		require.NoError(t, err)
		run, _ := params.Get("run")
		require.Equal(t, int64(5), run.Value)
		_, err = d.restart(ended[0].ID)
		require.Equal(t, refusal.Redrive, refusalOf(t, err).Reason)
	})
}

func TestAnOlderAttemptIsNotAbandoned(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		d, ctx := newDesk(t, url), t.Context()
		d.work = failing
		first := d.wait(d.start("load", d.run(1)))
		second := d.wait(d.restart(first.ID))
		_, err := d.Abandon(ctx, first.ID)
		r := refusalOf(t, err)
		require.Equal(t, refusal.NotNewest, r.Reason)
		require.Contains(t, r.Actions, operator.Action{Kind: refusal.ActShow, Execution: second.ID, Status: core.StatusFailed})
		_, err = d.Abandon(ctx, second.ID)
		require.NoError(t, err)
	})
}

func TestAnswersMarshalWithoutWhatIsNobodysBusiness(t *testing.T) {
	t.Parallel()
	d, ctx := newDesk(t, testdb.SQLite(t)), t.Context()
	launched, err := d.e.Repository.Launch(ctx, ports.LaunchRequest{
		JobName: "load", Params: d.run(1), Restartable: true, Lease: time.Hour, Definition: core.Definition{Text: "job: secret", Hash: "h"},
		Owner: core.Owner{Host: "elsewhere", PID: 7, Nonce: "nonce"},
	})
	require.NoError(t, err)
	stopping, err := d.Stop(ctx, launched.Execution.ID)
	require.NoError(t, err)
	_, err = d.start("load", d.run(1))
	for _, answer := range []any{stopping, refusalOf(t, err)} {
		text, err := json.Marshal(answer)
		require.NoError(t, err)
		require.NotContains(t, string(text), "nonce")
		require.NotContains(t, string(text), "secret")
	}
	text, err := json.Marshal(refusalOf(t, err))
	require.NoError(t, err)
	require.Contains(t, string(text), `{"reason":"running","message":"job load is already running: execution 1, owner elsewhere (process 7), lease until `)
	require.Contains(t, string(text), `"actions":[{"kind":"show","execution":1,"status":"STARTED"},{"kind":"stop","execution":1},{"kind":"recover"}]}`)
}
