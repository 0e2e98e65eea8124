package runtime_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/testdb"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/repository/tasks"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type leaders struct {
	t    *testing.T
	db   tx.Database
	repo *tasks.Repository
	mu   sync.Mutex
	errs []error
}

func eachLeaders(t *testing.T, f func(l *leaders)) {
	t.Helper()
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		provider, err := gormdb.Open(t.Context(), map[string]gormdb.Config{tx.Default: {URL: url}})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, provider.Close()) })
		db, err := provider.Database(tx.Default)
		require.NoError(t, err)
		require.NoError(t, repository.New(db, repository.Options{}).Migrate(t.Context()))
		_, err = db.Conn().ExecContext(t.Context(), "CREATE TABLE done (id INTEGER PRIMARY KEY "+map[tx.Dialect]string{
			tx.SQLite: "AUTOINCREMENT", tx.Postgres: "GENERATED ALWAYS AS IDENTITY", tx.MySQL: "AUTO_INCREMENT"}[db.Dialect()]+", holder text, epoch bigint)")
		require.NoError(t, err)
		repo, err := tasks.New(db, repository.DefaultPrefix, tasks.Options{})
		require.NoError(t, err)
		f(&leaders{t: t, db: db, repo: repo})
	})
}

// run leads in the name of holder until the returned function is called. The duty records itself in
// the table, in the fenced transaction.
func (l *leaders) run(holder string) (stop func()) {
	l.t.Helper()
	note := func(ctx context.Context) (bool, error) {
		_, err := tx.ConnOf(ctx, l.db).ExecContext(ctx,
			"INSERT INTO done (holder, epoch) SELECT holder, epoch FROM surfin_leader WHERE holder = '"+holder+"'")
		return false, err
	}
	leader, err := runtime.NewLeader(runtime.LeaderConfig{
		Leadership: l.repo, Database: l.db, Holder: holder, Lease: 400 * time.Millisecond, Heartbeat: 20 * time.Millisecond,
		Duties: []runtime.Duty{{Name: "note", Do: note}},
		Report: func(err error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.errs = append(l.errs, err)
		},
	})
	require.NoError(l.t, err)
	closing := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { leader.Run(context.WithoutCancel(l.t.Context()), closing) })
	return func() {
		close(closing)
		wg.Wait()
	}
}

func (l *leaders) done() []string {
	l.t.Helper()
	rows, err := l.db.Conn().QueryContext(l.t.Context(), "SELECT holder, epoch FROM done ORDER BY id")
	require.NoError(l.t, err)
	defer func() { require.NoError(l.t, rows.Close()) }()
	var holders []string
	last := int64(0)
	for rows.Next() {
		var holder string
		var epoch int64
		require.NoError(l.t, rows.Scan(&holder, &epoch))
		require.GreaterOrEqual(l.t, epoch, last)
		if epoch > last {
			holders = append(holders, holder)
		} else {
			require.Equal(l.t, holders[len(holders)-1], holder, "two lead in one epoch")
		}
		last = epoch
	}
	require.NoError(l.t, rows.Err())
	return holders
}

func (l *leaders) eventually(want ...string) {
	l.t.Helper()
	require.Eventually(l.t, func() bool { return len(l.done()) == len(want) }, 20*time.Second, 10*time.Millisecond)
	require.Equal(l.t, want, l.done())
}

func TestAnotherLeadsWhenTheLeaderStops(t *testing.T) {
	eachLeaders(t, func(l *leaders) {
		stopA := l.run("a")
		l.eventually("a")
		stopB := l.run("b")
		stopA()
		l.eventually("a", "b")
		stopA = l.run("a")
		stopB()
		l.eventually("a", "b", "a")
		stopA()
		require.Empty(l.t, l.errs)
	})
}

func TestALeaderThatWasPausedWritesNothing(t *testing.T) {
	eachLeaders(t, func(l *leaders) {
		epoch, leads, err := l.repo.Lead(l.t.Context(), "paused", time.Second)
		require.NoError(l.t, err)
		require.True(l.t, leads)
		stop := l.run("b")
		defer stop()
		l.eventually("b")
		err = tx.NewManager(l.db).Do(l.t.Context(), tx.Attr{}, func(ctx context.Context) error {
			if err := l.repo.Fence(ctx, "paused", epoch); err != nil {
				return err
			}
			return errors.New("not fenced")
		})
		require.ErrorIs(l.t, err, core.ErrLostOwner)
	})
}

