package repository_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type cross struct {
	*testing.T
	provider *gormdb.DBProvider
	repo     *repository.Repository
	data     tx.Database
	stores   *repository.Checkpoints
	url      string // of the data
}

func eachPair(t *testing.T, f func(c *cross)) {
	t.Helper()
	kinds := map[string]func(testing.TB) string{"sqlite": testdb.SQLite, "postgres": testdb.Postgres, "mysql": testdb.MySQL}
	for history, historyURL := range kinds {
		for data, dataURL := range kinds {
			if history == "mysql" || history == "postgres" && data == "mysql" { // no history (rule MY1), and enough of it
				continue
			}
			t.Run(history+" and "+data, func(t *testing.T) {
				t.Parallel()
				c := connectCross(t, historyURL(t), dataURL(t))
				require.NoError(t, c.repo.Migrate(t.Context()))
				require.NoError(t, c.stores.Migrate(t.Context(), "data"))
				_, err := c.data.Conn().ExecContext(t.Context(), "CREATE TABLE people (id bigint)")
				require.NoError(t, err)
				f(c)
			})
		}
	}
}

func connectCross(t *testing.T, history, data string) *cross {
	t.Helper()
	provider, err := gormdb.Open(t.Context(), map[string]gormdb.Config{tx.Default: {URL: history}, "data": {URL: data}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, provider.Close()) })
	c := &cross{T: t, provider: provider, url: data}
	db, err := provider.Database(tx.Default)
	require.NoError(t, err)
	c.data, err = provider.Database("data")
	require.NoError(t, err)
	c.repo = repository.New(db, repository.Options{})
	c.stores = repository.NewCheckpoints(c.repo, provider, repository.CheckpointOptions{})
	return c
}

type attempt struct {
	*model.StepRun
	ref ports.JobRef
}

func (c *cross) attempt(owner string) *attempt {
	c.Helper()
	launched, err := c.repo.Launch(c.Context(), ports.LaunchRequest{
		JobName: "load", Restartable: true, Owner: core.Owner{Host: owner, PID: 7}, Lease: time.Hour,
		Dead: func(core.Owner) bool { return true },
	})
	require.NoError(c, err)
	exec := launched.Execution
	ref := ports.JobRef{ID: exec.ID, Owner: exec.Owner, Epoch: exec.Epoch}
	_, err = c.repo.ChangeJob(c.Context(), ref, ports.JobChange{To: core.StatusStarted})
	require.NoError(c, err)
	history, err := c.repo.LastSteps(c.Context(), exec.InstanceID, 0)
	require.NoError(c, err)
	run := &model.StepRun{
		Data:     model.StepContext{Job: exec, JobRef: ref},
		Services: model.StepServices{Checkpoints: c.repo, Stores: c.stores, Observer: core.Observers()},
	}
	run.Services.Fill()
	if h, ok := history["load"]; ok && h.Last.Status != core.StatusCompleted {
		run.Data.Earlier = &h.Last
	}
	run.Step, err = c.repo.StartStep(c.Context(), ref, ports.StepStart{Name: "load", Earlier: run.Data.Earlier})
	require.NoError(c, err)
	run.Ref = ports.StepRef{ID: run.Step.ID, Owner: run.Step.Owner, Epoch: run.Step.Epoch}
	return &attempt{run, ref}
}

func (c *cross) claimed(owner string) *attempt {
	c.Helper()
	a := c.attempt(owner)
	require.NoError(c, a.UseDatabase(c.Context(), "data"))
	return a
}

func (c *cross) commit(a *attempt, row int, p ports.Checkpoint) error {
	return tx.NewManager(c.data).Do(c.Context(), tx.Attr{}, func(ctx context.Context) error {
		if _, err := tx.ConnOf(ctx, c.data).ExecContext(ctx, fmt.Sprintf("INSERT INTO people VALUES (%d)", row)); err != nil {
			return err
		}
		return a.Services.Checkpoints.Checkpoint(ctx, a.Ref, p)
	})
}

