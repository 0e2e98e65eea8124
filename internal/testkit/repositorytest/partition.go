package repositorytest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func partitionTests() []test {
	return []test{
		{"a plan is a step in STARTING for each partition, in order", planIsStored},
		{"the newest records of a step and its partitions", newestParts},
		{"a plan goes on with the positions and sums of earlier partitions, by name", planGoesOn},
		{"a plan with too many partitions, or a name twice or not allowed, is refused before the transaction", planIsChecked},
		{"a plan is made under the guard of its job and wholly or not at all", planIsGuarded},
		{"a planned step begins once and by its owner", planBegins},
		{"a planned step that was taken over does not begin", planIsTakenOver},
		{"the largest plan is stored, and told in its order", largestPlan},
		{"a context is saved while its execution runs, and by its owner", contextsAreSaved},
		{"processes that promote at the same time lose nothing", promotionsAreMerged},
		{"what came before an attempt is the sum of the attempts before", beforeIsSummed},
		{"a step that failed or stopped can be abandoned and keeps what it counted", endedStepIsAbandoned},
		{"how a gate was answered is stored with the end", gatesAreStored},
		{"a step counts its partitions, whatever ends them", partsAreCounted},
		{"ends of the last partitions race with the end of the job, and no transaction is a deadlock's victim", lastEndsRace},
	}
}

func parts(n int) []core.Partition {
	list := make([]core.Partition, n)
	for i := range list {
		memory := core.NewExecutionContext()
		if err := memory.Put("from", int64(i*10)); err != nil {
			panic(err)
		}
		list[i] = core.Partition{Name: fmt.Sprintf("p%d", i), Index: i, Context: memory}
	}
	return list
}

func stepRef(s core.StepExecution) ports.StepRef {
	return ports.StepRef{ID: s.ID, Owner: s.Owner, Epoch: s.Epoch}
}

func planIsStored(b *bench) {
	exec, ref := b.started("a", 1)
	b.events.take()
	planned, err := b.repo.PlanPartitions(b.ctx, ref, ports.PartitionPlan{Step: "load", Parts: parts(1201)})
	require.NoError(b, err)
	require.Len(b, planned, 1201)
	seen := b.events.take()
	require.Len(b, seen, 1201)
	require.Equal(b, core.Transitioned{
		Machine: "step execution", ID: int64(planned[7].ID), To: core.StatusStarting, Answer: core.Applied, Trigger: "plan partitions",
	}, seen[7])
	for i, p := range planned {
		require.Equal(b, fmt.Sprintf("load:p%d", i), p.Name)
	}
	stored, err := b.repo.Steps(b.ctx, exec.ID)
	require.NoError(b, err)
	require.Equal(b, planned, stored)
	from, _ := stored[7].Context.Get("from")
	require.Equal(b, int64(70), from)
	require.Equal(b, core.StatusStarting, stored[7].Status)
	require.Equal(b, owner("a"), stored[7].Owner)
	require.Equal(b, 1, b.count("%sjob_execution WHERE step_count = 1201"))
	require.Equal(b, 1, b.count("%saudit WHERE act = 'plan partitions' AND detail = 'step load, 1201 partitions' AND to_status = 'STARTING'"))

	none, err := b.repo.PlanPartitions(b.ctx, ref, ports.PartitionPlan{Step: "nothing", Parts: nil})
	require.NoError(b, err)
	require.Empty(b, none)
}

func planGoesOn(b *bench) {
	_, ref := b.started("a", 1)
	planned, err := b.repo.PlanPartitions(b.ctx, ref, ports.PartitionPlan{Step: "load", Parts: parts(2)})
	require.NoError(b, err)
	require.NoError(b, b.repo.BeginStep(b.ctx, stepRef(planned[1])))
	counters := core.Counters{Read: 5, WriteSkip: 2, Commit: 1}
	require.NoError(b, b.checkpoint(stepRef(planned[1]), ports.Checkpoint{Counters: counters, Position: item.Position(`5`)}))
	b.end(stepRef(planned[1]), ports.StepChange{To: core.StatusFailed, Counters: counters})
	b.change(ref, ports.JobChange{To: core.StatusFailed})

	_, ref = b.started("a", 1)
	history, err := b.repo.LastSteps(b.ctx, b.execution(ref.ID).InstanceID, 0)
	require.NoError(b, err)
	again := parts(2)[1:]
	require.NoError(b, again[0].Context.Put("left", "here"))
	replanned, err := b.repo.PlanPartitions(b.ctx, ref, ports.PartitionPlan{Step: "load", Parts: again, Earlier: map[string]core.StepExecution{"p1": history["load:p1"].Last}})
	require.NoError(b, err)
	require.Equal(b, item.Position(`5`), replanned[0].Position)
	require.Equal(b, counters, replanned[0].Before)
	require.Zero(b, replanned[0].Counters)
	require.Equal(b, []string{"from", "left"}, replanned[0].Context.Keys())
	require.Equal(b, replanned[0], b.onlyStep(ref.ID))
}

