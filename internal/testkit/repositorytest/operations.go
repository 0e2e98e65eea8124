package repositorytest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func operationTests() []test {
	return []test{
		{"only the newest attempt is abandoned", abandonsTheNewestOnly},
		{"an execution is abandoned where it waits, and refused where it runs or completed", abandonInEveryState},
		{"an act for an earlier state is refused", actsOfEarlierStates},
		{"an execution that does not stop is taken from its owner when it is abandoned", abandonTakesFromOwner},
		{"an abandoned owner's chunk rolls back with its rows", abandonedChunkRollsBack},
		{"a chunk that is just committing is part of what is abandoned", abandonWaitsForChunk},
		{"of many who abandon at once one does and nobody fails", oneAbandons},
		{"recover ends what is lost and nothing else", recoverEndsLost},
		{"recover leaves a lease that is just renewed", recoverSeesRenewedLease},
		{"recover ends steps that outlived their job, which a launch refuses", recoverEndsOpenSteps},
		{"of many who recover and launch at once each execution is ended once", oneRecovers},
		{"an instance without executions is refused", instanceWithoutExecutions},
		{"an attempt from the start has nothing but the mark of it", fromStart},
		{"an attempt from an element has the journal that it keeps", fromElement},
		{"the audit says what was done, by whom, in order", auditIsListed},
	}
}

const operator = "ada@host"

func (b *bench) ended(name string, day int64, to core.Status) *core.JobExecution {
	b.Helper()
	_, ref := b.started(name, day)
	b.change(ref, ports.JobChange{To: to})
	return b.execution(ref.ID)
}

func abandonsTheNewestOnly(b *bench) {
	older := b.ended("a", 1, core.StatusFailed)
	newest, ref := b.started("a", 1)
	err := b.repo.Abandon(b.ctx, older.ID, ports.By{Actor: operator})
	var refused *ports.NotNewestError
	require.ErrorAs(b, err, &refused)
	require.ErrorIs(b, err, ports.ErrNotMostRecent)
	require.Equal(b, &ports.NotNewestError{JobName: "load", Execution: older.ID, Newest: newest.ID, Status: core.StatusStarted}, refused)
	require.Equal(b, older, b.execution(older.ID))
	b.change(ref, ports.JobChange{To: core.StatusFailed})
	require.NoError(b, b.repo.Abandon(b.ctx, newest.ID, ports.By{Actor: operator}))

	repos := []ports.Repository{b.repo, b.other()}
	for day := range int64(5) {
		last := b.ended("a", 10+day, core.StatusFailed)
		abandoned := make(chan error, 1)
		go func() { abandoned <- repos[1].Abandon(b.ctx, last.ID, ports.By{Actor: operator}) }()
		launched, err := repos[0].Launch(b.ctx, b.request("a", 10+day))
		if refused := <-abandoned; refused == nil {
			require.ErrorIs(b, err, ports.ErrAbandoned)
			continue
		}
		require.NoError(b, err)
		require.Equal(b, core.StatusFailed, b.execution(last.ID).Status)
		b.change(jobRef(launched.Execution), ports.JobChange{To: core.StatusFailed})
	}
}

