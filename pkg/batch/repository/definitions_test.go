package repository_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func nightly(text, cron string) taskports.Definition {
	return taskports.Definition{
		Name: "nightly", Files: ports.NewDefinition(text, "/jobs/nightly.yaml", []core.DefinitionFile{{Name: "a.yaml", Text: "job: a"}}),
		Schedule: &taskports.Schedule{Cron: cron, Timezone: "Europe/Berlin", CatchUp: "last", Overlap: "queue"},
		Budget:   task.Budget{MaxAttempts: 3, Deadline: time.Hour},
	}
}

func acts(t *testing.T, e *testengine.Engine) []string {
	t.Helper()
	entries, err := e.Repository.Audit(t.Context(), 0)
	require.NoError(t, err)
	var list []string
	for _, a := range entries {
		list = append(list, a.Actor+" "+a.Act)
	}
	return list
}

func TestADefinitionIsOneRowWhoseVersionChanges(t *testing.T) {
	t.Parallel()
	testdb.All(t, func(t *testing.T, url string) {
		t.Parallel()
		e := testengine.New(t, url)
		r, ctx := e.Repository, t.Context()
		_, err := r.Definition(ctx, "nightly")
		require.ErrorIs(t, err, core.ErrNotFound)
		_, _, err = r.EnableDefinition(ctx, "nightly", true, "ann")
		require.ErrorIs(t, err, core.ErrNotFound)

		want := nightly("job: nightly", "30 2 * * *")
		first, err := r.Register(ctx, want, "ann")
		require.NoError(t, err)
		require.True(t, first.Changed)
		require.Empty(t, first.Before)
		got := first.Definition
		require.True(t, got.Enabled)
		require.Equal(t, "ann", got.UpdatedBy)
		require.WithinDuration(t, time.Now(), got.ScheduledUntil, time.Minute)
		want.ID, want.Enabled, want.ScheduledUntil, want.CreatedAt, want.UpdatedAt, want.UpdatedBy = got.ID, true, got.ScheduledUntil, got.CreatedAt, got.UpdatedAt, "ann"
		require.Equal(t, want, got)

		same, err := r.Register(ctx, nightly("job: nightly", "30 2 * * *"), "bob")
		require.NoError(t, err)
		require.False(t, same.Changed)
		require.Equal(t, got, same.Definition, "nothing was written")

		// Another text with the same times keeps the decided times; other times are decided from
		// now on.
		moved, err := r.Advance(ctx, got, got.ScheduledUntil.Add(-time.Hour), "")
		require.NoError(t, err)
		require.True(t, moved)
		second, err := r.Register(ctx, nightly("job: nightly # 2", "30 2 * * *"), "bob")
		require.NoError(t, err)
		require.Equal(t, got.Files.Hash, second.Before)
		require.Equal(t, got.ID, second.Definition.ID)
		require.Equal(t, got.ScheduledUntil.Add(-time.Hour), second.Definition.ScheduledUntil)
		third, err := r.Register(ctx, nightly("job: nightly # 3", "0 4 * * *"), "bob")
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), third.Definition.ScheduledUntil, time.Minute)
		require.Equal(t, []string{"ann register", "bob register", "bob register"}, acts(t, e))
	})
}

