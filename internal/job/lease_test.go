package job_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/internal/testproxy"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type chronicle struct {
	mu     sync.Mutex
	events []string
}

func (c *chronicle) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, what)
}

func (c *chronicle) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.events)
}

// rivals are an owner with a connection to the server that can be frozen or cut, and another process.
type rivals struct {
	chronicle
	t    *testing.T
	line *testproxy.Proxy
	far  *testengine.Engine // over that connection
	near *testengine.Engine
}

func newRivals(t *testing.T, lease time.Duration) *rivals {
	t.Helper()
	url := testdb.Postgres(t)
	r := &rivals{t: t, line: testproxy.New(t, url)}
	short := func(c *job.Config) { c.Lease, c.Heartbeat = lease, lease/10 }
	r.near = testengine.New(t, url, short)
	r.far = testengine.On(t, gormdb.Config{URL: r.line.URL(), IdleInTransaction: lease}, short)
	return r
}

func (r *rivals) takeOver(j *model.Job) *core.JobExecution {
	r.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		exec, err := r.near.Launcher.Run(context.Background(), j, core.Parameters{}, nil)
		if !errors.As(err, new(*ports.AlreadyRunningError)) {
			require.NoError(r.t, err)
			return exec
		}
		require.True(r.t, time.Now().Before(deadline), err)
		time.Sleep(20 * time.Millisecond)
	}
}

// Rule L9.
func TestAnOwnerThatCannotReachTheDatabaseEndsItsWorkBeforeAnotherBegins(t *testing.T) {
	t.Parallel()
	for name, attr := range map[string]tx.Attr{"without a transaction": {Propagation: tx.NotSupported}, "in a transaction": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRivals(t, 3*time.Second)
			work := func(e *testengine.Engine, f core.TaskletFunc) *model.Job {
				return testengine.Job("guarded", e.Tasklet("work", attr, f))
			}
			ended := make(chan error, 1)
			go func() {
				_, err := r.far.Launcher.Run(context.Background(), work(r.far, func(ctx context.Context, _ *core.StepContribution) error {
					r.note("first begins")
					r.line.Freeze()
					<-ctx.Done()
					r.note("first ends")
					return context.Cause(ctx)
				}), core.Parameters{}, nil)
				ended <- err
			}()
			require.Eventually(t, func() bool { return len(r.all()) > 0 }, 10*time.Second, time.Millisecond)
			second := r.takeOver(work(r.near, func(context.Context, *core.StepContribution) error {
				r.note("second begins")
				return nil
			}))
			require.Equal(t, core.StatusCompleted, second.Status)
			err := <-ended
			require.Equal(t, []string{"first begins", "first ends", "second begins"}, r.all())
			require.ErrorContains(t, err, "the lease could not be renewed for")
			require.ErrorContains(t, err, "its lease has expired")
			r.line.Thaw()
		})
	}
}

func TestAComponentThatIgnoresTheEndOfItsLeaseIsReportedBeforeAnotherBegins(t *testing.T) {
	t.Parallel()
	r := newRivals(t, 3*time.Second)
	release := make(chan struct{})
	var late core.ComponentLate
	r.far = testengine.On(t, gormdb.Config{URL: r.line.URL(), IdleInTransaction: 3 * time.Second}, func(c *job.Config) {
		watch := core.ObserverFunc(func(_ context.Context, e core.Event) {
			if l, is := e.(core.ComponentLate); is {
				late = l
				r.note("reported")
			}
		})
		c.Lease, c.Heartbeat, c.Observer = 3*time.Second, 300*time.Millisecond, watch
	})
	ended := make(chan error, 1)
	go func() {
		_, err := r.far.Launcher.Run(context.Background(), testengine.Job("deaf", r.far.Tasklet("work", tx.Attr{}, func(context.Context, *core.StepContribution) error {
			r.note("first begins")
			r.line.Freeze()
			<-release
			return nil
		})), core.Parameters{}, nil)
		ended <- err
	}()
	require.Eventually(t, func() bool { return len(r.all()) > 0 }, 10*time.Second, time.Millisecond)
	second := r.takeOver(testengine.Job("deaf", r.near.Tasklet("work", tx.Attr{}, func(context.Context, *core.StepContribution) error {
		r.note("second begins")
		return nil
	})))
	require.Equal(t, core.StatusCompleted, second.Status)
	require.ErrorContains(t, <-ended, step.ErrAbandoned.Error())
	close(release)
	require.Equal(t, []string{"first begins", "reported", "second begins"}, r.all())
	require.Equal(t, "work", late.Step)
	require.ErrorAs(t, late.Err, new(*model.LeaseError))
	r.line.Thaw()
}

func TestAChunkStepEndsByItsClockAndLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]func(p *testproxy.Proxy){"frozen": (*testproxy.Proxy).Freeze, "cut": (*testproxy.Proxy).Cut} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRivals(t, 3*time.Second)
			r.near.Exec("CREATE TABLE got (n bigint NOT NULL)")
			const size, all = 10, 100
			load := func(e *testengine.Engine, who string, write func(items []int64)) *model.Job {
				return testengine.Job("load", testengine.Chunk(e, "load", size, func() (item.ItemReader[int64], item.ItemProcessor[int64, int64], item.ItemWriter[int64]) {
					return &upTo{last: all, heed: func(int64) { r.note(who + " reads") }}, unchanged{}, inserted{inserting{e}, write}
				}))
			}
			ended := make(chan error, 1)
			go func() {
				_, err := r.far.Launcher.Run(context.Background(), load(r.far, "first", func(items []int64) {
					if items[0] == 51 {
						away(r.line)
					}
				}), core.Parameters{}, nil)
				ended <- err
			}()
			require.Eventually(t, func() bool { return len(r.near.Ints("SELECT n FROM got")) == 50 }, 10*time.Second, time.Millisecond)
			second := r.takeOver(load(r.near, "second", func([]int64) {}))
			require.Equal(t, core.StatusCompleted, second.Status, second.Error)
			require.Error(t, <-ended)
			reads := r.all()
			require.Equal(t, 60, slices.Index(reads, "second reads"), "the first one reads no other chunk: %v", reads)
			require.NotContains(t, reads[60:], "first reads")
			require.Len(t, r.near.Ints("SELECT n FROM got"), all)
			require.Len(t, r.near.Ints("SELECT DISTINCT n FROM got"), all)
			r.line.Thaw()
		})
	}
}

func TestTheEndIsRecordedWhenTheServerIsBackWithinTheLease(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lease, away time.Duration
		fails       error
		want        core.Status
	}{
		"completed":                 {4 * time.Second, time.Second, nil, core.StatusCompleted},
		"failed":                    {4 * time.Second, time.Second, errors.New("no such file"), core.StatusFailed},
		"after the work was to end": {6 * time.Second, 4500 * time.Millisecond, nil, core.StatusCompleted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRivals(t, c.lease)
			exec, err := r.far.Launcher.Run(context.Background(), testengine.Job("away", r.far.Tasklet("work", tx.Attr{Propagation: tx.NotSupported}, func(context.Context, *core.StepContribution) error {
				r.line.Cut()
				time.AfterFunc(c.away, r.line.Heal)
				return c.fails
			})), core.Parameters{}, nil)
			require.NoError(t, err)
			require.Equal(t, c.want, exec.Status)
			stored, err := r.near.Repository.Execution(t.Context(), exec.ID)
			require.NoError(t, err)
			require.Equal(t, c.want, stored.Status)
			require.Equal(t, c.want, r.near.Step(exec, "work").Status)
		})
	}
}