func abandonInEveryState(b *bench) {
	exec, ref := b.started("a", 1)
	_, step := b.step(ref, "load", nil)
	for _, status := range statuses() {
		b.exec("UPDATE %sjob_execution SET active = 1, ended_at = NULL")
		b.force("job_execution", int64(exec.ID), status)
		b.force("step_execution", int64(step.ID), core.StatusStarted)
		before := b.execution(exec.ID)
		err := b.repo.Abandon(b.ctx, exec.ID, ports.By{Actor: operator})
		after := b.execution(exec.ID)
		if slices.Contains([]core.Status{core.StatusStarting, core.StatusStarted, core.StatusParked, core.StatusCompleted}, status) {
			var running *ports.AlreadyRunningError
			require.ErrorAs(b, err, &running, status)
			require.Equal(b, exec.ID, running.ExecutionID)
			require.Equal(b, owner("a"), running.Owner)
			var refused *core.TransitionError
			require.ErrorAs(b, err, &refused, status)
			require.Equal(b, status, refused.Current)
			require.ErrorContains(b, err, string(status))
			require.Equal(b, before, after)
			continue
		}
		require.NoError(b, err, status)
		require.Equal(b, core.StatusAbandoned, after.Status, status)
		if status == core.StatusAbandoned { // it was before
			continue
		}
		require.False(b, after.EndedAt.IsZero(), status)
		require.Equal(b, core.StatusFailed, b.onlyStep(exec.ID).Status, "no step outlives its job")
		require.Equal(b, "the job was abandoned", b.onlyStep(exec.ID).Error)
		require.Zero(b, b.count("%sjob_execution WHERE active = 1"), status)
		taken := int64(0)
		if status == core.StatusStopping {
			taken = 1
		}
		require.Equal(b, before.Epoch+taken, after.Epoch, status)
	}
	require.Equal(b, 4, b.count("%saudit WHERE act = 'abandon' AND actor = 'ada@host' AND step_execution_id = 0"))
	require.ErrorIs(b, b.repo.Abandon(b.ctx, 99, ports.By{Actor: operator}), core.ErrNotFound)
	_, err := b.repo.Launch(b.ctx, b.request("b", 1))
	require.ErrorIs(b, err, ports.ErrAbandoned)
}

func abandonTakesFromOwner(b *bench) {
	_, ref := b.started("a", 1)
	_, step := b.step(ref, "load", nil)
	_, err := b.repo.RequestStop(b.ctx, ref.ID, ports.By{Actor: "test"})
	require.NoError(b, err)
	b.events.take()
	require.NoError(b, b.repo.Abandon(b.ctx, ref.ID, ports.By{Actor: operator}))
	require.Equal(b, []core.Transitioned{
		{Machine: "job execution", Move: "abandon", ID: int64(ref.ID), To: core.StatusAbandoned, Current: core.StatusStopping, Answer: core.Applied, Trigger: "abandon"},
		{Machine: "step execution", Move: "end_with_job", ID: int64(step.ID), To: core.StatusFailed, Current: core.StatusStarted, Answer: core.Applied, Trigger: "abandon"},
	}, b.events.take())

	_, err = b.repo.Heartbeat(b.ctx, ref, time.Hour)
	require.ErrorIs(b, err, core.ErrLostOwner)
	_, err = b.repo.ChangeJob(b.ctx, ref, ports.JobChange{To: core.StatusStopped})
	require.ErrorIs(b, err, core.ErrLostOwner)
	_, err = b.repo.EndStep(b.ctx, step, ports.StepChange{To: core.StatusStopped})
	require.ErrorIs(b, err, core.ErrLostOwner)
	_, err = b.repo.StartStep(b.ctx, ref, ports.StepStart{Name: "more"})
	require.ErrorIs(b, err, core.ErrLostOwner)
	require.ErrorIs(b, b.checkpoint(step, ports.Checkpoint{}), core.ErrLostOwner)
	require.ErrorIs(b, b.repo.SaveJobContext(b.ctx, ref, changed(b)), core.ErrLostOwner)
}

func changed(b *bench) *core.ExecutionContext {
	memory := core.NewExecutionContext()
	require.NoError(b, memory.Put("k", 1))
	return memory
}

func (b *bench) stopping() (ports.JobRef, ports.StepRef) {
	b.Helper()
	b.exec("CREATE TABLE business (id bigint) -- %s")
	_, ref := b.started("a", 1)
	_, step := b.step(ref, "load", nil)
	_, err := b.repo.RequestStop(b.ctx, ref.ID, ports.By{Actor: "test"})
	require.NoError(b, err)
	return ref, step
}

func abandonedChunkRollsBack(b *bench) {
	ref, step := b.stopping()
	other := b.other()
	abandon := func() { require.NoError(b, other.Abandon(b.ctx, ref.ID, ports.By{Actor: operator})) }
	between := abandon
	if b.db.SingleWriter() { // no one else can abandon during the only writer's transaction
		abandon()
		between = func() {}
	}
	require.ErrorIs(b, b.chunk(step, between, func() {}), core.ErrLostOwner)
	require.Zero(b, b.business(), "the rows of the chunk are gone with it")
	require.Zero(b, b.onlyStep(ref.ID).Counters)
}

