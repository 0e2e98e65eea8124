package repository_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Rule D5.
func TestALaunchDoesNotReachAnInstanceOfTheFormerReading(t *testing.T) {
	t.Parallel()
	testengine.EachDatabase(t, func(t *testing.T, db tx.Database) {
		r := repository.New(db, repository.Options{})
		require.NoError(t, r.Migrate(t.Context()))
		at := func(hour int, former any) core.Parameters {
			value := time.Date(2026, 7, 1, hour, 0, 0, 0, time.UTC)
			params, err := core.NewParameters(core.Parameter{Name: "at", Type: core.TypeTimestamp, Value: value, Former: former, Identifying: true})
			require.NoError(t, err)
			return params
		}
		local := func(hour int) core.Parameters { return at(hour-2, time.Date(2026, 7, 1, hour, 0, 0, 0, time.UTC)) }
		launch := func(params core.Parameters) (core.JobExecutionID, error) {
			checked := r.CheckFormer(t.Context(), "j", params)
			l, err := r.Launch(t.Context(), ports.LaunchRequest{JobName: "j", Params: params, Owner: core.Owner{Host: "h", PID: 1, Boot: "b"}, Lease: time.Minute, Restartable: true})
			if checked != nil {
				require.Equal(t, checked, err)
			}
			if err != nil {
				return 0, err
			}
			return l.Execution.ID, nil
		}
		old, err := launch(at(10, nil))
		require.NoError(t, err)
		e, err := r.Execution(t.Context(), old)
		require.NoError(t, err)
		require.False(t, e.FormerTimes)
		_, err = launch(local(12))
		require.ErrorAs(t, err, new(*ports.AlreadyRunningError), "this version made it")

		for _, table := range []string{"instance", "execution"} {
			_, err := db.Conn().ExecContext(t.Context(), "UPDATE surfin_job_"+table+" SET local_times = NULL")
			require.NoError(t, err)
		}
		e, err = r.Execution(t.Context(), old)
		require.NoError(t, err)
		require.True(t, e.FormerTimes)
		for hour, taken := range map[int]bool{10: false, 12: true} {
			_, err = launch(local(hour))
			var refused *ports.FormerInstanceError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, ports.FormerInstanceError{JobName: "j", Execution: old, Status: core.StatusStarting, Params: local(hour), Taken: taken}, *refused)
		}
		_, err = launch(at(10, nil))
		require.ErrorAs(t, err, new(*ports.AlreadyRunningError), "a time with an offset was never another")
		_, err = launch(local(14))
		require.NoError(t, err)

		_, err = db.Conn().ExecContext(t.Context(), "UPDATE surfin_job_execution SET status = 'ABANDONED', active = NULL")
		require.NoError(t, err)
		_, err = launch(local(12))
		require.ErrorIs(t, err, ports.ErrAbandoned)
		_, err = launch(local(10))
		require.NoError(t, err)
	})
}