func (c *cross) people() int {
	c.Helper()
	var n int
	require.NoError(c, c.data.Conn().QueryRowContext(c.Context(), "SELECT count(*) FROM people").Scan(&n))
	return n
}

func (c *cross) stored(a *attempt) core.StepExecution {
	c.Helper()
	steps, err := c.repo.Steps(c.Context(), a.Data.Job.ID)
	require.NoError(c, err)
	require.Len(c, steps, 1)
	return steps[0]
}

func (c *cross) skipped(a *attempt) []core.SkippedItem {
	c.Helper()
	items, err := c.repo.SkippedItems(c.Context(), ports.SkipFilter{Execution: a.Data.Job.ID})
	require.NoError(c, err)
	return items
}

func (c *cross) end(a *attempt, to core.Status, counters core.Counters) {
	c.Helper()
	_, err := c.repo.EndStep(c.Context(), a.Ref, ports.StepChange{To: to, Counters: counters})
	require.NoError(c, err)
	_, err = c.repo.ChangeJob(c.Context(), a.ref, ports.JobChange{To: to})
	require.NoError(c, err)
}

func position(n int) item.Position { return item.Position(fmt.Sprintf(`{"v":1,"items":%d}`, n)) }

func TestARestartBelievesTheCheckpointBesideTheData(t *testing.T) {
	t.Parallel()
	eachPair(t, func(c *cross) {
		first := c.claimed("a")
		require.Empty(c, first.Step.Position)
		require.Equal(c, "data", first.Services.Checkpoints.Database())
		memory := first.Step.Context
		require.NoError(c, memory.Put("seen", int64(3)))
		want := core.Counters{Read: 5, Filter: 1, Write: 3, WriteSkip: 1, Commit: 2, Rollback: 1}
		require.NoError(c, c.commit(first, 1, ports.Checkpoint{Counters: want, Position: position(5), Context: memory}))
		require.Empty(c, c.stored(first).Position, "the repository does not know yet: the process dies here")

		second := c.claimed("b")
		require.Equal(c, position(5), second.Step.Position)
		seen, ok := second.Step.Context.Get("seen")
		require.True(c, ok)
		require.Equal(c, int64(3), seen)
		require.Equal(c, want, c.stored(first).Counters, "the claim told the repository")
		require.Equal(c, core.StatusFailed, c.stored(first).Status)

		require.NoError(c, second.SyncHistory(c.Context(), nil))
		require.Equal(c, core.Counters{}, c.stored(second).Counters, "the counters of another attempt are not its own")
		require.NoError(c, c.commit(second, 2, ports.Checkpoint{Counters: core.Counters{Read: 2, Write: 2, Commit: 1}, Position: position(7)}))
		require.NoError(c, second.SyncHistory(c.Context(), nil))
		require.Equal(c, position(7), c.stored(second).Position)
		require.Equal(c, core.Counters{Read: 2, Write: 2, Commit: 1}, c.stored(second).Counters)
		require.Equal(c, []string{"seen"}, c.stored(second).Context.Keys())
		require.Equal(c, want, c.stored(first).Counters)
	})
}

// Rule F4a.
func TestTheCheckpointBesideTheDataSaysWhetherWorkIsCommitted(t *testing.T) {
	t.Parallel()
	eachPair(t, func(c *cross) {
		committed := func(database, step string, since core.StepExecutionID) bool {
			found, err := c.stores.HasCommitted(c.Context(), database, 1, step, since)
			require.NoError(c, err)
			return found
		}
		first := c.attempt("a")
		require.False(c, committed("data", "load", first.Step.ID), "it has not claimed the step")
		require.NoError(c, first.UseDatabase(c.Context(), "data"))
		require.False(c, committed("data", "load", first.Step.ID), "it has committed nothing")
		require.NoError(c, c.commit(first, 1, ports.Checkpoint{Counters: core.Counters{Read: 1}, Position: position(1)}))
		require.False(c, c.stored(first).HasCommitted(), "the process dies here")
		require.True(c, committed("data", "load", first.Step.ID))
		require.False(c, committed("data", "load", first.Step.ID+1), "that is of work before")
		require.False(c, committed("data", "load:a", first.Step.ID))
		require.False(c, committed(tx.Default, "load", first.Step.ID), "the record says it")
	})
}