func abandonWaitsForChunk(b *bench) {
	ref, step := b.stopping()
	other := b.other()
	t := &taking{done: make(chan struct{})}
	err := b.chunk(step, func() {}, func() { // the row is locked, and not yet committed
		go func() {
			defer close(t.done)
			t.err = other.Abandon(b.ctx, ref.ID, ports.By{Actor: operator})
		}()
		t.blocked(b)
	})
	require.NoError(b, err)
	<-t.done
	require.NoError(b, t.err)
	require.Equal(b, 1, b.business())
	found := b.onlyStep(ref.ID)
	require.Equal(b, core.StatusFailed, found.Status)
	require.Equal(b, item.Position(`1`), found.Position)
	require.ErrorIs(b, b.chunk(step, func() {}, func() {}), core.ErrLostOwner)
	require.Equal(b, 1, b.business())
}

func oneAbandons(b *bench) {
	ref, _ := b.stopping()
	repos := []ports.Repository{b.repo, b.other()}
	const racers = 10
	errs := make([]error, racers)
	var group sync.WaitGroup
	for i := range racers {
		group.Go(func() { errs[i] = repos[i%len(repos)].Abandon(b.ctx, ref.ID, ports.By{Actor: operator}) })
	}
	group.Wait()
	require.NoError(b, errors.Join(errs...))
	require.Equal(b, ref.Epoch+1, b.execution(ref.ID).Epoch)
	require.Equal(b, 1, b.count("%saudit WHERE act = 'abandon' AND step_execution_id = 0"))
	require.Equal(b, 1, b.count("%saudit WHERE act = 'abandon' AND step_execution_id > 0"))
}

func recoverEndsLost(b *bench) {
	alive, _ := b.started("alive", 1)
	expired, ref := b.started("expired", 2)
	_, open := b.step(ref, "load", nil)
	require.NoError(b, b.checkpoint(open, ports.Checkpoint{Counters: core.Counters{Read: 4}, Position: item.Position(`4`)}))
	crashed := b.launch("crashed", 3)
	stopping, ref := b.started("crashed", 4)
	_, err := b.repo.RequestStop(b.ctx, ref.ID, ports.By{Actor: "test"})
	require.NoError(b, err)
	over := b.ended("crashed", 5, core.StatusStopped)
	b.exec("UPDATE %sjob_execution SET lease_until = created_at WHERE id = "+b.db.Dialect().Placeholder(1), int64(expired.ID))
	before := b.execution(alive.ID)
	b.events.take()

	ended, err := b.repo.Recover(b.ctx, operator, func(o core.Owner) bool { return o == owner("crashed") })
	require.NoError(b, err)
	require.Len(b, ended, 3)
	for i, exec := range []*core.JobExecution{expired, crashed, stopping} {
		require.Equal(b, exec.ID, ended[i].ID)
		require.Equal(b, *b.execution(exec.ID), ended[i], "as they are now")
		require.Equal(b, core.StatusFailed, ended[i].Status)
		require.Equal(b, "lost owner", ended[i].Error)
		require.Equal(b, exec.Epoch+1, ended[i].Epoch)
		require.Equal(b, exec.Params, ended[i].Params)
	}
	require.Len(b, b.events.take(), 4)
	require.Equal(b, before, b.execution(alive.ID))
	require.Equal(b, over, b.execution(over.ID))
	found := b.onlyStep(expired.ID)
	require.Equal(b, core.StatusFailed, found.Status)
	require.Equal(b, item.Position(`4`), found.Position)
	require.ErrorIs(b, b.checkpoint(open, ports.Checkpoint{}), core.ErrLostOwner)
	require.Equal(b, 4, b.count("%saudit WHERE act = 'recover' AND actor = 'ada@host'"))

	again, err := b.repo.Recover(b.ctx, operator, nil)
	require.NoError(b, err)
	require.Empty(b, again)
	require.Equal(b, 2, b.launch("b", 2).Attempt)
}

