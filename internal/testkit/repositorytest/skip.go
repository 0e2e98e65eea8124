package repositorytest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/fault"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func skipTests() []test {
	return []test{
		{"skipped items are stored with their checkpoint and not without", skipsCommit},
		{"a skipped item comes back as it was stored", skipRoundTrip},
		{"a checkpoint that lost its owner stores no skipped item", skipsAreGuarded},
		{"skipped items are listed page by page and by filter", skipsByFilter},
		{"a skipped item is marked as redriven once", redrivenOnce},
		{"a marked item is forgotten with the transaction that marked it", redrivenRollsBack},
		{"a redrive and what it redrives know each other", redriveIsLinked},
		{"skipped items cost one more statement for each small batch", skipCost},
		{"a reclaimed step answers what is committed and shuts out the old epoch", reclaims},
		{"reclaiming waits for the transaction whose commit is in doubt", reclaimWaits},
		{"a step that is over or another owner's cannot be reclaimed", reclaimIsGuarded},
	}
}

func skip(n int) core.SkippedItem {
	return core.SkippedItem{
		Phase: core.PhaseProcess, Meta: item.Meta{Path: "in.csv", Line: int64(n)}, Mark: item.Position(fmt.Sprint(n)),
		Item: json.RawMessage(fmt.Sprintf(`{"id":%d}`, n)), Class: "invalid_item", Error: "bad",
	}
}

func skips(n int) []core.SkippedItem {
	list := make([]core.SkippedItem, n)
	for i := range list {
		list[i] = skip(i + 1)
	}
	return list
}

func (b *bench) skipped(filter ports.SkipFilter) []core.SkippedItem {
	b.Helper()
	items, err := b.repo.SkippedItems(b.ctx, filter)
	require.NoError(b, err)
	return items
}

func skipIDs(items []core.SkippedItem) []int64 {
	ids := make([]int64, len(items))
	for i, s := range items {
		ids[i] = s.ID
	}
	return ids
}

func skipsCommit(b *bench) {
	_, ref := b.started("a", 1)
	_, step := b.step(ref, "load", nil)
	undone := errors.New("undone")
	err := tx.NewManager(b.db).Do(b.ctx, tx.Attr{}, func(ctx context.Context) error {
		require.NoError(b, b.repo.Checkpoint(ctx, step, ports.Checkpoint{Skipped: skips(2)}))
		return undone
	})
	require.ErrorIs(b, err, undone)
	require.Empty(b, b.skipped(ports.SkipFilter{Execution: ref.ID}))

	require.NoError(b, b.checkpoint(step, ports.Checkpoint{Counters: core.Counters{ProcessSkip: 2}, Skipped: skips(2)}))
	require.Len(b, b.skipped(ports.SkipFilter{Execution: ref.ID}), 2)
	require.Equal(b, int64(2), b.onlyStep(ref.ID).Counters.ProcessSkip)
}