func TestNoStepBeginsAfterTheClockHasEndedTheWork(t *testing.T) {
	t.Parallel()
	r := newRivals(t, 6*time.Second)
	exec, err := r.far.Launcher.Run(context.Background(), testengine.Job("two",
		r.far.Tasklet("one", tx.Attr{Propagation: tx.NotSupported}, func(ctx context.Context, _ *core.StepContribution) error {
			r.line.Cut()
			<-ctx.Done()
			r.line.Heal()
			return nil
		}),
		r.far.Tasklet("two", tx.Attr{}, func(context.Context, *core.StepContribution) error {
			r.note("two begins")
			return nil
		})), core.Parameters{}, nil)
	require.NoError(t, err)
	require.Equal(t, core.StatusFailed, exec.Status)
	require.Contains(t, exec.Error, "step two: not started: the lease could not be renewed")
	require.Equal(t, core.StatusCompleted, r.near.Step(exec, "one").Status)
	require.Empty(t, r.all())
	again := r.takeOver(testengine.Job("two",
		r.near.Tasklet("one", tx.Attr{}, func(context.Context, *core.StepContribution) error { return errors.New("again") }),
		r.near.Tasklet("two", tx.Attr{}, func(context.Context, *core.StepContribution) error { return nil })))
	require.Equal(t, core.StatusCompleted, again.Status, again.Error)
}

func TestPartsThatWereNotBegunAreEndedWhenTheServerIsBack(t *testing.T) {
	t.Parallel()
	r := newRivals(t, 6*time.Second)
	partitioned := func(e *testengine.Engine, work core.TaskletFunc) *model.Job {
		inner := e.Tasklet("parts", tx.Attr{Propagation: tx.NotSupported}, work)
		s, err := step.NewPartitioned(step.PartitionConfig{
			Step: inner.Step, Workers: 1,
			Partitioner: func(context.Context, *model.StepRun) (core.Partitioner, error) { return numberedParts(3), nil },
		})
		require.NoError(t, err)
		return testengine.Job("parted", &model.StepElement{Step: s})
	}
	exec, err := r.far.Launcher.Run(context.Background(), partitioned(r.far, func(ctx context.Context, _ *core.StepContribution) error {
		r.note("begins")
		r.line.Cut()
		<-ctx.Done()
		time.AfterFunc(300*time.Millisecond, r.line.Heal)
		return context.Cause(ctx)
	}), core.Parameters{}, nil)
	require.NoError(t, err)
	require.Equal(t, core.StatusFailed, exec.Status)
	require.Equal(t, []string{"begins"}, r.all())
	again := r.takeOver(partitioned(r.near, func(context.Context, *core.StepContribution) error { return nil }))
	require.Equal(t, core.StatusCompleted, again.Status, again.Error)
}

// On SQLite a heartbeat waits for a long transaction of its own process. The
// clock rests then: no other process can write.
func TestTheClockRestsWhileThisProcessHoldsTheOnlyWriter(t *testing.T) {
	t.Parallel()
	const long = `INSERT INTO got WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 600000) SELECT n FROM c`
	for name, c := range map[string]struct {
		attr tx.Attr
		work func(ctx context.Context, db tx.Database) error
	}{
		"a transaction that waits": {tx.Attr{}, func(ctx context.Context, db tx.Database) error {
			_, err := tx.ConnOf(ctx, db).ExecContext(ctx, "INSERT INTO got VALUES (1)")
			time.Sleep(1500 * time.Millisecond)
			return errors.Join(err, context.Cause(ctx))
		}},
		"a long statement": {tx.Attr{Propagation: tx.NotSupported}, func(ctx context.Context, db tx.Database) error {
			_, err := db.Conn().ExecContext(ctx, long)
			return errors.Join(err, context.Cause(ctx))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := testengine.New(t, testdb.SQLite(t), func(c *job.Config) { c.Lease, c.Heartbeat = 600*time.Millisecond, 60*time.Millisecond })
			e.Exec("CREATE TABLE got (n bigint NOT NULL)")
			began := time.Now()
			exec := e.Run(testengine.Job("long", e.Tasklet("work", c.attr, func(ctx context.Context, _ *core.StepContribution) error {
				return c.work(ctx, e.Database)
			})))
			require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
			t.Logf("took %v", time.Since(began))
			for _, event := range e.Events() {
				_, failed := event.(core.HeartbeatFailed)
				require.False(t, failed, "%v", event)
			}
		})
	}
}

type inserted struct {
	inserting
	then func(items []int64)
}

func (w inserted) Write(ctx context.Context, items []int64) error {
	if err := w.inserting.Write(ctx, items); err != nil {
		return err
	}
	w.then(items)
	return nil
}
