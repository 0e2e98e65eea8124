package operator_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func runOf(t *testing.T, e *operator.Execution) int64 {
	t.Helper()
	p, ok := e.Params.Get("run")
	require.True(t, ok)
	n, ok := p.Value.(int64)
	require.True(t, ok)
	return n
}

func againOf(e *operator.Execution) any {
	p, _ := e.Params.Get(core.AgainName)
	return p.Value
}

func (d *desk) again(n string) *operator.Execution {
	d.Helper()
	return d.wait(d.Start(d.Context(), operator.RunRequest{Name: "load", Params: map[string]string{"run": n}, Again: true}))
}

func (d *desk) purge(req operator.PurgeRequest) operator.Purged {
	d.Helper()
	if req.Instance == 0 {
		req.EndedBefore = time.Now().Add(time.Hour)
	}
	purged, err := d.Purge(d.Context(), req)
	require.NoError(d, err)
	return purged
}

func TestTheNextInstanceIsNotStuckAfterAnOlderOneRan(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		d := newDesk(t, url)
		d.work = failing
		first := d.wait(d.next(nil))
		d.work = nil
		d.wait(d.start("load", d.run(2)))
		require.Equal(t, core.StatusCompleted, d.wait(d.restart(first.ID)).Status)
		require.Equal(t, int64(3), runOf(t, d.wait(d.next(nil))), "run 2 is the newest instance, though run 1 ended later")

		d.wait(d.start("load", d.run(7)))
		d.work = failing
		d.wait(d.start("load", d.run(8)))
		d.work = nil
		d.wait(d.start("load", d.run(5))) // out of turn
		require.Equal(t, int64(6), runOf(t, d.wait(d.next(nil))))
		require.Equal(t, int64(8), runOf(t, d.wait(d.next(nil))), "run 7 is complete, and run 8 goes on")
		next := d.wait(d.Start(t.Context(), operator.RunRequest{Name: "load", Next: true}))
		require.Equal(t, int64(9), runOf(t, next))
	})
}

func TestTheLastIncrementedValueOutlivesAPurge(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		d := newDesk(t, url)
		d.work = failing
		d.wait(d.start("load", d.run(1)))
		d.work = nil
		d.wait(d.start("load", parameters(t, intParameter("run", 2), text("input", "b.csv"))))
		d.purge(operator.PurgeRequest{})
		third := d.wait(d.next(nil))
		require.Equal(t, parameters(t, intParameter("run", 3), text("input", "in.csv")), third.Params.Parameters,
			"run 1 failed, but is not the newest instance")
		d.again("3")
		d.purge(operator.PurgeRequest{})
		d.purge(operator.PurgeRequest{Statuses: []core.Status{core.StatusFailed}})
		require.Equal(t, []int64{0}, d.e.Ints("select count(*) from surfin_job_instance"))
		fourth := d.wait(d.next(nil))
		require.Equal(t, int64(4), runOf(t, fourth), "a repetition of run 3 does not count")
		d.purge(operator.PurgeRequest{Instance: fourth.InstanceID})
		params, err := d.nextParameters("load", nil)
		require.NoError(t, err)
		require.Equal(t, parameters(t, intParameter("run", 5), text("input", "in.csv")), params)
	})
}

func TestAPurgeForgetsNoRepetition(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		d := newDesk(t, url)
		require.Nil(t, againOf(d.again("1")))
		d.work = failing
		failed := d.again("1")
		require.Equal(t, int64(1), againOf(failed))
		d.work = nil
		d.purge(operator.PurgeRequest{})
		after := d.again("1")
		require.Equal(t, failed.InstanceID, after.InstanceID, "it goes on, though what it repeats is gone")
		require.Equal(t, core.StatusCompleted, after.Status)
		require.Equal(t, int64(2), againOf(d.again("1")))
	})
}