func skipRoundTrip(b *bench) {
	_, ref := b.started("a", 1)
	_, step := b.step(ref, "load", nil)
	full := core.SkippedItem{
		Phase: core.PhaseWrite, Meta: item.Meta{Path: "ä\x00\xff.csv", Line: 1 << 40, Index: 1 << 41, Row: 3}, Mark: item.Position(`{"at":1}`),
		Item: json.RawMessage(`{"名":"\u0000"}`), Truncated: true, SHA256: "abc", Class: "unique", Error: "x\x00\xff" + strings.Repeat("é", 40<<10),
	}
	full.Fault = fault.Place{Field: "né", Column: 2, From: 2, To: 3}
	raw := item.RawText{Text: "7,é\x00\n", Offset: 1 << 40, Length: 5, Columns: []string{"id", "né"}}
	full.Raw = &raw
	require.NoError(b, b.checkpoint(step, ports.Checkpoint{Skipped: []core.SkippedItem{full, {Phase: core.PhaseRead}}}))
	found := b.skipped(ports.SkipFilter{})
	require.Len(b, found, 2)
	first, err := b.repo.SkippedItem(b.ctx, found[0].ID)
	require.NoError(b, err)
	require.Equal(b, found[0], *first)
	require.False(b, first.CreatedAt.IsZero())

	want := full
	want.ID, want.CreatedAt = first.ID, first.CreatedAt
	want.JobExecutionID, want.StepExecutionID, want.Step = ref.ID, step.ID, "load"
	want.Meta.Path, want.Error = "ä\uFFFD\uFFFD.csv", first.Error
	require.Equal(b, want, *first)
	require.True(b, strings.HasPrefix(first.Error, "x\uFFFD\uFFFDé"))
	require.Less(b, len(first.Error), 40<<10)

	bare := core.SkippedItem{
		ID: first.ID + 1, JobExecutionID: ref.ID, StepExecutionID: step.ID, Step: "load", Phase: core.PhaseRead, CreatedAt: found[1].CreatedAt,
	}
	require.Equal(b, bare, found[1])
	_, err = b.repo.SkippedItem(b.ctx, first.ID+2)
	require.ErrorIs(b, err, core.ErrNotFound)
	require.ErrorIs(b, b.checkpoint(step, ports.Checkpoint{Skipped: []core.SkippedItem{{Mark: make(item.Position, ports.MaxPositionBytes+1)}}}), core.ErrContextTooLarge)
}

func skipsAreGuarded(b *bench) {
	_, ref := b.started("a", 1)
	_, step := b.step(ref, "load", nil)
	step.Epoch++
	require.NoError(b, tx.NewManager(b.db).Do(b.ctx, tx.Attr{}, func(ctx context.Context) error {
		require.ErrorIs(b, b.repo.Checkpoint(ctx, step, ports.Checkpoint{Skipped: skips(1)}), core.ErrLostOwner)
		return nil // even if the caller does not roll back
	}))
	require.Empty(b, b.skipped(ports.SkipFilter{}))
}

func skipsByFilter(b *bench) {
	_, ref := b.started("a", 1)
	_, one := b.step(ref, "one", nil)
	_, two := b.step(ref, "two", nil)
	_, other := b.started("a", 2)
	_, elsewhere := b.step(other, "one", nil)
	for range 3 { // interleaved, as concurrent steps would store them
		for _, step := range []ports.StepRef{one, elsewhere, two} {
			read := skip(9)
			read.Phase = core.PhaseRead
			require.NoError(b, b.checkpoint(step, ports.Checkpoint{Skipped: append(skips(2), read)}))
		}
	}
	all := b.skipped(ports.SkipFilter{Execution: ref.ID})
	require.Len(b, all, 18)
	require.IsIncreasing(b, skipIDs(all))
	require.Len(b, b.skipped(ports.SkipFilter{}), 27)
	require.Len(b, b.skipped(ports.SkipFilter{Execution: ref.ID, Step: "two"}), 9)
	require.Len(b, b.skipped(ports.SkipFilter{Execution: ref.ID, Phase: core.PhaseRead}), 6)
	require.Len(b, b.skipped(ports.SkipFilter{Execution: ref.ID, Step: "two", Phase: core.PhaseRead}), 3)
	require.Empty(b, b.skipped(ports.SkipFilter{Execution: ref.ID, Step: "three"}))
	require.Empty(b, b.skipped(ports.SkipFilter{Execution: other.ID, Step: "two"}))

	var paged []core.SkippedItem
	filter := ports.SkipFilter{Execution: ref.ID, Limit: 5}
	for {
		page := b.skipped(filter)
		if len(page) == 0 {
			break
		}
		require.LessOrEqual(b, len(page), 5)
		paged = append(paged, page...)
		filter.After = page[len(page)-1].ID
	}
	require.Equal(b, all, paged)
	require.NoError(b, b.checkpoint(one, ports.Checkpoint{Skipped: skips(60)}))
	require.Len(b, b.skipped(ports.SkipFilter{Execution: ref.ID}), 50, "the default page")
}