func recoverSeesRenewedLease(b *bench) {
	exec, ref := b.started("a", 1)
	other := b.other()
	if b.db.SingleWriter() { // a transaction that waits for the one writer finds its writes
		b.exec("UPDATE %sjob_execution SET lease_until = created_at")
		_, err := b.repo.Heartbeat(b.ctx, ref, time.Hour)
		require.NoError(b, err)
		ended, err := other.Recover(b.ctx, operator, nil)
		require.NoError(b, err)
		require.Empty(b, ended)
		return
	}
	b.exec("UPDATE %sjob_execution SET lease_until = created_at")
	t := &taking{done: make(chan struct{})}
	var ended []core.JobExecution
	require.NoError(b, tx.NewManager(b.db).Do(b.ctx, tx.Attr{}, func(ctx context.Context) error {
		_, err := b.repo.Heartbeat(ctx, ref, time.Hour) // late, and not yet committed
		require.NoError(b, err)
		go func() {
			defer close(t.done)
			ended, t.err = other.Recover(b.ctx, operator, nil)
		}()
		t.blocked(b)
		return nil
	}))
	<-t.done
	require.NoError(b, t.err)
	require.Empty(b, ended)
	require.Equal(b, core.StatusStarted, b.execution(exec.ID).Status)
	require.Equal(b, ref.Epoch, b.execution(exec.ID).Epoch)
}

func recoverEndsOpenSteps(b *bench) {
	for _, status := range []core.Status{core.StatusStarting, core.StatusStarted, core.StatusStopping} {
		_, ref := b.started("a", 1)
		_, step := b.step(ref, "load", nil)
		b.change(ref, ports.JobChange{To: core.StatusFailed})
		b.force("step_execution", int64(step.ID), status) // as no binary of ours leaves it

		_, err := b.repo.Launch(b.ctx, b.request("b", 1))
		var running *ports.AlreadyRunningError
		require.ErrorAs(b, err, &running, status)
		require.Equal(b, ref.ID, running.ExecutionID)
		require.ErrorContains(b, err, "1 of its steps")

		ended, err := b.repo.Recover(b.ctx, operator, nil)
		require.NoError(b, err)
		require.Len(b, ended, 1)
		require.Equal(b, ref.ID, ended[0].ID)
		require.Equal(b, core.StatusFailed, b.onlyStep(ref.ID).Status)
		require.Equal(b, "the job ended before the step did", b.onlyStep(ref.ID).Error)
		b.change(jobRef(b.launch("b", 1)), ports.JobChange{To: core.StatusFailed})
	}
}

func oneRecovers(b *bench) {
	const instances, racers = 4, 6
	lost := map[core.JobExecutionID]*core.JobExecution{}
	for day := range int64(instances) {
		exec, ref := b.started("lost", day)
		b.step(ref, "load", nil)
		lost[exec.ID] = exec
	}
	repos := []ports.Repository{b.repo, b.other()}
	results := make([][]core.JobExecution, racers)
	errs := make([]error, racers+instances)
	var group sync.WaitGroup
	for i := range racers {
		group.Go(func() { results[i], errs[i] = repos[i%len(repos)].Recover(b.ctx, operator, isLost) })
	}
	for day := range instances {
		req := b.request("new", int64(day))
		req.Dead = isLost
		group.Go(func() { _, errs[racers+day] = repos[day%len(repos)].Launch(b.ctx, req) })
	}
	group.Wait()
	require.NoError(b, errors.Join(errs...))
	ended := map[core.JobExecutionID]int{}
	for _, list := range results {
		for _, e := range list {
			ended[e.ID]++
		}
	}
	for id, exec := range lost {
		require.LessOrEqual(b, ended[id], 1)
		require.Equal(b, exec.Epoch+1, b.execution(id).Epoch)
		require.Equal(b, core.StatusFailed, b.onlyStep(id).Status)
	}
	require.Equal(b, instances, b.count("%saudit WHERE act IN ('recover', 'take over') AND step_execution_id = 0"))
	require.Equal(b, instances, b.count("%sjob_execution WHERE active = 1"))
}

