package repositorytest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func explorerTests() []test {
	return []test{
		{"what is not there is not found", notThere},
		{"executions are listed newest first by key", listsByKey},
		{"executions are listed by job and status", listsByFilter},
		{"the last execution is that of the instance", lastOfInstance},
		{"an execution is judged as the newest of its instance is", judgedAsNewest},
		{"steps and skips of many are told with one statement each", bulk},
		{"the last steps are the newest of each name over all attempts", lastSteps},
	}
}

func notThere(b *bench) {
	_, err := b.repo.Execution(b.ctx, 1)
	require.ErrorIs(b, err, core.ErrNotFound)
	_, err = b.repo.LastExecution(b.ctx, "load", "key")
	require.ErrorIs(b, err, core.ErrNotFound)
	list, err := b.repo.Executions(b.ctx, ports.ExecutionFilter{})
	require.NoError(b, err)
	require.Empty(b, list)
	steps, err := b.repo.Steps(b.ctx, 1)
	require.NoError(b, err)
	require.Empty(b, steps)
	last, err := b.repo.LastSteps(b.ctx, 1, 0)
	require.NoError(b, err)
	require.Empty(b, last)
}

func (b *bench) list(filter ports.ExecutionFilter) (ids []core.JobExecutionID) {
	b.Helper()
	list, err := b.repo.Executions(b.ctx, filter)
	require.NoError(b, err)
	for _, e := range list {
		ids = append(ids, e.ID)
	}
	return ids
}

func listsByKey(b *bench) {
	var all []core.JobExecutionID
	for day := range int64(7) {
		all = append([]core.JobExecutionID{b.launch("a", day).ID}, all...)
	}
	var paged []core.JobExecutionID
	filter := ports.ExecutionFilter{Limit: 3}
	for {
		page, err := b.repo.Executions(b.ctx, filter)
		require.NoError(b, err)
		if len(page) == 0 {
			break
		}
		require.LessOrEqual(b, len(page), 3)
		for _, e := range page {
			require.Equal(b, *b.execution(e.ID), e, "a listed execution is complete, its parameters too")
			paged = append(paged, e.ID)
		}
		filter.Before = page[len(page)-1].ID
	}
	require.Equal(b, all, paged)

	for day := range int64(48) {
		b.launch("a", 100+day)
	}
	require.Len(b, b.list(ports.ExecutionFilter{}), 50, "the default page")
}

func listsByFilter(b *bench) {
	failed := map[string][]core.JobExecutionID{}
	for day := range int64(4) {
		for _, job := range []string{"load", "report"} {
			req := b.request("a", day)
			req.JobName = job
			launched, err := b.repo.Launch(b.ctx, req)
			require.NoError(b, err)
			if day%2 == 0 {
				b.change(jobRef(launched.Execution), ports.JobChange{To: core.StatusFailed})
				failed[job] = append([]core.JobExecutionID{launched.Execution.ID}, failed[job]...)
			}
		}
	}
	require.Len(b, b.list(ports.ExecutionFilter{JobName: "load"}), 4)
	require.Len(b, b.list(ports.ExecutionFilter{Statuses: []core.Status{core.StatusFailed}}), 4)
	require.Len(b, b.list(ports.ExecutionFilter{Statuses: []core.Status{core.StatusFailed, core.StatusStarting}}), 8)
	both := ports.ExecutionFilter{JobName: "load", Statuses: []core.Status{core.StatusFailed}}
	require.Equal(b, failed["load"], b.list(both))
	both.Before = failed["load"][0]
	require.Equal(b, failed["load"][1:], b.list(both))
	require.Empty(b, b.list(ports.ExecutionFilter{JobName: "other"}))
}

func lastOfInstance(b *bench) {
	var last *core.JobExecution
	for range 3 {
		last = b.launch("a", 1)
		b.change(jobRef(last), ports.JobChange{To: core.StatusFailed})
	}
	b.launch("a", 2)
	found, err := b.repo.LastExecution(b.ctx, "load", b.request("a", 1).Params.Key())
	require.NoError(b, err)
	require.Equal(b, last.ID, found.ID)
	require.Equal(b, last.Params, found.Params)
	_, err = b.repo.LastExecution(b.ctx, "other", b.request("a", 1).Params.Key())
	require.ErrorIs(b, err, core.ErrNotFound)

	w := b.watch()
	all, err := b.repo.LastExecutions(b.ctx, last.InstanceID, last.InstanceID+99)
	require.NoError(b, err)
	require.Len(b, w.take(), 1)
	brief := briefly(*found)
	require.Equal(b, map[core.JobInstanceID]core.JobExecution{last.InstanceID: brief}, all)
	page, err := b.repo.Executions(b.ctx, ports.ExecutionFilter{Instance: last.InstanceID, Limit: 1, Brief: true})
	require.NoError(b, err)
	require.Equal(b, []core.JobExecution{brief}, page)
	page, err = b.repo.Executions(b.ctx, ports.ExecutionFilter{Instance: last.InstanceID, Limit: 1})
	require.NoError(b, err)
	require.Equal(b, []core.JobExecution{*found}, page)
}

