package step_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/step"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

var errGroup = errors.New("the group is rolled back")

// grouped runs a step in a group in the database, which then commits or not. during is called while the
// transaction is open.
func (b *bed) grouped(db tx.Database, s model.Step, commit bool, during func(run *model.StepRun, record *core.StepExecution)) (core.StepExecution, error) {
	b.T.Helper()
	var executed core.StepExecution
	err := tx.NewManager(db).Do(b.T.Context(), tx.Attr{}, func(ctx context.Context) error {
		run := b.run()
		run.Data.Group = &model.Group{Name: "both", Database: db.Name()}
		record, err := b.executor.Execute(ctx, s, run)
		require.NoError(b.T, err)
		executed = *record
		during(run, record)
		if !commit {
			return errGroup
		}
		return nil
	})
	return executed, err
}

func (b *bed) attempts() []core.StepExecution {
	b.T.Helper()
	steps, err := b.Repository.Steps(b.T.Context(), b.job.ID)
	require.NoError(b.T, err)
	return steps
}

type groupCase struct {
	refused error
	own     bool
}

func groupCases(singleWriter bool) map[tx.Propagation]groupCase {
	cases := map[tx.Propagation]groupCase{
		"": {}, tx.Required: {}, tx.Nested: {}, tx.Supports: {}, tx.Mandatory: {},
		tx.RequiresNew: {own: true}, tx.NotSupported: {own: true}, tx.Never: {refused: tx.ErrTransaction},
	}
	if singleWriter {
		cases[tx.RequiresNew] = groupCase{refused: tx.ErrSingleWriter}
		cases[tx.NotSupported] = groupCase{refused: tx.ErrSingleWriter}
	}
	return cases
}

func TestASuccessInAGroupIsWorthWhatItsTransactionIsWorth(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		b := newBed(t, url)
		single := b.Database.SingleWriter()
		for propagation, c := range groupCases(single) {
			for _, commit := range []bool{true, false} {
				b.launch(string(propagation) + map[bool]string{true: " commit", false: " rollback"}[commit])
				b.Exec("delete from out")
				s := b.tasklet(insert(b.Engine, "(7, null)"), func(config *step.TaskletConfig) { config.Attr.Propagation = propagation })
				record, err := b.grouped(b.Database, s, commit, func(run *model.StepRun, record *core.StepExecution) {
					if c.refused != nil {
						require.NotNil(t, run.Deferred, propagation)
						require.Equal(t, core.StatusFailed, record.Status, propagation)
						require.Equal(t, core.StatusFailed, run.Deferred.Change.To, propagation)
						require.Equal(t, record.ID, run.Deferred.Ref.ID, propagation)
						require.Contains(t, record.Error, c.refused.Error())
						return
					}
					require.Equal(t, core.StatusCompleted, record.Status, propagation)
					require.Nil(t, run.Deferred, propagation)
					if !single { // the row of the job is free: heartbeats continue
						ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
						defer cancel()
						_, err := b.Repository.Heartbeat(ctx, b.ref, time.Minute)
						require.NoError(t, err)
					}
				})
				if commit {
					require.NoError(t, err, propagation)
				} else {
					require.ErrorIs(t, err, errGroup, propagation)
				}
				b.afterGroup(record, c, commit, propagation)
			}
		}
	})
}

func (b *bed) afterGroup(record core.StepExecution, c groupCase, commit bool, propagation tx.Propagation) {
	t := b.T
	t.Helper()
	there := c.refused == nil && (commit || c.own)
	require.Equal(t, there, len(b.Ints("select id from out")) == 1, "%s, commit %v", propagation, commit)
	stored := b.attempts()
	if b.Database.SingleWriter() && !commit {
		require.Empty(t, stored, "the record went with the group")
		return
	}
	require.Len(t, stored, 1)
	require.Equal(t, record.ID, stored[0].ID)
	want := core.StatusStarted // left for the group's owner to end
	if there {
		want = core.StatusCompleted
	}
	require.Equal(t, want, stored[0].Status, "%s, commit %v", propagation, commit)
}