func isLost(o core.Owner) bool { return o == owner("lost") }

func instanceWithoutExecutions(b *bench) {
	req := b.request("a", 1)
	d := b.db.Dialect()
	b.exec("INSERT INTO %sjob_instance (job_name, instance_key, created_at) SELECT "+d.Placeholder(1)+", "+d.Placeholder(2)+", created_at FROM %[1]sjob_execution WHERE id = "+d.Placeholder(3),
		"load", req.Params.Key(), int64(b.launch("a", 2).ID))
	for range 2 {
		_, err := b.repo.Launch(b.ctx, req)
		require.ErrorIs(b, err, ports.ErrIllegalState)
	}
	require.Equal(b, 1, b.count("%sjob_execution"))
	require.Equal(b, 2, b.count("%sjob_instance WHERE attempts = 1"), "a refused launch is not counted")
}

func fromStart(b *bench) {
	exec, ref := b.started("a", 1)
	b.change(ref, ports.JobChange{To: core.StatusFailed, Context: changed(b)})
	req := b.request("b", 1)
	req.FromStart = true
	launched, err := b.repo.Launch(b.ctx, req)
	require.NoError(b, err)
	second := launched.Execution
	require.Equal(b, exec.InstanceID, second.InstanceID)
	require.Equal(b, 2, second.Attempt)
	require.Equal(b, []string{core.FromStartKey}, second.Context.Keys())
	since, _ := second.Context.Get(core.FromStartKey)
	require.Equal(b, int64(second.ID), since)
	require.False(b, second.Context.Changed())
	require.Equal(b, second, b.execution(second.ID))
	b.change(jobRef(second), ports.JobChange{To: core.StatusFailed})

	since, _ = b.launch("c", 1).Context.Get(core.FromStartKey)
	require.Equal(b, int64(second.ID), since, "the mark is carried on")

	req = b.request("a", 2)
	req.FromStart = true
	launched, err = b.repo.Launch(b.ctx, req)
	require.NoError(b, err)
	require.Equal(b, []string{core.FromStartKey}, launched.Execution.Context.Keys())
}

func fromElement(b *bench) {
	exec, ref := b.started("a", 1)
	b.change(ref, ports.JobChange{To: core.StatusCompleted, Context: changed(b)})
	kept := ports.FlowVisit{Visit: core.Visit{Ordinal: 2, Element: "load"}, Kind: ports.VisitJump, Target: "load"}
	req := b.request("b", 1)
	req.From = &ports.LaunchFrom{After: exec.ID + 1, Visits: []ports.FlowVisit{kept}}
	_, err := b.repo.Launch(b.ctx, req)
	var newer *ports.NotNewestError
	require.ErrorAs(b, err, &newer)
	require.Equal(b, exec.ID, newer.Newest)
	req.From.After = exec.ID
	_, err = b.repo.Launch(b.ctx, req)
	require.ErrorAs(b, err, new(*ports.InstanceCompleteError))
	req.From.IfComplete, req.Restartable = true, false
	_, err = b.repo.Launch(b.ctx, req)
	require.ErrorIs(b, err, ports.ErrNotRestartable)
	req.Restartable = true
	launched, err := b.repo.Launch(b.ctx, req)
	require.NoError(b, err)
	second := launched.Execution
	require.Equal(b, second.ID, second.AnewSince())
	require.Greater(b, len(second.Context.Keys()), 1, "what was promoted before stays")
	require.Equal(b, second, b.execution(second.ID))
	visits, err := b.repo.Visits(b.ctx, second.InstanceID, second.AnewSince())
	require.NoError(b, err)
	require.Equal(b, []ports.JournalRow{{FlowVisit: kept, Execution: second.ID}}, visits)
	require.Equal(b, 1, b.count("%sflow_visit"), "a refused launch leaves nothing")
}

