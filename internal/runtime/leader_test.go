package runtime_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/testdb"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/core"
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