func TestALeaderIsConfiguredSoundly(t *testing.T) {
	t.Parallel()
	_, err := runtime.NewLeader(runtime.LeaderConfig{})
	require.ErrorContains(t, err, "a leader needs")
}

// Rule W8: a worker leaves the common work to a leader that renews its lease, and has all deciders.
func TestAProcessFollowsALeaderThatRenewsItsLease(t *testing.T) {
	eachLeaders(t, func(l *leaders) {
		var tended atomic.Int64
		b, err := runtime.NewLeader(runtime.LeaderConfig{
			Leadership: l.repo, Database: l.db, Holder: "b", Lease: time.Minute, Heartbeat: 100 * time.Millisecond, Deciders: []string{"x"},
			Tend: func(context.Context) { tended.Add(1) },
		})
		require.NoError(l.t, err)
		epoch, leads, err := l.repo.Lead(l.t.Context(), "a", time.Hour)
		require.NoError(l.t, err)
		require.True(l.t, leads)
		renew := func() {
			_, _, err := l.repo.Lead(l.t.Context(), "a", time.Hour)
			require.NoError(l.t, err)
		}
		closing := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { b.Run(context.WithoutCancel(l.t.Context()), closing) })
		defer func() { close(closing); wg.Wait() }()
		for range 20 {
			renew()
			time.Sleep(20 * time.Millisecond)
			require.False(l.t, b.Follows(), "the leader may lack the decider")
		}
		_, err = l.repo.Heartbeat(l.t.Context(), taskports.Claimant{Worker: "a", Deciders: []string{"y", "x"}, Lease: time.Hour}, nil)
		require.NoError(l.t, err)
		require.Eventually(l.t, func() bool { renew(); return b.Follows() }, 20*time.Second, 10*time.Millisecond)
		require.Eventually(l.t, func() bool { return !b.Follows() }, 20*time.Second, 10*time.Millisecond, "it renews no more")
		require.Zero(l.t, tended.Load())
		require.NoError(l.t, l.repo.Resign(l.t.Context(), "a", epoch))
		require.Eventually(l.t, func() bool { return tended.Load() > 1 }, 20*time.Second, 10*time.Millisecond)
	})
}

type countedMaintenance struct {
	taskports.Repository
	due atomic.Int64
}

func (c *countedMaintenance) MakeDue(ctx context.Context, limit int) ([]taskports.Delivery, error) {
	c.due.Add(1)
	return c.Repository.MakeDue(ctx, limit)
}

func TestAWorkerThatFollowsSeldomDoesTheCommonWork(t *testing.T) {
	t.Parallel()
	for _, follows := range []bool{true, false} {
		o := newOffice(t, testdb.SQLite(t), func(*office, context.Context, task.Task) (task.Outcome, error) { return task.Success(), nil })
		counted := &countedMaintenance{Repository: o.repo}
		o.change = func(c *runtime.Config) {
			c.Poll, c.Follows, c.Tasks.Maintenance = time.Second, func() bool { return follows }, counted
		}
		stop := o.worker("one")
		require.Eventually(t, func() bool { return counted.due.Load() > 0 }, 20*time.Second, 10*time.Millisecond)
		time.Sleep(3500 * time.Millisecond)
		if follows {
			require.EqualValues(t, 1, counted.due.Load())
		} else {
			require.Greater(t, counted.due.Load(), int64(2))
		}
		require.NoError(t, stop())
	}
}

func TestALeaderWithALongPollDoesTheCommonWorkEachSecond(t *testing.T) {
	t.Parallel()
	o := newOffice(t, testdb.SQLite(t), func(*office, context.Context, task.Task) (task.Outcome, error) { return task.Success(), nil })
	counted := &countedMaintenance{Repository: o.repo}
	w, err := runtime.NewWorker(runtime.Config{Poll: time.Hour, Tasks: &runtime.Tasks{
		Executions: o.repo, Maintenance: counted, Engine: o.engine(), Database: o.db, Catalog: o.catalog, Worker: "one",
	}})
	require.NoError(t, err)
	for begin := time.Now(); time.Since(begin) < 2500*time.Millisecond; time.Sleep(20 * time.Millisecond) {
		w.Tend(t.Context())
	}
	require.InDelta(t, 3, counted.due.Load(), 1)
}