func TestAnOwnerThatLostItsLeaseCommitsNothingInTheDataDatabase(t *testing.T) {
	t.Parallel()
	eachPair(t, func(c *cross) {
		late := c.attempt("late") // it started, and sleeps before its claim
		first := c.claimed("a")
		require.NoError(c, c.commit(first, 1, ports.Checkpoint{Position: position(1)}))
		second := c.claimed("b")
		require.ErrorIs(c, c.commit(first, 2, ports.Checkpoint{Position: position(2)}), core.ErrLostOwner)
		require.Equal(c, 1, c.people(), "its rows are rolled back")
		_, _, err := first.Services.Checkpoints.Reclaim(c.Context(), first.Ref)
		require.ErrorIs(c, err, core.ErrLostOwner)
		require.ErrorIs(c, first.SyncHistory(c.Context(), nil), core.ErrLostOwner)
		require.ErrorIs(c, late.UseDatabase(c.Context(), "data"), core.ErrLostOwner)
		require.Equal(c, position(1), second.Step.Position)
		require.NoError(c, c.commit(second, 2, ports.Checkpoint{Position: position(2)}))
	})
}

func TestOfManyOwnersThatAllGoOnEachRowIsWrittenOnce(t *testing.T) {
	t.Parallel()
	eachPair(t, func(c *cross) {
		const owners, rows = 8, 40
		lost := make(chan error, owners)
		for n := range owners {
			a := c.attempt(fmt.Sprint("owner", n))
			some := make(chan struct{})
			go func() { lost <- c.writeOn(a, rows, n*rows/owners, some) }()
			<-some // the next attempt comes while this one runs
		}
		over := 0
		for range owners {
			if err := <-lost; err != nil {
				require.ErrorIs(c, err, core.ErrLostOwner)
				over++
			}
		}
		require.Less(c, over, owners, "the last one comes to the end")
		var n, distinct, last int
		require.NoError(c, c.data.Conn().QueryRowContext(c.Context(), "SELECT count(*), count(DISTINCT id), max(id) FROM people").Scan(&n, &distinct, &last))
		require.Equal(c, []int{rows, rows, rows}, []int{n, distinct, last})
	})
}

// writeOn claims the step and writes the rows from its position to the last
// one.
func (c *cross) writeOn(a *attempt, last, upTo int, some chan struct{}) error {
	tell := sync.OnceFunc(func() { close(some) })
	defer tell()
	if err := a.UseDatabase(c.Context(), "data"); err != nil {
		return err
	}
	at := 0
	if len(a.Step.Position) > 0 {
		if _, err := fmt.Sscanf(string(a.Step.Position), `{"v":1,"items":%d}`, &at); err != nil {
			return err
		}
	}
	for at++; at <= last; at++ {
		if err := c.commit(a, at, ports.Checkpoint{Position: position(at)}); err != nil {
			return err
		}
		if at >= upTo {
			tell()
		}
	}
	return nil
}