func TestAFailureInAGroupIsLeftToItsOwner(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		b := newBed(t, url)
		for _, propagation := range tx.Propagations() {
			b.launch(string(propagation))
			s := b.tasklet(func(ctx context.Context, c *core.StepContribution) error {
				return errors.Join(insert(b.Engine, "(7, null)")(ctx, c), testengine.ErrLine)
			}, func(config *step.TaskletConfig) { config.Attr.Propagation = propagation })
			var deferred model.DeferredEnd
			_, err := b.grouped(b.Database, s, true, func(run *model.StepRun, record *core.StepExecution) {
				require.Equal(t, core.StatusFailed, record.Status, propagation)
				require.NotNil(t, run.Deferred, propagation)
				deferred = *run.Deferred
				require.Equal(t, "work", deferred.Name)
			})
			var doomed *tx.RollbackOnlyError
			joined := propagation == tx.Required || propagation == tx.Supports || propagation == tx.Mandatory
			require.Equal(t, joined, errors.As(err, &doomed), "%s: %v", propagation, err)
			if joined && b.Database.SingleWriter() {
				require.Empty(t, b.attempts(), propagation)
				continue
			}
			require.Equal(t, core.StatusStarted, b.attempts()[0].Status, propagation)
			answer, err := b.Repository.EndStep(t.Context(), deferred.Ref, deferred.Change)
			require.NoError(t, err, propagation)
			require.Equal(t, core.Applied, answer, propagation)
			require.Equal(t, core.StatusFailed, b.attempts()[0].Status, propagation)
		}
	})
}

func TestASuccessInAGroupOfAnotherDatabaseIsRecordedWhenTheGroupIsOver(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		b := newBed(t, url)
		for _, others := range []string{testdb.SQLite(t), testdb.Postgres(t)} {
			other := another(t, others)
			for propagation, c := range groupCases(other.SingleWriter()) {
				b.launch(string(other.Dialect()) + " " + string(propagation))
				s := b.tasklet(func(ctx context.Context, _ *core.StepContribution) error { return insertInto(ctx, other, 7) },
					func(config *step.TaskletConfig) { config.Attr.Propagation, config.Database = propagation, other })
				_, err := b.grouped(other, s, true, func(run *model.StepRun, record *core.StepExecution) {
					require.Equal(t, !c.own, run.Deferred != nil, propagation)
					require.Equal(t, c.refused == nil, record.Status == core.StatusCompleted, propagation)
					stored := b.attempts()
					require.Len(t, stored, 1, propagation)
					require.Equal(t, c.own, stored[0].Status == core.StatusCompleted, propagation)
				})
				require.NoError(t, err, propagation)
			}
		}
	})
}

func TestACommitOfItsOwnThatFailsInAGroupIsJudgedByTheRow(t *testing.T) {
	t.Parallel()
	b := newBed(t, testdb.Postgres(t))
	for name, c := range map[string]struct {
		commit func(tx.Handle) error
		status core.Status
	}{"before": {testengine.LostBefore, core.StatusFailed}, "after": {testengine.LostAfter, core.StatusCompleted}} {
		b.launch(name)
		s := b.tasklet(insert(b.Engine, "(7, null)"), func(config *step.TaskletConfig) {
			config.Attr.Propagation, config.Database = tx.RequiresNew, testengine.Committing{Database: b.Database, Commit: c.commit}
		})
		_, err := b.grouped(b.Database, s, false, func(run *model.StepRun, record *core.StepExecution) {
			require.Equal(t, c.status, record.Status, name)
			require.Nil(t, run.Deferred, name)
		})
		require.ErrorIs(t, err, errGroup)
		require.Equal(t, c.status, b.attempts()[0].Status, name)
	}
}

func TestAnAbandonedStepDoomsItsGroup(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		b := newBed(t, url)
		b.executor.StopTimeout = 20 * time.Millisecond
		release, returned := make(chan struct{}), make(chan struct{})
		s := b.tasklet(func(ctx context.Context, _ *core.StepContribution) error {
			defer close(returned)
			<-release
			return nil
		}, func(config *step.TaskletConfig) { config.Timeout = 10 * time.Millisecond })
		_, err := b.grouped(b.Database, s, true, func(run *model.StepRun, record *core.StepExecution) {
			require.NotNil(t, run.Deferred)
			require.Contains(t, record.Error, step.ErrAbandoned.Error())
		})
		require.ErrorIs(t, err, step.ErrAbandoned)
		var doomed *tx.RollbackOnlyError
		require.ErrorAs(t, err, &doomed)
		close(release)
		<-returned
	})
}

// On a database with one writer the rollback of a group removes the records of
// its steps, and their IDs are reused: the code that ends them must not use
// those.
func TestTheRecordsOfAGroupThatIsRolledBackAreGoneWhereItSaysSo(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		b := newBed(t, url)
		s := b.tasklet(func(context.Context, *core.StepContribution) error { return nil })
		inside := false
		record, err := b.grouped(b.Database, s, false, func(run *model.StepRun, _ *core.StepExecution) { inside = run.StartedInGroup })
		require.ErrorIs(t, err, errGroup)
		require.Equal(t, b.Database.SingleWriter(), inside)
		next, err := b.Repository.StartStep(t.Context(), b.ref, ports.StepStart{Name: "beside"})
		require.NoError(t, err)
		require.Equal(t, inside, next.ID == record.ID)
	})
}