func TestADisabledScheduleIsNotAmongThoseThatAreDue(t *testing.T) {
	t.Parallel()
	testdb.All(t, func(t *testing.T, url string) {
		t.Parallel()
		e := testengine.New(t, url)
		r, ctx := e.Repository, t.Context()
		plain := nightly("job: b", "")
		plain.Name, plain.Schedule = "b", nil
		_, err := r.Register(ctx, plain, "ann")
		require.NoError(t, err)
		made, err := r.Register(ctx, nightly("job: nightly", "@daily"), "ann")
		require.NoError(t, err)
		names := func(f taskports.DefinitionFilter) (list []string) {
			found, err := r.Definitions(ctx, f)
			require.NoError(t, err)
			for _, d := range found {
				require.Empty(t, d.Files.Text)
				list = append(list, d.Name)
			}
			return list
		}
		require.Equal(t, []string{"b", "nightly"}, names(taskports.DefinitionFilter{}))
		require.Equal(t, []string{"nightly"}, names(taskports.DefinitionFilter{Scheduled: true}))

		off, changed, err := r.EnableDefinition(ctx, "nightly", false, "bob")
		require.NoError(t, err)
		require.True(t, changed)
		require.False(t, off.Enabled)
		require.Equal(t, made.Definition.ScheduledUntil, off.ScheduledUntil)
		require.Empty(t, names(taskports.DefinitionFilter{Scheduled: true}))
		moved, err := r.Advance(ctx, off, time.Now(), "")
		require.NoError(t, err)
		require.False(t, moved, "it is disabled")
		_, changed, err = r.EnableDefinition(ctx, "nightly", false, "bob")
		require.NoError(t, err)
		require.False(t, changed)
		again, err := r.Register(ctx, nightly("job: nightly # 2", "@daily"), "ann")
		require.NoError(t, err)
		require.False(t, again.Definition.Enabled, "a new version changes nothing in that")
		require.Eventually(t, func() bool { return time.Now().Truncate(time.Millisecond).After(off.ScheduledUntil) }, time.Minute, time.Millisecond,
			"SQLite's clock has milliseconds")
		on, changed, err := r.EnableDefinition(ctx, "nightly", true, "bob")
		require.NoError(t, err)
		require.True(t, changed && on.Enabled)
		require.True(t, on.ScheduledUntil.After(off.ScheduledUntil), "what was due meanwhile was not missed")
		require.Equal(t, []string{"ann register", "ann register", "bob disable", "ann register", "bob enable"}, acts(t, e))
	})
}

func TestOneSchedulerAdvancesAndItsRollbackTakesItBack(t *testing.T) {
	t.Parallel()
	testdb.All(t, func(t *testing.T, url string) {
		t.Parallel()
		e := testengine.New(t, url)
		made, err := e.Repository.Register(t.Context(), nightly("job: nightly", "@hourly"), "ann")
		require.NoError(t, err)
		d, until := made.Definition, made.Definition.ScheduledUntil.Add(3*time.Hour)
		oops := errors.New("oops")
		err = tx.NewManager(e.Database).Do(t.Context(), tx.Attr{}, func(ctx context.Context) error {
			moved, err := e.Repository.Advance(ctx, d, until, "")
			require.NoError(t, err)
			require.True(t, moved)
			return oops
		})
		require.ErrorIs(t, err, oops)

		const schedulers = 5
		var group sync.WaitGroup
		won, errs := make([]bool, schedulers), make([]error, schedulers)
		for i := range schedulers {
			_, db := testengine.Database(t, url)
			r := repository.New(db, repository.Options{})
			group.Go(func() { won[i], errs[i] = r.Advance(context.Background(), d, until, "") })
		}
		group.Wait()
		require.NoError(t, errors.Join(errs...))
		n := 0
		for _, w := range won {
			if w {
				n++
			}
		}
		require.Equal(t, 1, n)
		now, err := e.Repository.Definition(t.Context(), "nightly")
		require.NoError(t, err)
		require.Equal(t, until, now.ScheduledUntil)
		_, err = e.Repository.Register(t.Context(), nightly("job: nightly # 2", "@hourly"), "ann")
		require.NoError(t, err)
		moved, err := e.Repository.Advance(t.Context(), now, until.Add(time.Hour), "")
		require.NoError(t, err)
		require.False(t, moved, "its runs would be of another version")
	})
}

func TestOfManyThatRegisterANameAtOnceOneRowIsLeft(t *testing.T) {
	t.Parallel()
	testdb.All(t, func(t *testing.T, url string) {
		t.Parallel()
		e := testengine.New(t, url)
		const n = 6
		var group sync.WaitGroup
		errs := make([]error, n)
		for i := range n {
			_, db := testengine.Database(t, url)
			r := repository.New(db, repository.Options{})
			group.Go(func() {
				_, errs[i] = r.Register(context.Background(), nightly(fmt.Sprintf("job: nightly # %d", i), "@daily"), "ann")
			})
		}
		group.Wait()
		require.NoError(t, errors.Join(errs...))
		list, err := e.Repository.Definitions(t.Context(), taskports.DefinitionFilter{})
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Len(t, acts(t, e), n)
	})
}
