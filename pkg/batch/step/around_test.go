package step_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestAGateSeesTheWholeStepAndItsAnswerIsStored(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		b := newBed(t, url)
		for _, held := range []bool{true, false} {
			b.launch(map[bool]string{true: "held", false: "not held"}[held])
			earlier, err := b.Repository.StartStep(t.Context(), b.ref, ports.StepStart{Name: "work"})
			require.NoError(t, err)
			earlier.Counters.Read = 60
			var saw core.StepExecution
			s := b.tasklet(func(ctx context.Context, c *core.StepContribution) error {
				c.Counters.Read, c.Out = 40, map[string]any{"n": int64(3)}
				return insert(b.Engine, "(7, null)")(ctx, c)
			}, func(c *step.TaskletConfig) {
				c.Expect = condition(func(s core.StepExecution) bool { saw = s; return held }, "skipped = 30, read = 100")
			})
			record := b.do(t.Context(), s, func(r *model.StepRun) { r.Data.Earlier = earlier })
			require.Equal(t, int64(100), saw.Total().Read)
			require.Equal(t, map[string]any{"n": int64(3)}, saw.Out)
			require.Equal(t, core.StatusCompleted, saw.Status)
			took := saw.EndedAt.Sub(saw.StartedAt)
			require.True(t, took > 0 && took < time.Minute, took)
			checked := observed[core.GateChecked](b)
			last := checked[len(checked)-1]
			require.Equal(t, core.GateChecked{Execution: b.job.ID, JobName: b.job.JobName, Step: "work", Gate: record.Gate, Held: held}, last)
			if held {
				require.Equal(t, core.StatusCompleted, record.Status)
				require.Contains(t, record.Gate, "it is well: holds")
				require.Len(t, b.Ints("select id from out"), 1)
				b.Exec("delete from out")
				continue
			}
			require.Equal(t, core.StatusFailed, record.Status)
			require.Equal(t, core.ExitExpectFailed, record.ExitCode)
			require.Equal(t, "it is well: does not hold (skipped = 30, read = 100)", record.Gate)
			require.Equal(t, "expect: "+record.Gate, record.Error)
			require.Empty(t, b.Ints("select id from out"), "rolled back with its transaction")
			ended := observed[core.StepEnded](b)
			require.ErrorIs(t, ended[len(ended)-1].Err, ports.ErrExpect)
		}
	})
}

func TestPromotedValuesAreStoredWithTheEndOfTheStep(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		b := newBed(t, url)
		promoting := func(f core.TaskletFunc, change ...func(*step.TaskletConfig)) *step.TaskletStep {
			return b.tasklet(f, append(change, func(c *step.TaskletConfig) {
				c.Promote = &model.Promotion{Keys: map[string]string{"sum": "total", "gone": "left"}}
			})...)
		}
		put := func(_ context.Context, c *core.StepContribution) error { return c.Context.Put("sum", 42) }

		var caller *core.JobExecution
		b.do(t.Context(), promoting(put), func(r *model.StepRun) { caller = r.Data.Job })
		require.Equal(t, map[string]any{"total": int64(42)}, b.context())
		require.Equal(t, map[string]any{"total": int64(42)}, valuesOf(caller.Context))

		b.launch("a listener puts it")
		told := &noted{name: "l", log: new([]string), change: func(s *core.StepExecution) { require.NoError(t, s.Context.Put("sum", "late")) }}
		record := b.do(t.Context(), promoting(func(context.Context, *core.StepContribution) error { return nil }, listening(told)))
		require.Equal(t, map[string]any{"total": "late"}, b.context())
		require.Equal(t, map[string]any{"sum": "late", "surfin.warnings": "promote: not found in the context of the step, which has: sum: gone"}, valuesOf(record.Context))

		b.launch("by the walker")
		var given map[string]any
		b.do(t.Context(), promoting(put), func(r *model.StepRun) {
			r.Services.Promoter = model.PromoterFunc(func(ctx context.Context, values map[string]any) error {
				_, in := tx.From(ctx, b.Database.Name())
				require.True(t, in, "with the step")
				given = values
				return nil
			})
		})
		require.Equal(t, map[string]any{"total": int64(42)}, given)
		require.Empty(t, b.context())

		b.launch("it cannot be stored")
		record = b.do(t.Context(), promoting(func(ctx context.Context, c *core.StepContribution) error {
			return errors.Join(put(ctx, c), insert(b.Engine, "(7, null)")(ctx, c))
		}), func(r *model.StepRun) {
			r.Services.Promoter = model.PromoterFunc(func(context.Context, map[string]any) error { return testengine.ErrLine })
		})
		require.Equal(t, core.StatusFailed, record.Status)
		require.Empty(t, b.Ints("select id from out"))
	})
}