func newestParts(b *bench) {
	exec, ref := b.started("a", 1)
	none, err := b.repo.Newest(b.ctx, exec.InstanceID, "load")
	require.NoError(b, err)
	require.Empty(b, none)
	whole, _ := b.step(ref, "load", nil)
	other, _ := b.step(ref, "load2", nil)
	planned, err := b.repo.PlanPartitions(b.ctx, ref, ports.PartitionPlan{Step: "load", Parts: parts(2)})
	require.NoError(b, err)
	found, err := b.repo.Newest(b.ctx, exec.InstanceID, "load")
	require.NoError(b, err)
	require.Equal(b, []core.StepExecutionID{whole.ID, planned[0].ID, planned[1].ID}, idsOf(found))
	from, _ := found[2].Context.Get("from")
	require.Equal(b, int64(10), from)
	for _, s := range []core.StepExecution{*whole, *other, planned[0], planned[1]} {
		b.end(stepRef(s), ports.StepChange{To: core.StatusFailed})
	}
	b.change(ref, ports.JobChange{To: core.StatusFailed})

	_, ref = b.started("a", 1)
	again, _ := b.step(ref, "load", whole)
	replanned, err := b.repo.PlanPartitions(b.ctx, ref, ports.PartitionPlan{Step: "load", Parts: parts(2)[1:], Earlier: map[string]core.StepExecution{"p1": planned[1]}})
	require.NoError(b, err)
	found, err = b.repo.Newest(b.ctx, exec.InstanceID, "load")
	require.NoError(b, err)
	require.Equal(b, []core.StepExecutionID{again.ID, planned[0].ID, replanned[0].ID}, idsOf(found))
	for _, s := range []core.StepExecution{*again, replanned[0]} {
		b.end(stepRef(s), ports.StepChange{To: core.StatusFailed})
	}
	b.change(ref, ports.JobChange{To: core.StatusFailed})

	_, ref = b.started("a", 1)
	anew, _ := b.step(ref, "load", nil)
	found, err = b.repo.Newest(b.ctx, exec.InstanceID, "load")
	require.NoError(b, err)
	require.Equal(b, []core.StepExecutionID{anew.ID}, idsOf(found))
}

func idsOf(records []core.StepExecution) []core.StepExecutionID {
	ids := make([]core.StepExecutionID, len(records))
	for i, r := range records {
		ids[i] = r.ID
	}
	return ids
}

func planIsChecked(b *bench) {
	_, ref := b.started("a", 1)
	w := b.watch()
	for text, plan := range map[string][]core.Partition{
		"100001 partitions are more than the allowed 100000": parts(core.MaxPartitions + 1),
		`"p1" is listed twice`:                               append(parts(3), core.Partition{Name: "p1"}),
		`partition "a b"`:                                    {{Name: "a b"}},
		`partition "a:b"`:                                    {{Name: "a:b"}},
		`partition ""`:                                       {{Name: ""}},
		"1 to 200 bytes":                                     {{Name: strings.Repeat("x", 201)}},
		"partition \"\\xff\"":                                {{Name: "\xff"}},
	} {
		_, err := b.repo.PlanPartitions(b.ctx, ref, ports.PartitionPlan{Step: "load", Parts: plan})
		require.ErrorContains(b, err, text)
		require.ErrorContains(b, err, "step load")
	}
	large := parts(1)
	require.NoError(b, large[0].Context.Put("huge", strings.Repeat("x", core.MaxContextBytes)))
	_, err := b.repo.PlanPartitions(b.ctx, ref, ports.PartitionPlan{Step: "load", Parts: large})
	require.ErrorIs(b, err, core.ErrContextTooLarge)
	require.ErrorContains(b, err, "partition p0")
	require.Empty(b, w.take(), "no statement was executed")

	_, err = b.repo.PlanPartitions(b.ctx, ref, ports.PartitionPlan{Step: "load", Parts: []core.Partition{{Name: "2026/11-a_b.csv"}, {Name: "東京"}}})
	require.NoError(b, err)
}