func TestAClaimWaitsForTheTransactionOfTheOwnerBefore(t *testing.T) {
	t.Parallel()
	eachPair(t, func(c *cross) {
		first := c.claimed("a")
		second := c.attempt("b")
		err := tx.NewManager(c.data).Do(c.Context(), tx.Attr{}, func(ctx context.Context) error {
			require.NoError(c, first.Services.Checkpoints.Checkpoint(ctx, first.Ref, ports.Checkpoint{Position: position(1)}))
			other := connectCross(c.T, "sqlite:"+c.TempDir()+"/unused.db", c.url)
			blocked := repository.NewCheckpoints(c.repo, other.provider, repository.CheckpointOptions{Wait: 200 * time.Millisecond})
			_, err := blocked.Acquire(c.Context(), second.StepRun, "data")
			require.Error(c, err)
			require.ErrorContains(c, err, "claimed by owner a, process 7")
			return nil
		})
		require.NoError(c, err)
		require.NoError(c, second.UseDatabase(c.Context(), "data"))
		require.Equal(c, position(1), second.Step.Position, "what committed at last is where it goes on")
	})
}

func TestSkipsReachTheRepositoryOnceWhereverAMoveIsCutOff(t *testing.T) {
	t.Parallel()
	eachPair(t, func(c *cross) {
		skip := func(n int) core.SkippedItem {
			return core.SkippedItem{
				Phase: core.PhaseWrite, Meta: item.Meta{Path: "in.csv", Line: int64(n)}, Mark: position(n),
				Item: json.RawMessage(fmt.Sprintf(`{"a": "<%d>"}`, n)), Class: "unique", Error: "bad\x00",
				Raw: &item.RawText{Text: "x\x00", Length: 2},
			}
		}
		names := func(items []core.SkippedItem) (lines []int64) {
			for _, s := range items {
				lines = append(lines, s.Meta.Line)
			}
			return lines
		}
		first := c.claimed("a")
		require.NoError(c, c.commit(first, 1, ports.Checkpoint{
			Counters: core.Counters{WriteSkip: 2}, Position: position(2), Skipped: []core.SkippedItem{skip(1), skip(2)},
		}))
		require.Empty(c, c.skipped(first))
		require.NoError(c, first.Committed(c.Context()))
		require.Equal(c, []int64{1, 2}, names(c.skipped(first)))
		got := c.skipped(first)[0]
		require.JSONEq(c, `{"a": "<1>"}`, string(got.Item))
		require.Equal(c, `{"a": "<1>"}`, string(got.Item), "as it was, to the byte")
		require.Equal(c, position(1), got.Mark)
		require.Equal(c, "bad\uFFFD", got.Error)
		require.Equal(c, &item.RawText{Text: "x\x00", Length: 2}, got.Raw)
		require.Equal(c, "load", got.Step)

		require.NoError(c, c.commit(first, 2, ports.Checkpoint{
			Counters: core.Counters{WriteSkip: 3}, Position: position(3), Skipped: []core.SkippedItem{skip(3)},
		}))
		// A move of the tables that was interrupted before it removed the originals.
		_, err := c.data.Conn().ExecContext(c.Context(), "CREATE TABLE copy AS SELECT * FROM surfin_checkpoint_skip")
		require.NoError(c, err)
		require.NoError(c, first.Committed(c.Context()))
		_, err = c.data.Conn().ExecContext(c.Context(), "INSERT INTO surfin_checkpoint_skip SELECT * FROM copy")
		require.NoError(c, err)
		require.NoError(c, c.commit(first, 3, ports.Checkpoint{
			Counters: core.Counters{WriteSkip: 4}, Position: position(4), Skipped: []core.SkippedItem{skip(4)},
		}))

		second := c.claimed("b")
		require.Equal(c, []int64{1, 2, 3, 4}, names(c.skipped(first)))
		require.Empty(c, c.skipped(second))
		var left int
		require.NoError(c, c.data.Conn().QueryRowContext(c.Context(), "SELECT count(*) FROM surfin_checkpoint_skip").Scan(&left))
		require.Zero(c, left)
	})
}