// A group on PostgreSQL must not hold the job's row, which heartbeats write.
func TestPromotionInAGroupLeavesTheRowOfTheJobFree(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		b := newBed(t, url)
		s := b.tasklet(func(_ context.Context, c *core.StepContribution) error { return c.Context.Put("sum", 42) },
			func(c *step.TaskletConfig) { c.Promote = &model.Promotion{Keys: map[string]string{"sum": "total"}} })
		_, err := b.grouped(b.Database, s, true, func(*model.StepRun, *core.StepExecution) {
			if b.Database.SingleWriter() {
				return
			}
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			_, err := b.Repository.Heartbeat(ctx, b.ref, time.Minute)
			require.NoError(t, err)
		})
		require.NoError(t, err)
		require.Equal(t, map[string]any{"total": int64(42)}, b.context())
	})
}

// A heartbeat in between would fail a write of the job's row in the step's own
// transaction.
func TestPromotionWorksInASerializableTransactionThatHeartbeatsOverlap(t *testing.T) {
	t.Parallel()
	b := newBed(t, testdb.Postgres(t))
	record := b.do(t.Context(), b.tasklet(func(ctx context.Context, c *core.StepContribution) error {
		if err := insert(b.Engine, "(7, null)")(ctx, c); err != nil {
			return err
		}
		_, err := b.Repository.Heartbeat(context.Background(), b.ref, time.Minute)
		return errors.Join(err, c.Context.Put("sum", 42))
	}, func(c *step.TaskletConfig) {
		c.Attr.Isolation = 6 // serializable
		c.Promote = &model.Promotion{Keys: map[string]string{"sum": "total"}}
	}))
	require.Equal(t, core.StatusCompleted, record.Status, record.Error)
	require.Equal(t, map[string]any{"total": int64(42)}, b.context())
}

func TestListenersAreToldOnceInOrderAndBackwards(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		b := newBed(t, url)
		log := []string{}
		one, two := &noted{name: "1", log: &log}, &noted{name: "2", log: &log}
		var handed []any
		s := b.tasklet(func(context.Context, *core.StepContribution) error {
			log = append(log, "work")
			return nil
		}, listening(one, two, one), func(c *step.TaskletConfig) {
			assemble := c.Assemble
			c.Assemble = func(ctx context.Context, run *model.StepRun) (core.Tasklet, error) {
				handed = run.Listeners
				return assemble(ctx, run)
			}
		})
		b.do(t.Context(), s)
		require.Equal(t, []string{
			"1 before", "2 before", "work", "2 sees COMPLETED/COMPLETED", "2 after", "1 sees COMPLETED/COMPLETED", "1 after", "2 close", "1 close",
		}, log)
		require.Equal(t, []any{one, two}, handed)

		record := b.do(t.Context(), b.tasklet(insert(b.Engine, "(7, null)"), listening("me")))
		require.Equal(t, core.StatusFailed, record.Status)
		require.Contains(t, record.Error, "listener 1 is a string")
	})
}

