package job_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/internal/testexample"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/job"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// desk is an operator over an engine with one job, "load", of one step.
type desk struct {
	*testing.T
	e *testengine.Engine
	*job.Operator
	load *core.Job
	work func(ctx context.Context) error // of the step
	saw  []core.Parameters
}

func newDesk(t *testing.T, url string, change ...func(*job.OperatorConfig)) *desk {
	d := &desk{T: t, e: testengine.New(t, url)}
	d.load = testengine.Job("load", d.e.Tasklet("work", tx.Attr{Propagation: tx.NotSupported}, func(ctx context.Context, c *core.StepContribution) error {
		d.saw = append(d.saw, c.Params)
		if d.work == nil {
			return nil
		}
		return d.work(ctx)
	}))
	d.load.Parameters = []core.ParameterSpec{
		{Name: "run", Type: core.TypeInt, Identifying: true, Default: int64(1)}, {Name: "input", Type: core.TypeString, Default: "in.csv"},
	}
	d.load.Incrementer = job.Count("run")
	config := job.OperatorConfig{
		Repository: d.e.Repository, Launcher: d.e.Launcher, Actor: "ada",
		Jobs: func(_ context.Context, name string) (*core.Job, error) {
			if name != "load" {
				return nil, fmt.Errorf("%s: %w", name, core.ErrNoSuchJob)
			}
			return d.load, nil
		},
	}
	for _, c := range change {
		c(&config)
	}
	var err error
	d.Operator, err = job.NewOperator(config)
	require.NoError(t, err)
	return d
}

func (d *desk) wait(r *job.Running, err error) *core.JobExecution {
	d.Helper()
	require.NoError(d, err)
	exec, err := r.Wait()
	require.NoError(d, err)
	return exec
}

func (d *desk) run(n int64) core.Parameters { return parameters(d.T, intParameter("run", n)) }

func failing(context.Context) error { return errors.New("told to fail") }

func TestARestartIsOfTheNewestExecutionWithItsParameters(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		d, ctx := newDesk(t, url), t.Context()
		d.work = failing
		params := parameters(t, intParameter("run", 3), text("input", "other.csv"))
		first := d.wait(d.Start(ctx, "load", params))
		require.Equal(t, core.StatusFailed, first.Status)
		second := d.wait(d.Restart(ctx, first.ID))
		require.Equal(t, first.InstanceID, second.InstanceID)
		require.Equal(t, params, second.Params)
		_, err := d.Restart(ctx, first.ID)
		require.ErrorIs(t, err, core.ErrNotMostRecent)
		require.ErrorContains(t, err, fmt.Sprintf("execution %d (FAILED)", second.ID))

		d.work = nil
		third := d.wait(d.Restart(ctx, second.ID))
		require.Equal(t, core.StatusCompleted, third.Status)
		require.Equal(t, []core.Parameters{params, params, params}, d.saw)
		_, err = d.Restart(ctx, third.ID)
		var complete *core.InstanceCompleteError
		require.ErrorAs(t, err, &complete)
		require.Equal(t, third.ID, complete.Execution.ID)
	})
}

func TestARestartIsRefusedWithItsReason(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		d, ctx := newDesk(t, url), t.Context()
		_, err := d.Restart(ctx, 99)
		require.ErrorIs(t, err, core.ErrNotFound)
		d.work = failing
		exec := d.wait(d.Start(ctx, "load", d.run(1)))
		d.load.Restartable = false
		_, err = d.Restart(ctx, exec.ID)
		require.ErrorIs(t, err, core.ErrNotRestartable)
		d.load.Restartable, d.load.RedriveOf = true, 7
		_, err = d.Restart(ctx, exec.ID)
		require.ErrorIs(t, err, core.ErrNotRestartable)
		require.ErrorContains(t, err, "redrives")
		d.load.RedriveOf = 0

		d.e.Exec("UPDATE surfin_job_execution SET status = 'UNKNOWN'")
		_, err = d.Restart(ctx, exec.ID)
		require.ErrorIs(t, err, core.ErrUnknownStatus)
		abandoned, err := d.Abandon(ctx, exec.ID)
		require.NoError(t, err)
		require.Equal(t, core.StatusAbandoned, abandoned.Status)
		_, err = d.Restart(ctx, exec.ID)
		require.ErrorIs(t, err, core.ErrAbandoned)
		d.e.Exec("UPDATE surfin_job_execution SET status = 'FAILED', job_name = 'gone'")
		_, err = d.Restart(ctx, exec.ID)
		require.ErrorIs(t, err, core.ErrNoSuchJob)
		_, err = d.Start(ctx, "gone", core.Parameters{})
		require.ErrorIs(t, err, core.ErrNoSuchJob)
	})
}