func planIsGuarded(b *bench) {
	exec := b.launch("a", 1)
	for _, status := range statuses() {
		b.force("job_execution", int64(exec.ID), status)
		_, err := b.repo.PlanPartitions(b.ctx, jobRef(exec), ports.PartitionPlan{Step: "load", Parts: parts(1)})
		if status == core.StatusStarted || status == core.StatusStopping {
			require.NoError(b, err, status)
			continue
		}
		var refused *core.TransitionError
		require.ErrorAs(b, err, &refused, status)
	}
	b.force("job_execution", int64(exec.ID), core.StatusStarted)
	_, err := b.repo.PlanPartitions(b.ctx, ports.JobRef{ID: exec.ID, Owner: owner("b"), Epoch: 1}, ports.PartitionPlan{Step: "load", Parts: parts(1)})
	require.ErrorIs(b, err, core.ErrLostOwner)
	require.Equal(b, 2, b.count("%sstep_execution"))

	err = tx.NewManager(b.db).Do(b.ctx, tx.Attr{}, func(ctx context.Context) error {
		_, err := b.repo.PlanPartitions(ctx, jobRef(exec), ports.PartitionPlan{Step: "load", Parts: parts(700)})
		require.NoError(b, err)
		return context.Canceled
	})
	require.ErrorIs(b, err, context.Canceled)
	require.Equal(b, 2, b.count("%sstep_execution"))
}

func planBegins(b *bench) {
	_, ref := b.started("a", 1)
	planned, err := b.repo.PlanPartitions(b.ctx, ref, ports.PartitionPlan{Step: "load", Parts: parts(1)})
	require.NoError(b, err)
	step := stepRef(planned[0])
	require.ErrorIs(b, b.checkpoint(step, ports.Checkpoint{}), core.ErrLostOwner, "it has not begun")
	wrong := step
	wrong.Owner = owner("b")
	require.ErrorIs(b, b.repo.BeginStep(b.ctx, wrong), core.ErrLostOwner)
	require.NoError(b, b.repo.BeginStep(b.ctx, step))
	require.ErrorIs(b, b.repo.BeginStep(b.ctx, step), core.ErrLostOwner)
	require.NoError(b, b.checkpoint(step, ports.Checkpoint{}))
	found := b.onlyStep(ref.ID)
	require.Equal(b, core.StatusStarted, found.Status)
	require.False(b, found.StartedAt.Before(planned[0].StartedAt))
	require.Equal(b, 1, b.count("%saudit WHERE act = 'begin step' AND from_status = 'STARTING' AND to_status = 'STARTED'"))
}

func planIsTakenOver(b *bench) {
	_, ref := b.started("a", 1)
	planned, err := b.repo.PlanPartitions(b.ctx, ref, ports.PartitionPlan{Step: "load", Parts: parts(3)})
	require.NoError(b, err)
	req := b.request("b", 1)
	req.Dead = dead
	_, err = b.other().Launch(b.ctx, req)
	require.NoError(b, err)
	for _, p := range planned {
		require.ErrorIs(b, b.repo.BeginStep(b.ctx, stepRef(p)), core.ErrLostOwner)
	}
	require.Equal(b, 3, b.count("%sstep_execution WHERE status = 'FAILED'"))
}

// largestPlan stores a plan of many batches; if SURFIN_SOAK is set, the largest one that is
// allowed, which takes half a minute with the race detector.
func largestPlan(b *bench) {
	_, ref := b.started("a", 1)
	n := core.MaxPartitions
	if os.Getenv("SURFIN_SOAK") == "" {
		n /= 10
	}
	plan := parts(n)
	begin := time.Now()
	planned, err := b.repo.PlanPartitions(b.ctx, ref, ports.PartitionPlan{Step: "load", Parts: plan})
	require.NoError(b, err)
	require.Len(b, planned, n)
	b.Logf("%d partitions in %v", len(planned), time.Since(begin))
	require.Equal(b, fmt.Sprintf("load:p%d", n-1), planned[n-1].Name)
	require.Equal(b, n, b.count("%sstep_execution"))
}