func auditIsListed(b *bench) {
	exec, ref := b.started("a", 1)
	_, step := b.step(ref, "load", nil)
	b.end(step, ports.StepChange{To: core.StatusFailed, Error: "no file"})
	b.change(ref, ports.JobChange{To: core.StatusFailed})
	require.NoError(b, b.repo.Abandon(b.ctx, exec.ID, ports.By{Actor: operator}))
	b.launch("b", 2)
	list, err := b.repo.Audit(b.ctx, exec.ID)
	require.NoError(b, err)
	var acts []string
	for i, entry := range list {
		acts = append(acts, entry.Act+" "+string(entry.From)+">"+string(entry.To))
		require.False(b, entry.At.IsZero())
		if i > 0 {
			require.False(b, entry.At.Before(list[i-1].At))
		}
	}
	require.Equal(b, []string{
		"launch >STARTING", "change job STARTING>STARTED", "start step >STARTED", "end step STARTED>FAILED",
		"change job STARTED>FAILED", "abandon FAILED>ABANDONED",
	}, acts)
	require.Equal(b, operator, list[5].Actor)
	require.Equal(b, owner("a").String(), list[0].Actor)
	require.Equal(b, step.ID, list[3].Step)
	require.Equal(b, "no file", list[3].Detail)
	none, err := b.repo.Audit(b.ctx, 99)
	require.NoError(b, err)
	require.Empty(b, none)
}

func actsOfEarlierStates(b *bench) {
	failed := b.ended("a", 1, core.StatusFailed)
	moved := func(err error, newest core.JobExecutionID, status core.Status, epoch int64) {
		b.Helper()
		var m *ports.MovedError
		require.ErrorAs(b, err, &m)
		require.Equal(b, &ports.MovedError{Execution: failed.ID, Newest: newest, Status: status, Epoch: epoch}, m)
	}
	for _, epoch := range []int64{failed.Epoch - 1, failed.Epoch + 1} {
		req := b.request("a", 1)
		req.Bound = &ports.Bound{Execution: failed.ID, Epoch: epoch}
		_, err := b.repo.Launch(b.ctx, req)
		moved(err, failed.ID, core.StatusFailed, failed.Epoch)
	}
	moved(b.repo.Abandon(b.ctx, failed.ID, ports.By{Actor: operator, Epoch: failed.Epoch + 1}), failed.ID, core.StatusFailed, failed.Epoch)

	repos := []ports.Repository{b.repo, b.other()}
	const racers = 6
	errs := make([]error, racers)
	var group sync.WaitGroup
	for i := range racers {
		group.Go(func() {
			req := b.request("a", 1)
			req.Bound = &ports.Bound{Execution: failed.ID, Epoch: failed.Epoch}
			_, errs[i] = repos[i%len(repos)].Launch(b.ctx, req)
		})
	}
	group.Wait()
	last, err := b.repo.LastExecution(b.ctx, "load", failed.Params.Key())
	require.NoError(b, err)
	require.Equal(b, 2, last.Attempt)
	launched := 0
	for _, err := range errs {
		if err == nil {
			launched++
			continue
		}
		moved(err, last.ID, core.StatusStarting, last.Epoch)
	}
	require.Equal(b, 1, launched)

	failed = last
	_, err = b.repo.RequestStop(b.ctx, last.ID, ports.By{Actor: operator, Epoch: last.Epoch + 1})
	moved(err, last.ID, core.StatusStarting, last.Epoch)
	answer, err := b.repo.RequestStop(b.ctx, last.ID, ports.By{Actor: operator, Epoch: last.Epoch, Reason: "too late"})
	require.NoError(b, err)
	require.Equal(b, core.Applied, answer)
	require.Equal(b, 1, b.count("%saudit WHERE verb = 'stop' AND detail = 'too late'"))
	require.NoError(b, b.repo.Abandon(b.ctx, last.ID, ports.By{Actor: operator, Epoch: last.Epoch, Reason: "it hangs"}))
	require.Equal(b, 1, b.count("%saudit WHERE verb = 'abandon' AND detail = 'it hangs'"))
}
