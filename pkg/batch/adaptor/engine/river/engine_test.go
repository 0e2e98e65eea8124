package river

import (
	"context"
	"database/sql"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/runtime/engine"
	"github.com/surfin-batch/surfin/internal/testdb"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func open(t testing.TB, url string) tx.Database {
	t.Helper()
	p, err := gormdb.Open(t.Context(), map[string]gormdb.Config{tx.Default: {URL: url}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	db, err := p.Database(tx.Default)
	require.NoError(t, err)
	return db
}

type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func migrated(t testing.TB, c Config) *Engine {
	t.Helper()
	e, err := New(c)
	require.NoError(t, err)
	require.NoError(t, e.Migrate(t.Context()))
	return e
}

func run(t *testing.T, e *Engine, h engine.Handler) (stop func()) {
	t.Helper()
	halt, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- e.Run(t.Context(), halt, engine.Subscription{Queues: []string{"a"}, Slots: 2}, h) }()
	return sync.OnceFunc(func() {
		close(halt)
		require.NoError(t, <-ended)
	})
}

func task(id, epoch int64) engine.Delivery {
	return engine.Delivery{Kind: engine.Task, ID: id, Epoch: epoch, Queue: "a"}
}

func text(t *testing.T, db tx.Database, query string) (answer string) {
	t.Helper()
	var value sql.NullString
	require.NoError(t, db.Conn().QueryRowContext(t.Context(), query).Scan(&value))
	return value.String
}

func receive(t *testing.T, from <-chan engine.Delivery) engine.Delivery {
	t.Helper()
	select {
	case d := <-from:
		return d
	case <-time.After(time.Minute):
		require.FailNow(t, "nothing was delivered in time")
	}
	return engine.Delivery{}
}

func TestWhatTheEngineCannotWorkWithIsRefused(t *testing.T) {
	t.Parallel()
	_, err := New(Config{})
	require.EqualError(t, err, "engine river: it needs a database")
	_, err = New(Config{Database: open(t, testdb.SQLite(t))})
	require.EqualError(t, err, "engine river: it needs PostgreSQL, but the database default is sqlite; use the engine local")
	db := open(t, testdb.Postgres(t))
	_, err = New(Config{Database: db, Schema: "a; drop"})
	require.ErrorContains(t, err, `the schema "a; drop" must have only lower-case letters`)
	_, err = New(Config{Database: db, Poll: -1})
	require.ErrorContains(t, err, "must be positive")
	e, err := New(Config{Database: db})
	require.NoError(t, err)
	err = e.Run(t.Context(), nil, engine.Subscription{Queues: []string{"a"}, Slots: 100_000}, nil)
	require.ErrorContains(t, err, "100000 slots: at most 10000 are allowed")
	err = e.Run(t.Context(), nil, engine.Subscription{Queues: []string{"a"}, Slots: 1}, nil)
	require.ErrorIs(t, err, core.ErrSchemaMissing)
	require.ErrorContains(t, err, "the tables in schema surfin_river do not exist")
}

func TestProcessesThatMigrateAtOnceDoItOnce(t *testing.T) {
	t.Parallel()
	url := testdb.Postgres(t)
	var all sync.WaitGroup
	for range 4 {
		e, err := New(Config{Database: open(t, url)})
		require.NoError(t, err)
		all.Go(func() {
			if err := e.Migrate(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	db := open(t, url)
	e, err := New(Config{Database: db})
	require.NoError(t, err)
	require.NoError(t, e.CheckSchema(t.Context()))
	_, err = db.Conn().ExecContext(t.Context(), "delete from surfin_river.river_migration where version = (select max(version) from surfin_river.river_migration)")
	require.NoError(t, err)
	require.ErrorIs(t, e.CheckSchema(t.Context()), core.ErrSchemaMissing)
}

func TestASchemaThatIsThereIsTaken(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.Postgres(t))
	_, err := db.Conn().ExecContext(t.Context(), "create schema given")
	require.NoError(t, err)
	e := migrated(t, Config{Database: db, Schema: "given"})
	require.NoError(t, e.Enqueue(t.Context(), task(1, 1)))
	require.Equal(t, "1", text(t, db, "select count(*) from given.river_job"))
}

// A current delivery leaves no job if its work was delivered again: its
// process may be dead.
func TestTheJobOfAnEarlierEpochGoesWithTheNextDelivery(t *testing.T) {
	t.Parallel()
	db, said := open(t, testdb.Postgres(t)), &lines{}
	e := migrated(t, Config{Database: db, Log: slog.New(slog.NewTextHandler(said, nil))})
	got, free := make(chan engine.Delivery, 9), make(chan struct{})
	stop := run(t, e, func(_ context.Context, d engine.Delivery) engine.Answer {
		got <- d
		if d.Epoch < 3 {
			<-free
		}
		return engine.Done()
	})
	require.NoError(t, e.Enqueue(t.Context(), task(1, 1), task(2, 1)))
	require.Equal(t, int64(1), receive(t, got).Epoch)
	require.Equal(t, int64(1), receive(t, got).Epoch)
	require.NoError(t, e.Enqueue(t.Context(), task(1, 3)))
	require.Equal(t, "task/1 3, task/2 1", text(t, db, "select string_agg(args->>'work' || ' ' || (args->>'epoch'), ', ' order by args->>'work') from surfin_river.river_job"))
	close(free)
	require.Equal(t, task(1, 3).Key(), receive(t, got).Key())
	stop()
	require.Equal(t, "completed 2", text(t, db, "select string_agg(state || ' ' || n, ', ') from (select state::text, count(*) n from surfin_river.river_job group by 1) s"))
	require.Empty(t, said.String())
}

func TestAWorkerClosesItsConnections(t *testing.T) {
	t.Parallel()
	url := testdb.Postgres(t)
	db := open(t, url)
	e := migrated(t, Config{Database: db})
	const count = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
	got := make(chan engine.Delivery, 1)
	stop := run(t, e, func(_ context.Context, d engine.Delivery) engine.Answer { got <- d; return engine.Done() })
	require.NoError(t, e.Enqueue(t.Context(), task(1, 1)))
	receive(t, got)
	require.NotEqual(t, "0", text(t, db, count+" and query like 'LISTEN%'"))
	stop()
	require.Eventually(t, func() bool { return text(t, db, count+" and query like 'LISTEN%'") == "0" }, time.Minute, 10*time.Millisecond)
}

func TestANotificationWakesAWorker(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.Postgres(t))
	e := migrated(t, Config{Database: db, Poll: time.Hour})
	got := make(chan engine.Delivery, 1)
	stop := run(t, e, func(_ context.Context, d engine.Delivery) engine.Answer { got <- d; return engine.Done() })
	require.Eventually(t, func() bool {
		return text(t, db, "select count(*) from pg_stat_activity where datname = current_database() and query like 'LISTEN%'") != "0"
	}, time.Minute, 10*time.Millisecond)
	from := time.Now()
	const n = 20
	for id := range int64(n) {
		require.NoError(t, e.Enqueue(t.Context(), task(id+1, 1)))
		require.Equal(t, id+1, receive(t, got).ID)
	}
	t.Logf("%v for each", time.Since(from)/n)
	stop()
}

func TestADeliveryIsDueByTheClockOfTheDatabase(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.Postgres(t))
	e := migrated(t, Config{Database: db})
	later := task(2, 1)
	later.NotBefore = time.Now().Add(time.Hour)
	require.NoError(t, e.Enqueue(t.Context(), task(1, 1), later))
	require.Equal(t, "available true, scheduled false", text(t, db, `select string_agg(state || ' ' || (scheduled_at < now() - interval '30 seconds')::text, ', ' order by id) from surfin_river.river_job`))
}

func TestTheEngineWorksThroughAPooler(t *testing.T) {
	t.Parallel()
	for name, pollOnly := range map[string]bool{"listening": false, "polling": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := migrated(t, Config{Database: open(t, testdb.Pooled(t, testdb.Postgres(t), "session")), PollOnly: pollOnly})
			got := make(chan engine.Delivery, 1)
			stop := run(t, e, func(_ context.Context, d engine.Delivery) engine.Answer { got <- d; return engine.Done() })
			require.NoError(t, e.Enqueue(t.Context(), task(1, 1)))
			require.Equal(t, task(1, 1).Key(), receive(t, got).Key())
			stop()
		})
	}
}

func TestAJobThatIsNoDeliveryIsEndedAndReported(t *testing.T) {
	t.Parallel()
	db, said := open(t, testdb.Postgres(t)), &lines{}
	e := migrated(t, Config{Database: db, Log: slog.New(slog.NewTextHandler(said, nil))})
	_, err := db.Conn().ExecContext(t.Context(), `insert into surfin_river.river_job (kind, args, queue, max_attempts) values
		('surfin_delivery', '{"work": "task/x", "epoch": 1}', 'a', 1), ('surfin_delivery', '{"work": "cake/1", "epoch": 1}', 'a', 1)`)
	require.NoError(t, err)
	got := make(chan engine.Delivery, 1)
	stop := run(t, e, func(_ context.Context, d engine.Delivery) engine.Answer { got <- d; return engine.Done() })
	require.NoError(t, e.Enqueue(t.Context(), engine.Delivery{Kind: engine.Part, ID: 7, Epoch: 1, Queue: "a", Priority: engine.LastPriority}))
	require.Equal(t, int64(7), receive(t, got).ID)
	stop()
	require.Contains(t, said.String(), "its work \\\"task/x\\\" is not KIND/ID")
	require.Contains(t, said.String(), "its kind is \\\"cake\\\"")
}