func TestTheNextInstanceFollowsWhenTheNewestHasCompleted(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		d, ctx := newDesk(t, url), t.Context()
		first := d.wait(d.StartNext(ctx, "load", map[string]string{"input": "a.csv"}))
		want := parameters(t, intParameter("run", 1), text("input", "a.csv"))
		require.Equal(t, want, first.Params)

		d.work = failing
		second := d.wait(d.StartNext(ctx, "load", nil))
		want = parameters(t, intParameter("run", 2), text("input", "a.csv"))
		require.Equal(t, want, second.Params)
		require.Equal(t, core.StatusFailed, second.Status)

		third := d.wait(d.StartNext(ctx, "load", map[string]string{"input": "b.csv"}))
		require.Equal(t, second.InstanceID, third.InstanceID, "the incomplete instance goes on")
		input, _ := third.Params.Get("input")
		require.Equal(t, "b.csv", input.Value, "with what is given")
		params, err := d.NextParameters(ctx, "load", nil)
		require.NoError(t, err)
		require.Equal(t, parameters(t, intParameter("run", 3), text("input", "b.csv")), params)

		d.work = nil
		other := d.wait(d.StartNext(ctx, "load", map[string]string{"run": "9"}))
		require.NotEqual(t, second.InstanceID, other.InstanceID, "another instance is named")
		next := d.wait(d.StartNext(ctx, "load", nil))
		run, _ := next.Params.Get("run")
		require.Equal(t, int64(10), run.Value)

		d.work = failing
		failed := d.wait(d.StartNext(ctx, "load", nil))
		_, err = d.Abandon(ctx, failed.ID)
		require.NoError(t, err)
		d.work = nil
		after := d.wait(d.StartNext(ctx, "load", nil))
		require.NotEqual(t, failed.InstanceID, after.InstanceID, "an abandoned one does not")
	})
}

func TestTheNextInstanceIsRefusedWithItsReason(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		d, ctx := newDesk(t, url), t.Context()
		var wrong *core.ParameterError
		_, err := d.StartNext(ctx, "load", map[string]string{"inptu": "x"})
		require.ErrorAs(t, err, &wrong)
		require.ErrorContains(t, err, "input, run")
		_, err = d.NextParameters(ctx, "load", map[string]string{"run": "foo"})
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, "run", wrong.Name)
		d.load.Parameters[1].Default, d.load.Parameters[1].Required = nil, true
		_, err = d.NextParameters(ctx, "load", nil)
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, "input", wrong.Name)
		_, err = d.NextParameters(ctx, "gone", nil)
		require.ErrorIs(t, err, core.ErrNoSuchJob)
		d.load.Incrementer = nil
		_, err = d.StartNext(ctx, "load", nil)
		require.ErrorIs(t, err, core.ErrNoIncrementer)
		require.ErrorContains(t, err, "job load")
	})
}

func TestAParameterThatTheJobHasNoMoreIsNotCarriedOn(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		d, ctx := newDesk(t, url), t.Context()
		d.wait(d.Start(ctx, "load", parameters(t, intParameter("run", 1), text("old", "x"), intParameter("surfin.again", 2))))
		params, err := d.NextParameters(ctx, "load", nil)
		require.NoError(t, err)
		require.Equal(t, parameters(t, intParameter("run", 2), text("input", "in.csv")), params)
		d.load.Parameters = nil // Go code that declares nothing has the count all the same
		params, err = d.NextParameters(ctx, "load", nil)
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
		d, ctx := newDesk(t, url, func(c *job.OperatorConfig) {
			c.Notify = func(_ context.Context, exec core.JobExecution) error {
				told = append(told, exec.ID)
				return fails
			}
		}), t.Context()
		started, release := make(chan struct{}), make(chan struct{})
		d.work = func(context.Context) error { close(started); <-release; return core.ErrStopped }
		running, err := d.Start(ctx, "load", d.run(1))
		require.NoError(t, err)
		<-started
		exec, err := d.Stop(ctx, running.Execution().ID)
		require.ErrorIs(t, err, fails)
		require.Equal(t, core.StatusStopping, exec.Status)
		require.True(t, exec.StopRequested)
		require.Equal(t, []core.JobExecutionID{exec.ID}, told)
		close(release)
		require.Equal(t, core.StatusStopped, d.wait(running, nil).Status)

		exec, err = d.Stop(ctx, exec.ID)
		require.NoError(t, err, "it is over")
		require.Equal(t, core.StatusStopped, exec.Status)
		require.Len(t, told, 1)
		_, err = d.Stop(ctx, 99)
		require.ErrorIs(t, err, core.ErrNotFound)
	})
}