func TestAnAbandonedStepTellsAndPromotesNothing(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		b := newBed(t, url)
		b.executor.StopTimeout = 10 * time.Millisecond
		release, closed := make(chan struct{}), make(chan struct{})
		log := []string{}
		s := b.tasklet(func(_ context.Context, c *core.StepContribution) error {
			<-release
			c.ExitCode = "LATE"
			return c.Context.Put("sum", 42)
		}, listening(closing(closed), &noted{name: "l", log: &log}), func(c *step.TaskletConfig) {
			c.Timeout, c.Attr.Propagation = 10*time.Millisecond, tx.NotSupported
			c.Promote = &model.Promotion{Keys: map[string]string{"sum": "total"}}
		})
		var caller *core.JobExecution
		record := b.do(t.Context(), s, func(r *model.StepRun) { caller = r.Data.Job })
		require.Equal(t, core.StatusFailed, record.Status)
		require.Equal(t, core.ExitFailed, record.ExitCode)
		close(release)
		<-closed
		require.Empty(t, b.context())
		require.Empty(t, valuesOf(caller.Context))
		require.Equal(t, record, b.stored(record.ID))
		require.Equal(t, []string{"l before", "l close"}, log)
	})
}

type closing chan struct{}

func (c closing) BeforeStep(context.Context, *core.StepExecution) error { return nil }
func (c closing) Close(context.Context) error                           { close(c); return nil }

// stoppable is a tasklet that must be notified.
type stoppable struct {
	began, told chan struct{}
	err         error
	panics      bool
}

func (s *stoppable) Execute(ctx context.Context, c *core.StepContribution) error {
	close(s.began)
	<-s.told
	<-c.Stop
	if c.View == nil || c.View.Job == nil || c.View.Step.Name != "work" {
		return errors.New("it sees nothing")
	}
	return core.ErrStopped
}

func (s *stoppable) StopRequested(context.Context) error {
	close(s.told) // a second call would panic
	if s.panics {
		panic("lost my head")
	}
	return s.err
}

func TestAStoppableTaskletIsToldOnceWhileItExecutes(t *testing.T) {
	t.Parallel()
	b := newBed(t, testdb.SQLite(t))
	for name, s := range map[string]*stoppable{"well": {}, "badly": {err: testengine.ErrLine}, "worse": {panics: true}} {
		s.began, s.told = make(chan struct{}), make(chan struct{})
		b.launch(name)
		stop := make(chan struct{})
		go func() {
			<-s.began
			close(stop)
		}()
		before := len(observed[core.StopFailed](b))
		record := b.do(t.Context(), b.tasklet(nil, func(c *step.TaskletConfig) {
			c.Assemble = func(context.Context, *model.StepRun) (core.Tasklet, error) { return s, nil }
		}), func(r *model.StepRun) { r.Services.Stop = model.StopOn(stop) })
		require.Equal(t, core.StatusStopped, record.Status, record.Error)
		failed := observed[core.StopFailed](b)[before:]
		require.Equal(t, name != "well", len(failed) == 1, name)
		if s.err != nil {
			require.Equal(t, core.StopFailed{Execution: b.job.ID, Step: "work", Err: testengine.ErrLine}, failed[0])
		}
	}
}

func TestAStopThatArrivesInBeforeStepIsSeenBeforeTheWork(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		b := newBed(t, url)
		b.launch("stopped in a listener")
		asked := make(chan struct{})
		var log []string
		stops := &stopsBefore{noted: noted{name: "l", log: &log}, ask: func() { close(asked) }}
		record := b.do(t.Context(), b.tasklet(insert(b.Engine, "(1, null)"), listening(stops)), func(r *model.StepRun) {
			r.Services.Stop = model.StopOn(asked)
		})
		require.Equal(t, core.StatusStopped, record.Status, record.Error)
		require.Equal(t, []string{"l before", "l sees STOPPED/STOPPED", "l after", "l close"}, log)
		require.Empty(t, b.Ints("select id from out"))
	})
}

type stopsBefore struct {
	noted
	ask func()
}

func (l *stopsBefore) BeforeStep(ctx context.Context, s *core.StepExecution) error {
	l.ask()
	return l.noted.BeforeStep(ctx, s)
}