func (b *bench) mark(by core.JobExecutionID, ids ...int64) error {
	return tx.NewManager(b.db).Do(b.ctx, tx.Attr{}, func(ctx context.Context) error {
		return b.repo.MarkRedriven(ctx, by, ids)
	})
}

func redrivenOnce(b *bench) {
	_, ref := b.started("a", 1)
	_, step := b.step(ref, "load", nil)
	require.NoError(b, b.checkpoint(step, ports.Checkpoint{Skipped: skips(2500)}))
	left := ports.SkipFilter{Execution: ref.ID, Left: true, Limit: 5000}
	ids := skipIDs(b.skipped(left))
	require.Len(b, ids, 2500)
	require.NoError(b, b.mark(77, ids[:2400]...))
	require.Equal(b, ids[2400:], skipIDs(b.skipped(left)))
	marked, err := b.repo.SkippedItem(b.ctx, ids[0])
	require.NoError(b, err)
	require.Equal(b, core.JobExecutionID(77), marked.RedrivenBy)

	require.ErrorIs(b, b.mark(78, ids[2399:]...), ports.ErrRedriven)
	require.Len(b, b.skipped(left), 100, "all or none")
	require.ErrorIs(b, b.mark(78, ids[2499]+1), ports.ErrRedriven, "one that is not there")
	require.NoError(b, b.mark(78))
	require.ErrorIs(b, b.repo.MarkRedriven(b.ctx, 78, ids[2400:]), tx.ErrNoTransaction)
}

func redrivenRollsBack(b *bench) {
	_, ref := b.started("a", 1)
	_, step := b.step(ref, "load", nil)
	require.NoError(b, b.checkpoint(step, ports.Checkpoint{Skipped: skips(1)}))
	ids := skipIDs(b.skipped(ports.SkipFilter{}))
	undone := errors.New("undone")
	require.ErrorIs(b, tx.NewManager(b.db).Do(b.ctx, tx.Attr{}, func(ctx context.Context) error {
		require.NoError(b, b.repo.MarkRedriven(ctx, 77, ids))
		return undone
	}), undone)
	require.Len(b, b.skipped(ports.SkipFilter{Left: true}), 1)
}

func redriveIsLinked(b *bench) {
	original, _ := b.started("a", 1)
	var redrives []core.JobExecutionID
	for day := range int64(3) {
		req := b.request("a", 100+day)
		req.RedriveOf = original.ID
		launched, err := b.repo.Launch(b.ctx, req)
		require.NoError(b, err)
		require.Equal(b, original.ID, launched.Execution.RedriveOf)
		require.Equal(b, original.ID, b.execution(launched.Execution.ID).RedriveOf)
		redrives = append([]core.JobExecutionID{launched.Execution.ID}, redrives...)
	}
	require.Zero(b, b.execution(original.ID).RedriveOf)
	require.Equal(b, redrives, b.list(ports.ExecutionFilter{RedriveOf: original.ID}))
	require.Equal(b, redrives[1:], b.list(ports.ExecutionFilter{RedriveOf: original.ID, Before: redrives[0], Statuses: statuses()}))
	require.Empty(b, b.list(ports.ExecutionFilter{RedriveOf: redrives[0]}))
}

func skipCost(b *bench) {
	w := b.watch()
	_, ref := b.started("a", 1)
	_, step := b.step(ref, "load", nil)
	rows := map[tx.Dialect]int{tx.SQLite: 9, tx.Postgres: 294, tx.MySQL: 294}[w.Dialect()] // in one statement
	for _, n := range []int{0, 1, 9, 10, 1000} {
		w.take()
		require.NoError(b, tx.NewManager(w).Do(b.ctx, tx.Attr{}, func(ctx context.Context) error {
			return b.repo.Checkpoint(ctx, step, ports.Checkpoint{Skipped: skips(n)})
		}))
		seen := w.take()
		require.Equal(b, 1+(n+rows-1)/rows, len(seen), "statements for %d skips", n)
		require.True(b, strings.HasPrefix(seen[0].text, "UPDATE "))
		for _, s := range seen[1:] {
			require.True(b, strings.HasPrefix(s.text, "INSERT "))
		}
	}
	b.skipped(ports.SkipFilter{Execution: ref.ID, Step: "load", Left: true})
	require.Len(b, w.take(), 1)
	_, _, err := b.repo.Reclaim(b.ctx, step)
	require.NoError(b, err)
	require.Len(b, w.take(), 1)
}