func TestAnOperatorRecoversPurgesAndDeletesInItsName(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		swept, sweeps := 0, error(nil)
		d, ctx := newDesk(t, url, func(c *job.OperatorConfig) {
			c.Dead = func(o core.Owner) bool { return o.Host == "lost" }
			c.Sweep = func(context.Context) error { swept++; return sweeps }
		}), t.Context()
		launched, err := d.e.Repository.Launch(ctx, core.LaunchRequest{JobName: "load", Params: d.run(1), Restartable: true, Owner: core.Owner{Host: "lost"}, Lease: time.Hour})
		require.NoError(t, err)
		_, err = d.Abandon(ctx, launched.Execution.ID)
		var running *core.AlreadyRunningError
		require.ErrorAs(t, err, &running)
		ended, err := d.Recover(ctx)
		require.NoError(t, err)
		require.Len(t, ended, 1)
		again := d.wait(d.Restart(ctx, ended[0].ID))
		require.Equal(t, core.StatusCompleted, again.Status)
		_, err = d.Abandon(ctx, again.ID)
		require.ErrorAs(t, err, &running, "there is nothing to abandon")

		audit, err := d.e.Repository.Audit(ctx, ended[0].ID)
		require.NoError(t, err)
		require.Equal(t, "ada", audit[len(audit)-1].Actor)
		purged, err := d.Purge(ctx, core.PurgeFilter{EndedBefore: time.Now().Add(time.Hour), DryRun: true})
		require.NoError(t, err)
		require.Equal(t, core.Purged{Instances: 1, Executions: 2, Steps: 1}, purged)
		require.Zero(t, swept, "a dry run")
		require.NoError(t, d.DeleteInstance(ctx, again.InstanceID))
		require.ErrorIs(t, d.DeleteInstance(ctx, again.InstanceID), core.ErrNotFound)
		require.Equal(t, 1, swept)
		d.wait(d.Start(ctx, "load", d.run(2)))
		sweeps = errors.New("no connection")
		purged, err = d.Purge(ctx, core.PurgeFilter{EndedBefore: time.Now().Add(time.Hour)})
		require.ErrorIs(t, err, sweeps)
		require.Equal(t, int64(1), purged.Instances)
		require.Equal(t, 2, swept)
	})
}

func TestAnOperatorWithoutALauncherStartsNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t, testdb.SQLite(t), func(c *job.OperatorConfig) { c.Launcher, c.Actor, c.Dead = nil, "", nil })
	_, err := d.Start(t.Context(), "load", d.run(1))
	require.ErrorContains(t, err, "no launcher")
	_, err = job.NewOperator(job.OperatorConfig{})
	require.ErrorContains(t, err, "repository")
	o, err := job.NewOperator(job.OperatorConfig{Repository: d.e.Repository})
	require.NoError(t, err)
	_, err = o.StartNext(t.Context(), "load", nil)
	require.ErrorIs(t, err, core.ErrNoSuchJob)
}

// An operator starts the next instance of a job, and goes on with the one that has
// not completed.
func ExampleOperator() {
	ctx := context.Background()
	_, db, done := testexample.SQLite()
	defer done()
	r := repository.New(db, repository.Options{})
	testexample.Check(r.Migrate(ctx))
	launcher := testexample.Must(job.NewLauncher(job.Config{
		Repository: r, Executor: step.NewSimpleStepExecutor(r, db.Name(), nil),
	}))
	fails := true
	report := testexample.Must(step.NewTasklet(step.TaskletConfig{
		Name: "report", Database: db,
		Assemble: func(context.Context, *core.StepRun) (core.Tasklet, error) {
			return core.TaskletFunc(func(context.Context, *core.StepContribution) error {
				if fails {
					return errors.New("no paper")
				}
				return nil
			}), nil
		},
	}))
	daily := &core.Job{
		Name: "daily", Restartable: true, Incrementer: job.NextDay("day"),
		Parameters: []core.ParameterSpec{{Name: "day", Type: core.TypeDate, Required: true, Identifying: true}},
		Flow:       core.Flow{Elements: []core.Element{&core.StepElement{Step: report}}},
	}
	operator := testexample.Must(job.NewOperator(job.OperatorConfig{
		Repository: r, Launcher: launcher, Actor: "ada",
		Jobs: func(_ context.Context, name string) (*core.Job, error) {
			if name != daily.Name {
				return nil, core.ErrNoSuchJob
			}
			return daily, nil
		},
	}))
	show := func(running *job.Running, err error) core.JobExecutionID {
		testexample.Check(err)
		exec := testexample.Must(running.Wait())
		day, _ := exec.Params.Get("day")
		fmt.Println(day.Value, exec.Status)
		return exec.ID
	}
	id := show(operator.StartNext(ctx, "daily", map[string]string{"day": "2026-02-28"}))
	fails = false
	show(operator.Restart(ctx, id))
	show(operator.StartNext(ctx, "daily", nil))
	_, err := operator.Restart(ctx, id)
	fmt.Println(err)
	// Output:
	// 2026-02-28 FAILED
	// 2026-02-28 COMPLETED
	// 2026-03-01 COMPLETED
	// job daily, execution 1: a later execution of the instance exists: execution 2 (COMPLETED)
}