func TestTheRepositoryIsToldNowAndThenWhatARunningStepCommitted(t *testing.T) {
	t.Parallel()
	eachPair(t, func(c *cross) {
		quiet := c.claimed("a")
		want := core.Counters{Read: 2, Write: 2, Commit: 1}
		require.NoError(c, c.commit(quiet, 1, ports.Checkpoint{Counters: want, Position: position(2)}))
		require.NoError(c, quiet.Committed(c.Context()))
		require.Equal(c, core.Counters{}, c.stored(quiet).Counters, "a chunk costs the repository nothing")

		c.stores = repository.NewCheckpoints(c.repo, c.provider, repository.CheckpointOptions{Every: time.Nanosecond})
		told := c.claimed("b")
		require.NoError(c, c.commit(told, 2, ports.Checkpoint{Counters: want, Position: position(4)}))
		require.NoError(c, told.Committed(c.Context()))
		require.Equal(c, want, c.stored(told).Counters)
		require.Equal(c, position(4), c.stored(told).Position)

		c.attempt("c") // takes over, and has not reached the step
		require.NoError(c, c.commit(told, 3, ports.Checkpoint{Counters: want, Position: position(6)}))
		require.ErrorIs(c, told.Committed(c.Context()), core.ErrLostOwner)
	})
}

func TestARecordThatKnowsMoreThanTheCheckpointKeepsIt(t *testing.T) {
	t.Parallel()
	eachPair(t, func(c *cross) {
		first := c.claimed("a")
		require.NoError(c, c.commit(first, 1, ports.Checkpoint{Counters: core.Counters{Read: 2, Write: 2, Commit: 1}, Position: position(2)}))
		failure := errors.New("the step fails")
		require.Equal(c, failure.Error(), first.SyncHistory(c.Context(), failure).Error())
		c.end(first, core.StatusFailed, core.Counters{Read: 4, Write: 2, Commit: 1, Rollback: 1})
		c.claimed("b")
		require.Equal(c, core.Counters{Read: 4, Write: 2, Commit: 1, Rollback: 1}, c.stored(first).Counters)
	})
}

func TestAStepThatStartsOverForgetsItsCheckpoint(t *testing.T) {
	t.Parallel()
	eachPair(t, func(c *cross) {
		first := c.claimed("a")
		require.NoError(c, c.commit(first, 1, ports.Checkpoint{Position: position(2)}))
		require.NoError(c, first.SyncHistory(c.Context(), nil))
		_, err := c.repo.EndStep(c.Context(), first.Ref, ports.StepChange{To: core.StatusCompleted})
		require.NoError(c, err)
		_, err = c.repo.ChangeJob(c.Context(), first.ref, ports.JobChange{To: core.StatusFailed})
		require.NoError(c, err)

		second := c.claimed("b")
		require.Nil(c, second.Data.Earlier)
		require.Empty(c, second.Step.Position)
		third := c.claimed("c") // the second died before its first commit
		require.NotNil(c, third.Data.Earlier)
		require.Empty(c, third.Step.Position)
	})
}

func TestAnUnknownCommitIsJudgedByTheRowBesideTheData(t *testing.T) {
	t.Parallel()
	eachPair(t, func(c *cross) {
		a := c.claimed("a")
		want := ports.Checkpoint{Counters: core.Counters{Read: 1, Write: 1, Commit: 1}, Position: position(1)}
		require.NoError(c, c.commit(a, 1, want))
		ref, found, err := a.Services.Checkpoints.Reclaim(c.Context(), a.Ref)
		require.NoError(c, err)
		require.Equal(c, a.Ref, ref, "the guard of the repository's row is as it was")
		require.Equal(c, want.Counters, found.Counters)
		require.Equal(c, want.Position, found.Position)
		require.NoError(c, c.commit(a, 2, ports.Checkpoint{Counters: core.Counters{Read: 2, Write: 2, Commit: 2}, Position: position(2)}))
		b := c.claimed("b") // its first commit did not happen
		_, found, err = b.Services.Checkpoints.Reclaim(c.Context(), b.Ref)
		require.NoError(c, err)
		require.Equal(c, core.Counters{}, found.Counters, "those of another attempt are not its own")
		require.Equal(c, position(2), found.Position)
		require.NoError(c, c.commit(b, 3, ports.Checkpoint{Counters: core.Counters{Read: 1, Write: 1, Commit: 1}, Position: position(3)}))
		require.NoError(c, b.SyncHistory(c.Context(), nil))
		c.end(b, core.StatusCompleted, core.Counters{Read: 1, Write: 1, Commit: 1})
	})
}