func contextsAreSaved(b *bench) {
	_, ref := b.started("a", 1)
	_, step := b.step(ref, "load", nil)
	w := b.watch()
	memory := core.NewExecutionContext()
	saves := map[string]func(c *core.ExecutionContext, owner core.Owner) error{
		"job": func(c *core.ExecutionContext, owner core.Owner) error {
			return b.repo.SaveJobContext(b.ctx, ports.JobRef{ID: ref.ID, Owner: owner, Epoch: ref.Epoch}, c)
		},
		"step": func(c *core.ExecutionContext, owner core.Owner) error {
			return b.repo.SaveStepContext(b.ctx, ports.StepRef{ID: step.ID, Owner: owner, Epoch: step.Epoch}, c)
		},
	}
	for name, save := range saves {
		require.NoError(b, save(nil, ref.Owner))
		require.NoError(b, save(core.NewExecutionContext(), ref.Owner))
		require.Empty(b, w.take(), "%s: nothing changed", name)
	}
	require.NoError(b, memory.Put("verdict", "north"))
	for name, save := range saves {
		require.NoError(b, save(memory, ref.Owner), name)
		require.Len(b, w.take(), map[string]int{"job": 2, "step": 1}[name], name)
		require.True(b, memory.Changed(), "marked as stored by the caller")
		require.ErrorIs(b, save(memory, owner("b")), core.ErrLostOwner, name)
		w.take()
		large := core.NewExecutionContext()
		require.NoError(b, large.Put("huge", strings.Repeat("x", core.MaxContextBytes)))
		require.ErrorIs(b, save(large, ref.Owner), core.ErrContextTooLarge, name)
	}
	require.Equal(b, []string{"verdict"}, b.execution(ref.ID).Context.Keys())
	require.Equal(b, []string{"verdict"}, b.onlyStep(ref.ID).Context.Keys())
	b.change(ref, ports.JobChange{To: core.StatusFailed})
	for name, save := range saves {
		require.ErrorIs(b, save(memory, ref.Owner), core.ErrLostOwner, "%s: it is over", name)
	}
}

func promotionsAreMerged(b *bench) {
	ref, _, _ := b.managed(2, true)
	with := func(key string, value int64) *core.ExecutionContext {
		c := core.NewExecutionContext()
		require.NoError(b, c.Put(key, value))
		return c
	}
	require.NoError(b, b.repo.SaveJobContext(b.ctx, ref, with("mine", 1)))
	copied := b.execution(ref.ID).Context
	var all sync.WaitGroup
	for i, name := range []string{"w", "v"} {
		part := stepRef(b.assign(name).Step)
		all.Go(func() {
			for n := range int64(10) {
				if err := b.repo.PromotePartition(b.ctx, part, with(fmt.Sprint("part", i, n), n)); err != nil {
					b.Errorf("promote: %v", err)
				}
			}
		})
		foreign := part
		foreign.Epoch--
		require.ErrorIs(b, b.repo.PromotePartition(b.ctx, foreign, with("x", 1)), core.ErrLostOwner)
	}
	all.Go(func() {
		for n := range int64(10) {
			if err := b.repo.SaveJobContext(b.ctx, ref, with(fmt.Sprint("own", n), n)); err != nil {
				b.Errorf("save: %v", err)
			}
		}
	})
	all.Wait()
	require.NoError(b, copied.Put("late", true))
	copied.Delete("mine")
	b.change(ref, ports.JobChange{To: core.StatusFailed, Context: copied})
	keys := b.execution(ref.ID).Context.Keys()
	require.Len(b, keys, 31, "three times ten, and the one of an older copy")
	require.NotContains(b, keys, "mine")
}

func beforeIsSummed(b *bench) {
	_, ref := b.started("a", 1)
	one := core.Counters{Read: 1, Filter: 2, Write: 3, ReadSkip: 4, ProcessSkip: 5, WriteSkip: 6, Commit: 7, Rollback: 8}
	var earlier *core.StepExecution
	var total core.Counters
	for range 3 {
		step, stepRef := b.step(ref, "load", earlier)
		require.Equal(b, total, step.Before)
		b.end(stepRef, ports.StepChange{To: core.StatusFailed, Counters: one})
		total = total.Add(one)
		steps, err := b.repo.LastSteps(b.ctx, b.execution(ref.ID).InstanceID, 0)
		require.NoError(b, err)
		last := steps["load"].Last
		require.Equal(b, one, last.Counters)
		require.Equal(b, total, last.Total())
		earlier = &last
	}
	fresh, _ := b.step(ref, "load", nil)
	require.Zero(b, fresh.Before)
}

func endedStepIsAbandoned(b *bench) {
	for day, end := range []core.Status{core.StatusFailed, core.StatusStopped} {
		_, ref := b.started("a", int64(day))
		_, step := b.step(ref, "load", nil)
		counters := core.Counters{Read: 3, Rollback: 1}
		b.end(step, ports.StepChange{To: end, ExitCode: "WAIT", Error: "no file", Counters: counters, Out: map[string]any{"a": int64(1)}})
		ended := b.onlyStep(ref.ID)
		b.end(step, ports.StepChange{To: core.StatusAbandoned})
		want := ended
		want.Status = core.StatusAbandoned
		require.Equal(b, want, b.onlyStep(ref.ID))
	}
}