func TestAnInstanceIsPurgedByItsNumber(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		d, ctx := newDesk(t, url), t.Context()
		d.work = failing
		failed := d.wait(d.next(nil))
		for _, req := range []operator.PurgeRequest{{}, {Instance: failed.InstanceID, KeepLast: 1}, {Instance: failed.InstanceID, EndedBefore: time.Now()}} {
			_, err := d.Purge(ctx, req)
			var wrong *operator.RequestError
			require.ErrorAs(t, err, &wrong)
		}
		started, release := make(chan struct{}), make(chan struct{})
		d.work = func(ctx context.Context) error { close(started); <-release; return nil }
		running, err := d.restart(failed.ID)
		require.NoError(t, err)
		<-started
		_, err = d.elsewhere.Purge(ctx, operator.PurgeRequest{Instance: failed.InstanceID})
		r := refusalOf(t, err)
		require.Equal(t, refusal.Running, r.Reason)
		require.Contains(t, r.Actions, operator.Action{Kind: refusal.ActStop, Execution: running.Execution().ID})
		close(release)
		d.wait(running, nil)
		counted := d.purge(operator.PurgeRequest{Instance: failed.InstanceID, DryRun: true})
		require.Equal(t, operator.Purged{Instances: 1, Executions: 2, Steps: 2, DryRun: true}, counted)
		counted.DryRun = false
		require.Equal(t, counted, d.purge(operator.PurgeRequest{Instance: failed.InstanceID}))
	})
}

func TestActionsAreWhatALaunchWouldAccept(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		d, ctx := newDesk(t, url), t.Context()
		d.work = failing
		first := d.wait(d.next(nil))
		second := d.wait(d.restart(first.ID))
		offered := func(id core.JobExecutionID) []operator.Action {
			t.Helper()
			shown, err := d.Show(ctx, operator.ShowRequest{Execution: id})
			require.NoError(t, err)
			page, err := d.List(ctx, operator.ListRequest{})
			require.NoError(t, err)
			for _, e := range page.Executions {
				if e.ID == id {
					require.Equal(t, e.Actions, shown.Actions, "list and show agree")
				}
			}
			return shown.Actions
		}
		superseded := []operator.Action{{Kind: refusal.ActShow, Execution: second.ID, Status: core.StatusFailed}}
		require.Equal(t, superseded, offered(first.ID))
		restart := operator.Action{Kind: refusal.ActRestart, Execution: second.ID, Status: core.StatusFailed}
		require.Equal(t, []operator.Action{restart}, offered(second.ID))
		_, err := d.Stop(ctx, first.ID)
		require.Equal(t, superseded[0], refusalOf(t, err).Actions[1])
		explained, err := d.Explain(ctx, operator.ExplainRequest{Execution: first.ID})
		require.NoError(t, err)
		require.Equal(t, refusal.NotNewest, explained.Refused)

		step := "UPDATE surfin_step_execution SET status = '%s' WHERE job_execution_id = (SELECT MAX(id) FROM surfin_job_execution)"
		d.e.Exec(fmt.Sprintf(step, core.StatusUnknown))
		abandon := operator.Action{Kind: refusal.ActAbandon, Execution: second.ID, Status: core.StatusFailed}
		require.Equal(t, []operator.Action{abandon}, offered(second.ID), "the outcome of a step is not known")
		_, err = d.restart(second.ID)
		require.ErrorIs(t, err, ports.ErrUnknownStatus)
		require.Contains(t, refusalOf(t, err).Actions, abandon)
		d.e.Exec(fmt.Sprintf(step, core.StatusStarted))
		require.Equal(t, []operator.Action{{Kind: refusal.ActRecover}}, offered(second.ID), "a step is not over")
		explained, err = d.Explain(ctx, operator.ExplainRequest{Execution: second.ID})
		require.NoError(t, err)
		require.Equal(t, refusal.Running, explained.Refused)
	})
}

func TestARefusedRunSuggestsWhatIsNotCompleteYet(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		d := newDesk(t, url)
		d.wait(d.start("load", d.run(1)))
		kinds := func(req operator.RunRequest) (kinds []refusal.ActionKind) {
			t.Helper()
			req.Name = "load"
			_, err := d.Start(t.Context(), req)
			for _, a := range refusalOf(t, err).Actions {
				kinds = append(kinds, a.Kind)
			}
			return kinds
		}
		one := operator.RunRequest{Params: map[string]string{"run": "1"}}
		require.Equal(t, []refusal.ActionKind{refusal.ActRun, refusal.ActNext, refusal.ActAgain, refusal.ActShow}, kinds(one))
		d.wait(d.start("load", d.run(2)))
		require.Equal(t, []refusal.ActionKind{refusal.ActNext, refusal.ActAgain, refusal.ActShow}, kinds(one), "run 2 is complete as well")
		one.Next = true
		require.Contains(t, kinds(one), refusal.ActNext)
		require.Equal(t, int64(3), runOf(t, d.wait(d.Start(t.Context(), operator.RunRequest{Name: "load", Next: true}))))
	})
}