func briefly(e core.JobExecution) core.JobExecution {
	e.Definition.Text, e.Definition.Files, e.Definition.Hash = "", nil, ""
	e.Time, e.Exclusive, e.Task, e.ParentCall = time.Time{}, "", 0, 0
	return e
}

func judgedAsNewest(b *bench) {
	first := b.launch("a", 1)
	b.change(jobRef(first), ports.JobChange{To: core.StatusFailed})
	_, again := b.started("a", 1)
	b.step(again, "one", nil)
	_, ref := b.started("a", 2)
	_, step := b.step(ref, "one", nil)
	b.end(step, ports.StepChange{To: core.StatusUnknown})
	b.change(ref, ports.JobChange{To: core.StatusFailed})
	b.launch("b", 3)
	b.exec("UPDATE %sjob_execution SET lease_until = created_at WHERE id = 4")
	w := b.watch()
	ids, err := b.repo.ExecutionIDs(b.ctx, ports.ExecutionFilter{})
	require.NoError(b, err)
	require.Equal(b, b.list(ports.ExecutionFilter{}), ids)
	w.take()
	judged, err := b.repo.Judged(b.ctx, ports.JudgedRequest{IDs: append(ids, 99), Dead: dead})
	require.NoError(b, err)
	require.Len(b, w.take(), 1)
	require.Len(b, judged, len(ids))
	for n, j := range judged {
		exec, err := b.repo.Execution(b.ctx, ids[n])
		require.NoError(b, err)
		require.Equal(b, *exec, j.Execution)
		newest, err := b.repo.NewestAttempts(b.ctx, dead, exec.InstanceID)
		require.NoError(b, err)
		want := newest[exec.InstanceID]
		if want.Execution.ID == exec.ID {
			want.Execution = *exec
		} else {
			want = ports.NewestAttempt{Execution: core.JobExecution{ID: want.Execution.ID, InstanceID: exec.InstanceID, Status: want.Execution.Status}}
		}
		require.Equal(b, want, j.Newest)
	}
	require.True(b, judged[0].Newest.Lost)
	require.True(b, judged[1].Newest.Uncertain)
	require.EqualValues(b, 1, judged[2].Newest.Unfinished)
	require.Equal(b, again.ID, judged[3].Newest.Execution.ID)
	listed, err := b.repo.Judged(b.ctx, ports.JudgedRequest{IDs: ids[:1], Brief: true})
	require.NoError(b, err)
	require.Equal(b, briefly(judged[0].Execution), listed[0].Execution)
}

func bulk(b *bench) {
	w := b.watch()
	_, one := b.started("a", 1)
	b.step(one, "first", nil)
	_, step := b.step(one, "second", nil)
	_, two := b.started("a", 2)
	b.step(two, "first", nil)
	require.NoError(b, b.checkpoint(step, ports.Checkpoint{Skipped: []core.SkippedItem{
		{Phase: core.PhaseRead, Class: "parse"}, {Phase: core.PhaseRead, Class: "parse"}, {Phase: core.PhaseWrite},
	}}))
	w.take()
	steps, err := b.repo.StepsOf(b.ctx, two.ID, one.ID, 99)
	require.NoError(b, err)
	require.Len(b, w.take(), 1)
	require.Len(b, steps, 2)
	for _, ref := range []ports.JobRef{one, two} {
		want, err := b.repo.Steps(b.ctx, ref.ID)
		require.NoError(b, err)
		require.Equal(b, want, steps[ref.ID])
	}
	none, err := b.repo.StepsOf(b.ctx)
	require.NoError(b, err)
	require.Empty(b, none)

	b.exec("UPDATE %sskipped_item SET redriven_by = 9 WHERE id = 1")
	w.take()
	counts, err := b.repo.SkipCounts(b.ctx, one.ID)
	require.NoError(b, err)
	require.Len(b, w.take(), 1)
	require.Equal(b, []ports.SkipCount{
		{Step: "second", Phase: core.PhaseRead, Class: "parse", Count: 2, Left: 1},
		{Step: "second", Phase: core.PhaseWrite, Count: 1, Left: 1},
	}, counts)
}

func lastSteps(b *bench) {
	var instance core.JobInstanceID
	newest := map[string]core.StepExecutionID{}
	for attempt := range 3 {
		exec, ref := b.started("a", 1)
		instance = exec.InstanceID
		for n := range 3 - attempt { // one after the other completes
			name := fmt.Sprintf("step %d", n)
			_, step := b.step(ref, name, nil)
			b.end(step, ports.StepChange{To: core.StatusFailed, Counters: core.Counters{Read: int64(attempt)}})
			newest[name] = step.ID
		}
		b.change(ref, ports.JobChange{To: core.StatusFailed})
	}
	_, ref := b.started("a", 2)
	b.step(ref, "step 0", nil)

	steps, err := b.repo.LastSteps(b.ctx, instance, 0)
	require.NoError(b, err)
	require.Len(b, steps, 3)
	for n, attempts := range map[int]int{0: 3, 1: 2, 2: 1} {
		name := fmt.Sprintf("step %d", n)
		require.Equal(b, newest[name], steps[name].Last.ID)
		require.Equal(b, attempts, steps[name].Attempts)
		require.Equal(b, int64(attempts-1), steps[name].Last.Counters.Read)
	}
}