func gatesAreStored(b *bench) {
	_, ref := b.started("a", 1)
	_, step := b.step(ref, "load", nil)
	b.end(step, ports.StepChange{To: core.StatusFailed, Gate: "step.skips == 0 does not hold: 3"})
	b.change(ref, ports.JobChange{To: core.StatusFailed, ExitCode: core.ExitExpectFailed, Gate: "no"})
	require.Equal(b, "step.skips == 0 does not hold: 3", b.onlyStep(ref.ID).Gate)
	require.Equal(b, "no", b.execution(ref.ID).Gate)
	b.change(ref, ports.JobChange{To: core.StatusAbandoned})
	require.Equal(b, "no", b.execution(ref.ID).Gate)
}

func (b *bench) managed(n int, forWorkers bool) (ports.JobRef, ports.StepRef, []core.StepExecution) {
	b.Helper()
	_, ref := b.started("a", 1)
	_, manager := b.step(ref, "load", nil)
	planned, err := b.repo.PlanPartitions(b.ctx, ref, ports.PartitionPlan{Manager: manager, Step: "load", Parts: parts(n), ForWorkers: forWorkers})
	require.NoError(b, err)
	return ref, manager, planned
}

func (b *bench) open(manager ports.StepRef) int64 {
	b.Helper()
	open, err := b.repo.OpenParts(b.ctx, manager.ID)
	require.NoError(b, err)
	return open
}

func partsAreCounted(b *bench) {
	ref, manager, planned := b.managed(5, false)
	require.EqualValues(b, 5, b.open(manager))
	found, err := b.repo.Partitions(b.ctx, manager.ID)
	require.NoError(b, err)
	require.Equal(b, planned, found)
	require.Equal(b, manager.ID, found[0].Manager)

	one := stepRef(planned[0])
	require.NoError(b, b.repo.BeginStep(b.ctx, one))
	require.EqualValues(b, 5, b.open(manager))
	b.end(one, ports.StepChange{To: core.StatusFailed})
	require.EqualValues(b, 4, b.open(manager))
	_, err = b.repo.EndStep(b.ctx, one, ports.StepChange{To: core.StatusFailed})
	require.NoError(b, err)
	b.end(one, ports.StepChange{To: core.StatusAbandoned})
	require.EqualValues(b, 4, b.open(manager), "it was over")
	require.Error(b, tx.NewManager(b.db).Do(b.ctx, tx.Attr{}, func(ctx context.Context) error {
		_, err := b.repo.EndStep(ctx, stepRef(planned[1]), ports.StepChange{To: core.StatusStopped})
		require.NoError(b, err)
		return context.Canceled
	}))
	require.EqualValues(b, 4, b.open(manager), "the end is rolled back")
	b.end(stepRef(planned[1]), ports.StepChange{To: core.StatusStopped})
	require.EqualValues(b, 3, b.open(manager))
	b.change(ref, ports.JobChange{To: core.StatusFailed})
	require.Zero(b, b.open(manager))

	_, err = b.repo.PlanPartitions(b.ctx, ref, ports.PartitionPlan{Manager: manager, Step: "load", Parts: parts(1)})
	require.Error(b, err)
	_, ref = b.started("a", 2)
	_, err = b.repo.PlanPartitions(b.ctx, ref, ports.PartitionPlan{Manager: manager, Step: "load", Parts: parts(1)})
	require.ErrorIs(b, err, core.ErrLostOwner, "the step is over")
}

func lastEndsRace(b *bench) {
	for range 5 {
		ref, manager, planned := b.managed(8, false)
		var all sync.WaitGroup
		for i, p := range planned {
			all.Go(func() {
				repo := b.repo
				if i%2 == 1 {
					repo = b.other()
				}
				_, err := repo.EndStep(b.ctx, stepRef(p), ports.StepChange{To: core.StatusStopped})
				if err != nil && !errors.Is(err, core.ErrLostOwner) {
					b.Error(err)
				}
			})
		}
		all.Go(func() {
			if _, err := b.repo.ChangeJob(b.ctx, ref, ports.JobChange{To: core.StatusFailed}); err != nil {
				b.Error(err)
			}
		})
		all.Wait()
		require.Zero(b, b.open(manager))
		require.Zero(b, b.count("%sstep_execution WHERE status NOT IN ('STOPPED', 'FAILED')"))
	}
}
