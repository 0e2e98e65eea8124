package repositorytest

import (
	"context"
	"errors"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func transitionTests() []test {
	return []test{
		{"a job execution answers every state and every move as the table says", jobTable},
		{"a step execution answers every state and every move as the table says", stepTable},
		{"an execution that is not there is not found", unknownIsNotFound},
		{"a transition writes what came with it", jobChangeIsWritten},
		{"a final status ends the activity of its instance", finalStatusClearsActive},
		{"a message that no database could hold is stored all the same", hostileMessages},
		{"a transition is part of the transaction that the context carries", transitionJoins},
		{"a transition and its audit row are one", auditIsOne},
		{"a start whose reply was lost finds its own step, and its own plan", startedAgain},
		{"an owner whose reclaims got no reply ends its step, and an abandoned attempt does not", lostReclaims},
	}
}

func table(b *bench, kind string, id int64, change func(owner core.Owner, epoch int64, to core.Status) (core.Answer, error)) {
	name := strings.ReplaceAll(kind, " ", "_")
	status := func() (s core.Status) {
		query := b.prefixed("SELECT status FROM %s" + name + " WHERE id = " + b.db.Dialect().Placeholder(1))
		require.NoError(b, b.db.Conn().QueryRowContext(b.ctx, query, id).Scan(&s))
		return s
	}
	for _, current := range statuses() {
		for _, to := range statuses() {
			pair := kind + " " + string(current) + " to " + string(to)
			b.force(name, id, current)
			audits := b.count("%saudit")
			b.events.take()

			for _, lost := range []ports.JobRef{{Owner: owner("a"), Epoch: 2}, {Owner: owner("b"), Epoch: 1}} {
				answer, err := change(lost.Owner, lost.Epoch, to)
				require.Equal(b, core.Rejected, answer, pair)
				require.ErrorIs(b, err, core.ErrLostOwner, pair)
				require.Equal(b, current, status(), pair)
			}
			answer, err := change(owner("a"), 1, to)
			move := ports.MoveTo(to)
			want := legal(move.Name, current)
			require.Equal(b, want, answer, pair)
			after := current
			if want == core.Applied {
				after = to
				audits++
				again, err := change(owner("a"), 1, to)
				require.NoError(b, err, pair)
				require.Equal(b, core.Duplicate, again, pair)
				require.Equal(b, core.Duplicate, b.events.last().Answer, pair)
			}
			require.Equal(b, after, status(), pair)
			require.Equal(b, audits, b.count("%saudit"), pair)
			if want == core.Rejected {
				refused, ok := errors.AsType[*core.TransitionError](err)
				require.True(b, ok, pair)
				require.NotErrorIs(b, err, core.ErrLostOwner, pair)
				require.Equal(b, core.TransitionError{Machine: kind, ID: id, Move: move.Name, From: move.From, To: to, Current: current, Epoch: 1}, *refused)
			} else {
				require.NoError(b, err, pair)
			}
			seen := b.events.take()
			require.GreaterOrEqual(b, len(seen), 3, pair)
			require.Equal(b, []string{kind, move.Name}, []string{seen[2].Machine, seen[2].Move})
			require.Equal(b, []any{id, to, current, want}, []any{seen[2].ID, seen[2].To, seen[2].Current, seen[2].Answer}, pair)
		}
	}
}

func jobTable(b *bench) {
	exec := b.launch("a", 1)
	table(b, "job execution", int64(exec.ID), func(owner core.Owner, epoch int64, to core.Status) (core.Answer, error) {
		return b.repo.ChangeJob(b.ctx, ports.JobRef{ID: exec.ID, Owner: owner, Epoch: epoch}, ports.JobChange{To: to})
	})
}

func stepTable(b *bench) {
	_, ref := b.started("a", 1)
	step, _ := b.step(ref, "one", nil)
	table(b, "step execution", int64(step.ID), func(owner core.Owner, epoch int64, to core.Status) (core.Answer, error) {
		return b.repo.EndStep(b.ctx, ports.StepRef{ID: step.ID, Owner: owner, Epoch: epoch}, ports.StepChange{To: to})
	})
}

func unknownIsNotFound(b *bench) {
	answer, err := b.repo.ChangeJob(b.ctx, ports.JobRef{ID: 99}, ports.JobChange{To: core.StatusFailed})
	require.Equal(b, core.Rejected, answer)
	require.ErrorIs(b, err, core.ErrNotFound)
	require.ErrorContains(b, err, "no such row")
	answer, err = b.repo.EndStep(b.ctx, ports.StepRef{ID: 99}, ports.StepChange{To: core.StatusFailed})
	require.Equal(b, core.Rejected, answer)
	require.ErrorIs(b, err, core.ErrNotFound)
	_, err = b.repo.StartStep(b.ctx, ports.JobRef{ID: 99}, ports.StepStart{Name: "one"})
	require.ErrorIs(b, err, core.ErrNotFound)
}

func jobChangeIsWritten(b *bench) {
	exec, ref := b.started("a", 1)
	found := b.execution(exec.ID)
	require.Equal(b, core.StatusStarted, found.Status)
	require.False(b, found.StartedAt.Before(found.CreatedAt))
	require.True(b, found.EndedAt.IsZero())

	memory := core.NewExecutionContext()
	require.NoError(b, memory.Put("file", "in.csv"))
	b.change(ref, ports.JobChange{To: core.StatusCompleted, ExitCode: "COMPLETED WITH SKIPS", Error: "3 skipped", Context: memory})
	require.True(b, memory.Changed(), "only the caller knows of the commit")
	found = b.execution(exec.ID)
	require.Equal(b, "COMPLETED WITH SKIPS", found.ExitCode)
	require.Equal(b, "3 skipped", found.Error)
	require.False(b, found.EndedAt.Before(found.StartedAt))
	file, _ := found.Context.Get("file")
	require.Equal(b, "in.csv", file)

	large := core.NewExecutionContext()
	require.NoError(b, large.Put("huge", strings.Repeat("x", core.MaxContextBytes)))
	_, err := b.repo.ChangeJob(b.ctx, ref, ports.JobChange{To: core.StatusFailed, Context: large})
	require.ErrorIs(b, err, core.ErrContextTooLarge)
	require.ErrorContains(b, err, `"huge"`)
}

func finalStatusClearsActive(b *bench) {
	for day, end := range []core.Status{core.StatusCompleted, core.StatusStopped, core.StatusFailed, core.StatusUnknown, core.StatusAbandoned} {
		_, ref := b.started("a", int64(day))
		require.Equal(b, 1, b.count("%sjob_execution WHERE active = 1"))
		if end == core.StatusAbandoned {
			_, err := b.repo.RequestStop(b.ctx, ref.ID, ports.By{Actor: "test"})
			require.NoError(b, err)
			require.Equal(b, 1, b.count("%sjob_execution WHERE active = 1"))
		}
		b.change(ref, ports.JobChange{To: end})
		require.Zero(b, b.count("%sjob_execution WHERE active = 1"))
	}
}

func hostileMessages(b *bench) {
	_, ref := b.started("a", 1)
	_, step := b.step(ref, "one", nil)
	message := "line 7: \xff\xfe\x00 'quoted' ? $1 " + strings.Repeat("é", 1<<20)
	b.end(step, ports.StepChange{To: core.StatusFailed, ExitCode: "F\x00", Error: message})
	b.change(ref, ports.JobChange{To: core.StatusFailed, Error: message})
	for _, stored := range []string{b.onlyStep(ref.ID).Error, b.execution(ref.ID).Error} {
		require.True(b, strings.HasPrefix(stored, "line 7: \uFFFD\uFFFD 'quoted' ? $1 éé"), "%q", stored[:40])
		require.Regexp(b, `é… \(\d+ bytes more\)$`, stored[len(stored)-40:])
	}
}

func transitionJoins(b *bench) {
	_, ref := b.started("a", 1)
	step, stepRef := b.step(ref, "one", nil)
	undo := errors.New("undo")
	b.events.take()
	err := tx.NewManager(b.db).Do(b.ctx, tx.Attr{}, func(ctx context.Context) error {
		answer, err := b.repo.EndStep(ctx, stepRef, ports.StepChange{To: core.StatusCompleted})
		require.NoError(b, err)
		require.Equal(b, core.Applied, answer)
		return undo
	})
	require.ErrorIs(b, err, undo)
	require.Equal(b, *step, b.onlyStep(ref.ID), "the success went with the work (rule T5)")
	require.Empty(b, b.events.take(), "what is rolled back has not happened (rule R7)")
	b.end(stepRef, ports.StepChange{To: core.StatusFailed})

	require.NoError(b, tx.NewManager(b.db).Do(b.ctx, tx.Attr{}, func(ctx context.Context) error {
		_, err := b.repo.EndStep(ctx, ports.StepRef{ID: step.ID, Owner: owner("b"), Epoch: 1}, ports.StepChange{To: core.StatusCompleted})
		require.ErrorIs(b, err, core.ErrLostOwner)
		b.events.take()
		_, err = b.repo.ChangeJob(ctx, ref, ports.JobChange{To: core.StatusCompleted})
		require.Empty(b, b.events.take(), "it is not committed yet")
		return err
	}), "a rejection does not doom the transaction by itself")
	require.Equal(b, core.StatusCompleted, b.events.last().To)
	require.Equal(b, core.StatusCompleted, b.execution(ref.ID).Status)
}

func auditIsOne(b *bench) {
	_, ref := b.started("a", 1)
	_, step := b.step(ref, "one", nil)
	b.end(step, ports.StepChange{To: core.StatusFailed, Error: "disk full"})
	b.change(ref, ports.JobChange{To: core.StatusFailed, Error: "step one failed"})

	rows, err := b.db.Conn().QueryContext(b.ctx, b.prefixed("SELECT act, actor, step_execution_id, from_status, to_status, epoch, detail FROM %saudit ORDER BY id"))
	require.NoError(b, err)
	type line struct {
		act, actor, from, to, detail string
		step, epoch                  int64
	}
	var lines []line
	for rows.Next() {
		var l line
		require.NoError(b, rows.Scan(&l.act, &l.actor, &l.step, &l.from, &l.to, &l.epoch, &l.detail))
		lines = append(lines, l)
	}
	require.NoError(b, rows.Err())
	require.NoError(b, rows.Close())
	me := owner("a").String()
	require.Equal(b, []line{
		{act: "launch", actor: me, to: "STARTING", epoch: 1},
		{act: "change job", actor: me, from: "STARTING", to: "STARTED", epoch: 1},
		{act: "start step", actor: me, step: int64(step.ID), to: "STARTED", epoch: 1},
		{act: "end step", actor: me, step: int64(step.ID), from: "STARTED", to: "FAILED", epoch: 1, detail: "disk full"},
		{act: "change job", actor: me, from: "STARTED", to: "FAILED", epoch: 1, detail: "step one failed"},
	}, lines)
}

func startedAgain(b *bench) {
	_, ref := b.started("a", 1)
	start := ports.StepStart{Name: "load", Visit: core.Visit{Ordinal: 1, Element: "load"}}
	first, err := b.repo.StartStep(b.ctx, ref, start)
	require.NoError(b, err)
	start.Again = true
	second, err := b.repo.StartStep(b.ctx, ref, start)
	require.NoError(b, err)
	require.Equal(b, first.ID, second.ID)
	start.Visit.Ordinal = 2 // of the next round
	third, err := b.repo.StartStep(b.ctx, ref, start)
	require.NoError(b, err)
	require.NotEqual(b, first.ID, third.ID)

	plan := ports.PartitionPlan{Manager: stepRef(*first), Step: "load", Parts: parts(3)}
	planned, err := b.repo.PlanPartitions(b.ctx, ref, plan)
	require.NoError(b, err)
	plan.Again = true
	again, err := b.repo.PlanPartitions(b.ctx, ref, plan)
	require.NoError(b, err)
	require.Len(b, again, 3)
	for i := range planned {
		require.Equal(b, planned[i].ID, again[i].ID)
	}
	open, err := b.repo.OpenParts(b.ctx, first.ID)
	require.NoError(b, err)
	require.Equal(b, int64(3), open, "they are counted once")
}

func lostReclaims(b *bench) {
	_, ref := b.started("a", 1)
	record, step := b.step(ref, "load", nil)
	counters := core.Counters{Read: 2, Write: 2, Commit: 1}
	require.NoError(b, b.checkpoint(step, ports.Checkpoint{Counters: counters, Position: item.Position(`2`)}))
	for i := range int64(3) { // each from the epoch that the owner knows
		raised, found, err := b.repo.Reclaim(b.ctx, step)
		require.NoError(b, err)
		require.Equal(b, step.Epoch+i+1, raised.Epoch)
		require.Equal(b, counters, found.Counters)
		require.Equal(b, item.Position(`2`), found.Position)
	}
	require.ErrorIs(b, b.checkpoint(step, ports.Checkpoint{}), core.ErrLostOwner, "the old transaction is fenced all the same")
	other := step
	other.Owner = owner("b")
	_, err := b.repo.EndStep(b.ctx, other, ports.StepChange{To: core.StatusUnknown})
	require.ErrorIs(b, err, core.ErrLostOwner)
	b.end(step, ports.StepChange{To: core.StatusUnknown})
	require.Equal(b, core.StatusUnknown, b.onlyStep(ref.ID).Status)

	b.force("step_execution", int64(record.ID), core.StatusStarted)
	_, again := b.step(ref, "again", nil)
	_, _, err = b.repo.Reclaim(b.ctx, again)
	require.NoError(b, err)
	fenced, _, err := b.repo.Fence(b.ctx, again) // the executor knows no newer epoch either
	require.NoError(b, err)
	_, _, err = b.repo.Reclaim(b.ctx, again)
	require.ErrorIs(b, err, core.ErrLostOwner, "the attempt was abandoned (rule L8)")
	_, err = b.repo.EndStep(b.ctx, again, ports.StepChange{To: core.StatusCompleted})
	require.ErrorIs(b, err, core.ErrLostOwner)
	b.end(fenced, ports.StepChange{To: core.StatusFailed})
}