func reclaims(b *bench) {
	_, ref := b.started("a", 1)
	_, step := b.step(ref, "load", nil)
	memory := core.NewExecutionContext()
	require.NoError(b, memory.Put("k", "v"))
	counters := core.Counters{Read: 3, Write: 2, ReadSkip: 1, Commit: 1, Rollback: 4}
	require.NoError(b, b.checkpoint(step, ports.Checkpoint{Counters: counters, Position: item.Position(`7`), Context: memory}))

	next, found, err := b.repo.Reclaim(b.ctx, step)
	require.NoError(b, err)
	require.Equal(b, ports.StepRef{ID: step.ID, Owner: step.Owner, Epoch: step.Epoch + 1}, next)
	require.Equal(b, counters, found.Counters)
	require.Equal(b, item.Position(`7`), found.Position)
	require.Equal(b, []string{"k"}, found.Context.Keys())
	require.ErrorIs(b, b.checkpoint(step, ports.Checkpoint{Position: item.Position(`8`)}), core.ErrLostOwner)
	require.NoError(b, b.checkpoint(next, ports.Checkpoint{Counters: counters, Position: item.Position(`8`)}))
	again, found, err := b.repo.Reclaim(b.ctx, next)
	require.NoError(b, err)
	require.Equal(b, item.Position(`8`), found.Position)
	b.end(again, ports.StepChange{To: core.StatusCompleted, Counters: counters})
}

func reclaimWaits(b *bench) {
	_, ref := b.started("a", 1)
	_, step := b.step(ref, "load", nil)
	for _, commits := range []bool{true, false} {
		undone := errors.New("undone")
		t := &taking{done: make(chan struct{})}
		var found ports.Checkpoint
		next, other := step, b.other()
		err := tx.NewManager(b.db).Do(b.ctx, tx.Attr{}, func(ctx context.Context) error {
			require.NoError(b, b.repo.Checkpoint(ctx, step, ports.Checkpoint{Position: item.Position(fmt.Sprintf(`"%v"`, commits))}))
			go func() {
				defer close(t.done)
				next, found, t.err = other.Reclaim(b.ctx, step)
			}()
			t.blocked(b)
			if commits {
				return nil
			}
			return undone
		})
		<-t.done
		require.NoError(b, t.err)
		require.Equal(b, item.Position(`"true"`), found.Position, "what the first one committed, final either way")
		if !commits {
			require.ErrorIs(b, err, undone)
			continue
		}
		if !b.db.SingleWriter() { // there the new epoch may come first
			require.NoError(b, err)
		}
		step = next
	}
}

func reclaimIsGuarded(b *bench) {
	_, ref := b.started("a", 1)
	_, step := b.step(ref, "load", nil)
	for _, wrong := range []ports.StepRef{
		{ID: step.ID + 1, Owner: step.Owner, Epoch: step.Epoch},
		{ID: step.ID, Owner: owner("b"), Epoch: step.Epoch},
		{ID: step.ID, Owner: step.Owner, Epoch: step.Epoch + 1},
	} {
		_, _, err := b.repo.Reclaim(b.ctx, wrong)
		require.ErrorIs(b, err, core.ErrLostOwner)
	}
	for _, status := range statuses() {
		b.force("step_execution", int64(step.ID), status)
		if status != core.StatusStarted {
			_, _, err := b.repo.Reclaim(b.ctx, step)
			require.ErrorIs(b, err, core.ErrLostOwner, status)
		}
	}
}
