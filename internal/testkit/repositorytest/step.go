package repositorytest

import (
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

func stepTests() []test {
	return []test{
		{"a step starts where its job runs and nowhere else", stepStartsInRunningJob},
		{"a step goes on where the earlier attempt ended", stepGoesOn},
		{"the end of a step writes counters and results", endStepIsWritten},
		{"no step outlives its job", noStepOutlivesJob},
		{"nothing starts after a stop, except in finally", nothingStartsAfterStop},
		{"results keep ints and floats apart", resultsKeepTypes},
	}
}

func stepStartsInRunningJob(b *bench) {
	exec := b.launch("a", 1)
	for _, status := range statuses() {
		b.force("job_execution", int64(exec.ID), status)
		b.events.take()
		step, err := b.repo.StartStep(b.ctx, jobRef(exec), ports.StepStart{Name: "one"})
		seen := b.events.take()
		require.Len(b, seen, 1)
		require.Equal(b, "start step", seen[0].Trigger)
		if status == core.StatusStarted || status == core.StatusStopping {
			require.NoError(b, err, status)
			require.Equal(b, core.StatusStarted, step.Status)
			require.Equal(b, core.Applied, seen[0].Answer)
			require.Equal(b, int64(step.ID), seen[0].ID)
			continue
		}
		var refused *core.TransitionError
		require.ErrorAs(b, err, &refused, status)
		require.NotErrorIs(b, err, core.ErrLostOwner)
		require.Equal(b, status, refused.Current)
		require.Equal(b, core.Rejected, seen[0].Answer)
	}
	require.Equal(b, 2, b.count("%sstep_execution"))

	b.force("job_execution", int64(exec.ID), core.StatusStarted)
	_, err := b.repo.StartStep(b.ctx, ports.JobRef{ID: exec.ID, Owner: owner("b"), Epoch: 1}, ports.StepStart{Name: "one"})
	require.ErrorIs(b, err, core.ErrLostOwner)
	var refused *core.TransitionError
	require.ErrorAs(b, err, &refused)
	require.Equal(b, 2, b.count("%sstep_execution"))
}

func stepGoesOn(b *bench) {
	_, ref := b.started("a", 1)
	fresh, stepRef := b.step(ref, "load", nil)
	require.Equal(b, "load", fresh.JobName)
	require.Nil(b, fresh.Position)
	require.Zero(b, fresh.Counters)
	require.Empty(b, fresh.Context.Keys())
	require.False(b, fresh.StartedAt.IsZero())
	require.Equal(b, *fresh, b.onlyStep(ref.ID))

	memory := core.NewExecutionContext()
	require.NoError(b, memory.Put("sum", 1.5))
	counters := core.Counters{Read: 1, Filter: 2, Write: 3, ReadSkip: 4, ProcessSkip: 5, WriteSkip: 6, Commit: 7, Rollback: 8}
	require.NoError(b, b.checkpoint(stepRef, ports.Checkpoint{Counters: counters, Position: item.Position(`{"line":7}`), Context: memory}))
	b.end(stepRef, ports.StepChange{To: core.StatusFailed, Counters: counters})
	earlier := b.onlyStep(ref.ID)

	again, _ := b.step(ref, "load", &earlier)
	require.NotEqual(b, earlier.ID, again.ID)
	require.Equal(b, core.StatusStarted, again.Status)
	require.Zero(b, again.Counters, "counters are those of one attempt")
	require.Equal(b, counters, earlier.Counters)
	require.Equal(b, item.Position(`{"line":7}`), again.Position)
	sum, _ := again.Context.Get("sum")
	require.InDelta(b, 1.5, sum, 0)
	require.False(b, again.Context.Changed())
	require.Empty(b, again.ExitCode+again.Error)

	earlier.Position = item.Position(strings.Repeat("1", ports.MaxPositionBytes+1))
	_, err := b.repo.StartStep(b.ctx, ref, ports.StepStart{Name: "load", Earlier: &earlier})
	require.ErrorIs(b, err, core.ErrContextTooLarge)
}

func endStepIsWritten(b *bench) {
	_, ref := b.started("a", 1)
	_, stepRef := b.step(ref, "load", nil)
	memory := core.NewExecutionContext()
	require.NoError(b, memory.Put("last", "x"))
	counters := core.Counters{Read: 10, Write: 9, Filter: 1, Commit: 2}
	b.end(stepRef, ports.StepChange{
		To: core.StatusCompleted, ExitCode: "LOADED", Counters: counters, Context: memory, Out: map[string]any{"rows": int64(9)},
	})
	found := b.onlyStep(ref.ID)
	require.Equal(b, core.StatusCompleted, found.Status)
	require.Equal(b, "LOADED", found.ExitCode)
	require.Equal(b, counters, found.Counters)
	require.Equal(b, map[string]any{"rows": int64(9)}, found.Out)
	require.Equal(b, []string{"last"}, found.Context.Keys())
	require.False(b, found.EndedAt.Before(found.StartedAt))

	answer, err := b.repo.EndStep(b.ctx, stepRef, ports.StepChange{To: core.StatusCompleted, Counters: core.Counters{Read: 11}})
	require.NoError(b, err)
	require.Equal(b, core.Duplicate, answer)
	require.Equal(b, found, b.onlyStep(ref.ID), "a duplicate changes nothing")
}

func resultsKeepTypes(b *bench) {
	_, ref := b.started("a", 1)
	_, stepRef := b.step(ref, "load", nil)
	out := map[string]any{
		"int": int64(1) << 60, "float": float64(2), "tenth": 0.1, "big": 1e300, "text": "2", "yes": true, "none": nil,
		"nested": map[string]any{"list": []any{int64(1), 1.0, "x"}},
	}
	b.end(stepRef, ports.StepChange{To: core.StatusCompleted, Out: out})
	require.Equal(b, out, b.onlyStep(ref.ID).Out)

	_, stepRef = b.step(ref, "again", nil)
	for _, refused := range []any{make(chan int), strings.Repeat("x", core.MaxContextBytes)} {
		_, err := b.repo.EndStep(b.ctx, stepRef, ports.StepChange{To: core.StatusCompleted, Out: map[string]any{"bad": refused}})
		require.ErrorContains(b, err, "results of the step")
	}
	b.end(stepRef, ports.StepChange{To: core.StatusFailed})
}

func noStepOutlivesJob(b *bench) {
	for day, end := range []core.Status{core.StatusFailed, core.StatusStopped, core.StatusCompleted, core.StatusUnknown} {
		_, ref := b.started("a", int64(day))
		_, done := b.step(ref, "done", nil)
		b.end(done, ports.StepChange{To: core.StatusCompleted})
		_, open := b.step(ref, "open", nil)
		require.NoError(b, b.checkpoint(open, ports.Checkpoint{Position: item.Position(`1`)}))
		b.events.take()
		b.change(ref, ports.JobChange{To: end})

		steps, err := b.repo.Steps(b.ctx, ref.ID)
		require.NoError(b, err)
		require.Equal(b, core.StatusCompleted, steps[0].Status)
		require.Equal(b, core.StatusFailed, steps[1].Status)
		require.Equal(b, "the job ended before the step did", steps[1].Error)
		require.False(b, steps[1].EndedAt.IsZero())
		require.Equal(b, item.Position(`1`), steps[1].Position)
		require.ErrorIs(b, b.checkpoint(open, ports.Checkpoint{}), core.ErrLostOwner)

		seen := b.events.take()
		require.Len(b, seen, 2)
		require.Equal(b, core.Transitioned{
			Machine: "step execution", Move: "end_with_job", ID: int64(open.ID), To: core.StatusFailed, Current: core.StatusStarted,
			Answer: core.Applied, Trigger: "change job",
		}, seen[1])
		require.Equal(b, 1, b.count("%saudit WHERE detail = 'the job ended before the step did' AND job_execution_id = "+b.db.Dialect().Placeholder(1), int64(ref.ID)))
	}
}

func nothingStartsAfterStop(b *bench) {
	exec, ref := b.started("a", 1)
	_, manager := b.step(ref, "parts", nil)
	parts := []core.Partition{{Name: "0"}, {Name: "1"}}
	planned, err := b.repo.PlanPartitions(b.ctx, ref, ports.PartitionPlan{Step: "parts", Manager: manager, Parts: parts})
	require.NoError(b, err)
	require.NoError(b, b.repo.BeginStep(b.ctx, stepRef(planned[0])))
	onWorkers, err := b.repo.PlanPartitions(b.ctx, ref, ports.PartitionPlan{Step: "remote", Manager: manager, Parts: parts[:1], ForWorkers: true})
	require.NoError(b, err)
	_, err = b.repo.RequestStop(b.ctx, exec.ID, ports.By{Actor: "test"})
	require.NoError(b, err)

	b.events.take()
	_, err = b.repo.StartStep(b.ctx, ref, ports.StepStart{Name: "next"})
	require.ErrorIs(b, err, core.ErrStopped)
	_, err = b.repo.StartStep(b.ctx, ref, ports.StepStart{Name: "next", Noop: true})
	require.ErrorIs(b, err, core.ErrStopped)
	require.Empty(b, b.events.take(), "that is not a fault of the caller")
	require.ErrorIs(b, b.repo.BeginStep(b.ctx, stepRef(planned[1])), core.ErrStopped)
	require.Nil(b, b.assign("w"))
	steps, err := b.repo.StepsByID(b.ctx, []core.StepExecutionID{onWorkers[0].ID})
	require.NoError(b, err)
	require.Equal(b, core.StatusStopped, steps[onWorkers[0].ID].Status)
	_, err = b.repo.StartStep(b.ctx, ports.JobRef{ID: exec.ID, Owner: owner("b"), Epoch: 1}, ports.StepStart{Name: "next"})
	require.ErrorIs(b, err, core.ErrLostOwner)
	request := b.request("a", 50)
	request.Parent, request.ParentCall = exec.ID, manager.ID
	child, err := b.repo.Launch(b.ctx, request)
	require.NoError(b, err)
	require.True(b, child.Execution.StopRequested)

	_, err = b.repo.StartStep(b.ctx, ref, ports.StepStart{Name: "recorded again", Always: true})
	require.NoError(b, err)
	last, err := b.repo.StartStep(b.ctx, ref, ports.StepStart{Name: "last", Visit: core.Visit{Flow: ports.FlowFinally, Ordinal: 1, Element: "last"}})
	require.NoError(b, err)
	cleaning, err := b.repo.PlanPartitions(b.ctx, ref, ports.PartitionPlan{Step: "last", Manager: stepRef(*last), Parts: parts[:1]})
	require.NoError(b, err)
	require.NoError(b, b.repo.BeginStep(b.ctx, stepRef(cleaning[0])))
	request = b.request("a", 51)
	request.Parent, request.ParentCall = exec.ID, last.ID
	child, err = b.repo.Launch(b.ctx, request)
	require.NoError(b, err)
	require.False(b, child.Execution.StopRequested)
	_, err = b.repo.RequestStop(b.ctx, exec.ID, ports.By{Actor: "test"})
	require.NoError(b, err)
	require.False(b, b.execution(child.Execution.ID).StopRequested, "a repeated request leaves it alone, too")
}
