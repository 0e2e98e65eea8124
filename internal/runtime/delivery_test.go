package runtime_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/runtime/engine"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/engine/river"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func announced(t *testing.T, url string, make func(e *testengine.Engine) engine.Engine, parts int) *workplace {
	t.Helper()
	e := testengine.New(t, url)
	made := make(e)
	e.Repository = repository.New(e.Database, repository.Options{Announcer: runtime.Announcer{Engine: made}})
	var err error
	e.Launcher, err = job.NewLauncher(job.Config{
		Repository: e.Repository.Ports(), Executor: step.NewSimpleStepExecutor(e.Repository, e.Database.Name(), nil), Lease: time.Minute,
	})
	require.NoError(t, err)
	p := workplaceOn(t, e, made, parts, func(context.Context, *core.StepContribution) error { return nil })
	p.config.Sweep = time.Hour
	return p
}

func withRiver(t *testing.T, parts int) (*workplace, *river.Engine) {
	t.Helper()
	var made *river.Engine
	p := announced(t, testdb.Postgres(t), func(e *testengine.Engine) engine.Engine {
		var err error
		made, err = river.New(river.Config{Database: e.Database, Grace: time.Millisecond})
		require.NoError(t, err)
		require.NoError(t, made.Migrate(t.Context()))
		return made
	}, parts)
	return p, made
}

func (p *workplace) delivered(kind engine.Kind) int64 {
	p.T.Helper()
	return p.Ints("SELECT count(*) FROM surfin_river.river_job WHERE args->>'work' LIKE '" + string(kind) + "/%'")[0]
}

type deliveredOnly struct {
	ports.Assignments
	ports.Parks
}

func (p *workplace) deliveredOnly() ports.Repository {
	all := p.Repository.Ports()
	only := &deliveredOnly{all.Assignments, all.Parks}
	all.Assignments, all.Parks = only, only
	return all
}

func (d *deliveredOnly) AssignPartition(ctx context.Context, req ports.AssignRequest) (*ports.Assignment, error) {
	if req.Part == 0 {
		return nil, nil
	}
	return d.Assignments.AssignPartition(ctx, req)
}

func (*deliveredOnly) Resumable(context.Context, string, int, []string) ([]core.JobExecutionID, error) {
	return nil, nil
}

// Rule E7.
func TestPartsAndContinuationsAreDelivered(t *testing.T) {
	t.Parallel()
	check := func(p *workplace) {
		p.config.Slots = 2
		p.parts.Repository = p.deliveredOnly()
		require.NoError(p.T, p.work())
		require.Equal(p.T, core.StatusCompleted, p.status())
		require.Equal(p.T, 5, p.happened("ended"))
		require.Equal(p.T, 1, p.happened("resumed"))
	}
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		check(announced(t, url, func(e *testengine.Engine) engine.Engine { return deliverer(t, e) }, 5))
	})
	t.Run("river", func(t *testing.T) {
		t.Parallel()
		p, _ := withRiver(t, 5)
		require.EqualValues(t, 5, p.delivered(engine.Part), "in the transaction of the plan")
		require.Zero(t, p.delivered(engine.Resume))
		check(p)
		require.EqualValues(t, 1, p.delivered(engine.Resume))
	})
}

