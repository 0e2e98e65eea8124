package step_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/step"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

func engine(t *testing.T, url string) *testengine.Engine {
	t.Helper()
	e := testengine.New(t, url)
	e.Exec("create table parent(id bigint primary key)")
	e.Exec("create table out(id bigint, parent bigint references parent(id) deferrable initially deferred)")
	return e
}

func insert(e *testengine.Engine, values string) core.TaskletFunc {
	return func(ctx context.Context, _ *core.StepContribution) error {
		_, err := tx.ConnOf(ctx, e.Database).ExecContext(ctx, "insert into out(id, parent) values "+values)
		return err
	}
}

func TestATaskletRunsInTheTransactionItsPropagationAsksFor(t *testing.T) {
	t.Parallel()
	within := map[tx.Propagation]bool{
		"": true, tx.Required: true, tx.RequiresNew: true, tx.Nested: true,
		tx.Supports: false, tx.NotSupported: false, tx.Never: false,
	}
	testdb.Each(t, func(t *testing.T, url string) {
		e := engine(t, url)
		for propagation, want := range within {
			var in bool
			exec := e.Run(testengine.Job("job_"+string(propagation), e.Tasklet("look", tx.Attr{Propagation: propagation},
				func(ctx context.Context, _ *core.StepContribution) error {
					_, in = tx.From(ctx, e.Database.Name())
					return nil
				})))
			require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
			require.Equal(t, want, in, "propagation %q", propagation)
		}
		exec := e.Run(testengine.Job("mandatory", e.Tasklet("look", tx.Attr{Propagation: tx.Mandatory}, insert(e, "(1, null)"))))
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Contains(t, exec.Error, tx.ErrNoTransaction.Error())
		require.Empty(t, e.Ints("select id from out"))
	})
}

func TestAFailureIsRecordedThoughItsTransactionIsRolledBack(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := engine(t, url)
		cases := map[string]struct {
			f    core.TaskletFunc
			want string
		}{
			"error": {func(ctx context.Context, c *core.StepContribution) error {
				return errors.Join(insert(e, "(1, null)")(ctx, c), errors.New("no good"))
			}, "no good"},
			"panic": {func(ctx context.Context, c *core.StepContribution) error {
				if err := insert(e, "(1, null)")(ctx, c); err != nil {
					return err
				}
				panic("lost my head")
			}, "panic: lost my head"},
			"commit": {insert(e, "(1, 99)"), "commit: "},
		}
		for name, c := range cases {
			exec := e.Run(testengine.Job(name, e.Tasklet("work", tx.Attr{}, c.f)))
			require.Equal(t, core.StatusFailed, exec.Status, name)
			require.Contains(t, exec.Error, c.want, name)
			record := e.Step(exec, "work")
			require.Equal(t, core.StatusFailed, record.Status, name)
			require.False(t, record.EndedAt.IsZero(), name)
			require.Empty(t, e.Ints("select id from out"), name)
		}
	})
}

func TestATaskletReportsExitCodeCountersOutAndContext(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := engine(t, url)
		exec := e.Run(testengine.Job("job", e.Tasklet("work", tx.Attr{}, func(_ context.Context, c *core.StepContribution) error {
			c.ExitCode = "COMPLETED WITH SKIPS"
			c.Counters.Write = 7
			c.Out = map[string]any{"n": int64(3)}
			return c.Context.Put("seen", 42)
		})))
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, "COMPLETED WITH SKIPS", exec.ExitCode)
		record := e.Step(exec, "work")
		require.Equal(t, "COMPLETED WITH SKIPS", record.ExitCode)
		require.Equal(t, int64(7), record.Counters.Write)
		require.EqualValues(t, 3, record.Out["n"])
		seen, _ := record.Context.Get("seen")
		require.Equal(t, int64(42), seen)
	})
}

func TestAStepThatRunsIntoItsTimeoutFailsAndSaysSo(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := engine(t, url)
		s, err := step.NewTasklet(step.TaskletConfig{
			Name: "slow", Database: e.Database, Timeout: 20 * time.Millisecond,
			Assemble: func(context.Context, *model.StepRun) (core.Tasklet, error) {
				return core.TaskletFunc(func(ctx context.Context, c *core.StepContribution) error {
					if err := insert(e, "(1, null)")(ctx, c); err != nil {
						return err
					}
					<-ctx.Done()
					return ctx.Err()
				}), nil
			},
		})
		require.NoError(t, err)
		exec := e.Run(testengine.Job("job", &model.StepElement{Step: s}))
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Contains(t, exec.Error, "step slow exceeded its timeout of 20ms")
		require.Empty(t, e.Ints("select id from out"))
	})
}

func TestAStepThatDoesNotReturnIsAbandonedAndCanCommitNothing(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		var executor *step.SimpleStepExecutor
		e := testengine.New(t, url, func(c *job.Config) {
			executor = c.Executor.(*step.SimpleStepExecutor)
			executor.StopTimeout = 20 * time.Millisecond
		})
		e.Exec("create table out(id bigint, parent bigint)")
		ctx, cancel := context.WithCancel(context.Background())
		release, returned := make(chan struct{}), make(chan error, 1)
		stuck := e.Tasklet("stuck", tx.Attr{}, func(ctx context.Context, c *core.StepContribution) error {
			err := insert(e, "(1, null)")(ctx, c)
			cancel()
			for left := true; left; { // it may change its own context
				select {
				case <-release:
					left = false
				default:
					err = errors.Join(err, c.Context.Put("n", time.Now().Nanosecond()))
				}
			}
			_, late := tx.ConnOf(ctx, e.Database).ExecContext(context.WithoutCancel(ctx), "insert into out(id) values (2)")
			returned <- late
			return err
		})
		exec, err := e.Launcher.Run(ctx, testengine.Job("job", stuck), core.Parameters{}, nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Contains(t, exec.Error, step.ErrAbandoned.Error())
		require.Equal(t, core.StatusFailed, e.Step(exec, "stuck").Status)
		close(release)
		require.ErrorIs(t, <-returned, sql.ErrTxDone)
		require.Empty(t, e.Ints("select id from out"))
	})
}

func TestATaskletWhoseExecutionWasTakenOverCommitsNothing(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := engine(t, url)
		j := testengine.Job("job", e.Tasklet("work", tx.Attr{}, func(ctx context.Context, c *core.StepContribution) error {
			conn := tx.ConnOf(ctx, e.Database)
			if _, err := conn.ExecContext(ctx, "update surfin_step_execution set epoch = epoch + 1, status = 'FAILED'"); err != nil {
				return err
			}
			return insert(e, "(1, null)")(ctx, c)
		}))
		_, err := e.Launcher.Run(context.Background(), j, core.Parameters{}, nil)
		_ = err // on rollback the take-over of this test is undone too
		require.Empty(t, e.Ints("select id from out"))
	})
}