func TestACheckpointThatIsNotWhereTheStepCommittedIsMissed(t *testing.T) {
	t.Parallel()
	eachPair(t, func(c *cross) {
		first := c.claimed("a")
		require.NoError(c, c.commit(first, 1, ports.Checkpoint{Position: position(1)}))
		require.NoError(c, first.SyncHistory(c.Context(), nil))
		_, err := c.data.Conn().ExecContext(c.Context(), "DELETE FROM surfin_checkpoint")
		require.NoError(c, err)
		second := c.attempt("b")
		require.ErrorIs(c, second.UseDatabase(c.Context(), "data"), ports.ErrCheckpointMissing)
	})
}

func TestTwoRepositoriesShareADatabaseOfData(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		one, two := connectCross(t, testdb.EmptySQLite(t), url), connectCross(t, testdb.EmptySQLite(t), url)
		for i, c := range []*cross{one, two} {
			require.NoError(t, c.repo.Migrate(t.Context()))
			require.NoError(t, c.stores.Migrate(t.Context(), "data"))
			if i == 0 {
				_, err := c.data.Conn().ExecContext(t.Context(), "CREATE TABLE people (id bigint)")
				require.NoError(t, err)
			}
			a := c.claimed("a")
			require.Equal(t, core.StepExecutionID(1), a.Step.ID)
			require.Empty(t, a.Step.Position)
			require.NoError(t, c.commit(a, i, ports.Checkpoint{Position: position(i + 1)}))
		}
		require.Equal(t, position(1), one.claimed("b").Step.Position)
		require.Equal(t, position(2), two.claimed("b").Step.Position)
	})
}

func TestMissingTablesOfCheckpointsNameTheCommandThatMakesThem(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		c := connectCross(t, testdb.SQLite(t), url)
		require.NoError(t, c.repo.Migrate(t.Context()))
		a := c.attempt("a")
		err := a.UseDatabase(t.Context(), "data")
		require.ErrorIs(t, err, core.ErrSchemaMissing)
		require.ErrorContains(t, err, "run `surfin migrate --database data`")
		require.ErrorIs(t, c.stores.CheckSchema(t.Context(), "data"), core.ErrSchemaMissing)

		auto := repository.NewCheckpoints(c.repo, c.provider, repository.CheckpointOptions{AutoMigrate: func(d tx.Dialect) bool { return d == c.data.Dialect() }})
		a.Services.Stores = auto
		require.NoError(t, a.UseDatabase(t.Context(), "data"))
		require.NoError(t, c.stores.CheckSchema(t.Context(), "data"))

		for _, left := range []string{"SET dirty = true", "SET dirty = false"} { // killed after the tables were made, and not at all
			_, err = c.data.Conn().ExecContext(t.Context(), "UPDATE surfin_checkpoint_migrations "+left)
			require.NoError(t, err)
			require.NoError(t, c.stores.Migrate(t.Context(), "data"))
		}
		_, err = c.data.Conn().ExecContext(t.Context(), "UPDATE surfin_checkpoint_migrations SET dirty = true")
		require.NoError(t, err)
		for _, table := range []string{"surfin_checkpoint", "surfin_checkpoint_skip"} { // killed before the tables were made
			_, err = c.data.Conn().ExecContext(t.Context(), "DROP TABLE "+table)
			require.NoError(t, err)
		}
		require.NoError(t, c.stores.Migrate(t.Context(), "data"))
		require.NoError(t, c.stores.CheckSchema(t.Context(), "data"))
		again := c.attempt("b")
		require.NoError(t, again.UseDatabase(t.Context(), "data"))
	})
}