func TestAStopOfAParkedExecutionDeliversItsContinuation(t *testing.T) {
	t.Parallel()
	p, _ := withRiver(t, 2)
	taken, err := p.Repository.AssignPartition(t.Context(), ports.AssignRequest{Owner: core.Owner{Host: "w", PID: 1}, Lease: time.Hour})
	require.NoError(t, err)
	_, err = p.Repository.RequestStop(t.Context(), p.exec.ID, ports.By{Actor: "test"})
	require.NoError(t, err)
	require.Zero(t, p.delivered(engine.Resume), "a worker has a part")
	ref := ports.StepRef{ID: taken.Step.ID, Owner: taken.Step.Owner, Epoch: taken.Step.Epoch}
	end := func(ctx context.Context) error {
		_, err := p.Repository.EndStep(ctx, ref, ports.StepChange{To: core.StatusStopped})
		return err
	}
	failed := errors.New("rolled back")
	err = tx.NewManager(p.Database).Do(t.Context(), tx.Attr{}, func(ctx context.Context) error { return errors.Join(end(ctx), failed) })
	require.ErrorIs(t, err, failed)
	require.Zero(t, p.delivered(engine.Resume))
	require.NoError(t, end(t.Context()))
	require.EqualValues(t, 1, p.delivered(engine.Resume))
	require.NoError(t, p.work())
	require.Equal(t, core.StatusStopped, p.status())

	none, _ := withRiver(t, 2)
	_, err = none.Repository.RequestStop(t.Context(), none.exec.ID, ports.By{Actor: "test"})
	require.NoError(t, err)
	require.EqualValues(t, 1, none.delivered(engine.Resume), "no worker had a part")
}

func TestTheLeaderDeliversWhatWasLost(t *testing.T) {
	t.Parallel()
	p, e := withRiver(t, 2)
	duty := runtime.RedeliverReady(p.Repository, e, 0)
	sweep := func() {
		t.Helper()
		require.NoError(t, tx.NewManager(p.Database).Do(t.Context(), tx.Attr{}, func(ctx context.Context) error {
			for more := true; more; {
				var err error
				if more, err = duty.Do(ctx); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	worker := core.Owner{Host: "w", PID: 1}
	sweep()
	require.EqualValues(t, 2, p.delivered(engine.Part), "none is lost")
	p.Exec("DELETE FROM surfin_river.river_job")
	sweep()
	sweep()
	require.EqualValues(t, 2, p.delivered(engine.Part))

	taken, err := p.Repository.AssignPartition(t.Context(), ports.AssignRequest{Owner: worker, Lease: time.Hour})
	require.NoError(t, err)
	p.Exec("DELETE FROM surfin_river.river_job")
	sweep()
	require.EqualValues(t, 1, p.delivered(engine.Part), "its lease lives")
	p.Exec("UPDATE surfin_step_execution SET lease_until = now() WHERE lease_until IS NOT NULL")
	sweep()
	require.EqualValues(t, 2, p.delivered(engine.Part))
	again, err := p.Repository.AssignPartition(t.Context(), ports.AssignRequest{Owner: worker, Lease: time.Hour, Part: taken.Step.ID, Epoch: taken.Step.Epoch})
	require.NoError(t, err)
	require.Equal(t, taken.Step.Epoch+1, again.Step.Epoch)
	late, err := p.Repository.AssignPartition(t.Context(), ports.AssignRequest{Owner: worker, Lease: time.Hour, Part: taken.Step.ID, Epoch: taken.Step.Epoch})
	require.NoError(t, err)
	require.Nil(t, late, "of an earlier epoch")
	_, err = p.Repository.AssignPartition(t.Context(), ports.AssignRequest{Owner: worker, Lease: time.Hour, Part: again.Step.ID, Epoch: again.Step.Epoch})
	require.ErrorAs(t, err, new(*ports.NotNowError))

	p.Exec("UPDATE surfin_step_execution SET lease_until = now() WHERE lease_until IS NOT NULL")
	require.NoError(t, p.Repository.ReleasePartition(t.Context(), ports.StepRef{ID: again.Step.ID, Owner: worker, Epoch: again.Step.Epoch}, ""))
	_, err = p.Repository.RequestStop(t.Context(), p.exec.ID, ports.By{Actor: "test"})
	require.NoError(t, err)
	p.Exec("DELETE FROM surfin_river.river_job WHERE args->>'work' LIKE 'resume/%'")
	sweep()
	require.NoError(t, p.work())
	require.Equal(t, core.StatusStopped, p.status())
}
