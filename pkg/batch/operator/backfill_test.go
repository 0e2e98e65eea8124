package operator_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/operator"
)

// backfilled are the values, with what became of them.
func backfilled(runs []operator.BackfillRun) (all []string) {
	for _, r := range runs {
		switch {
		case r.Skipped:
			all = append(all, r.Value+" skipped")
		case r.Execution != nil:
			all = append(all, fmt.Sprintf("%s %s %d", r.Value, r.Execution.Status, r.Execution.Attempt))
		default:
			all = append(all, r.Value+" "+r.Problem)
		}
	}
	return all
}

func TestABackfillRunsEachInstanceOfARangeOnce(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		d := newDesk(t, url)
		d.wait(d.start("load", d.run(3)))
		request := func(from, to string, parallel int) operator.BackfillRequest {
			return operator.BackfillRequest{RunRequest: operator.RunRequest{Name: "load"}, Param: "run", From: from, To: to, Parallel: parallel}
		}
		var mu sync.Mutex
		calls := 0
		d.work = func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			if calls++; calls == 2 {
				return fmt.Errorf("the second one fails")
			}
			return nil
		}
		runs, err := d.Backfill(t.Context(), request("1", "4", 1))
		require.NoError(t, err)
		require.Equal(t, []string{"1 COMPLETED 1", "2 FAILED 1", "3 skipped", "4 COMPLETED 1"}, backfilled(runs))
		require.True(t, runs[1].Failed())
		runs, err = d.Backfill(t.Context(), request("1", "5", 1))
		require.NoError(t, err)
		require.Equal(t, []string{"1 skipped", "2 COMPLETED 2", "3 skipped", "4 skipped", "5 COMPLETED 1"}, backfilled(runs), "run again it goes on")
		every := request("10", "20", 1)
		every.Step = 5
		runs, err = d.Backfill(t.Context(), every)
		require.NoError(t, err)
		require.Equal(t, []string{"10 COMPLETED 1", "15 COMPLETED 1", "20 COMPLETED 1"}, backfilled(runs))
	})
}

func TestAStopOfABackfillBeginsNoOther(t *testing.T) {
	t.Parallel()
	d := newDesk(t, testdb.SQLite(t))
	stop := make(chan struct{})
	var running, most atomic.Int64
	d.work = func(ctx context.Context) error {
		if n := running.Add(1); n == 1 {
			close(stop)
		} else {
			most.Store(n)
		}
		defer running.Add(-1)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
			return nil
		}
	}
	req := operator.BackfillRequest{RunRequest: operator.RunRequest{Name: "load"}, Param: "run", From: "1", To: "50", Parallel: 1}
	req.Stop = stop
	over := 0
	req.Done = func(operator.BackfillRun) { over++ }
	runs, err := d.Backfill(t.Context(), req)
	require.NoError(t, err)
	require.Less(t, len(runs), 50)
	require.Len(t, runs, over)
}

func TestARangeIsChecked(t *testing.T) {
	t.Parallel()
	d := newDesk(t, testdb.SQLite(t))
	d.load.Parameters = append(d.load.Parameters, core.ParameterSpec{Name: "day", Type: core.TypeDate, Identifying: true}, core.ParameterSpec{Name: "dry", Type: core.TypeInt})
	for want, r := range map[string][3]string{
		"the job has no such parameter":                   {"days", "1", "2"},
		"a range is of a date or an int, not of a string": {"input", "a", "b"},
		"dry is not identifying":                          {"dry", "1", "2"},
		`"x" is not an int`:                               {"run", "x", "2"},
		"2026-11-20 is after 2026-11-01":                  {"day", "2026-11-20", "2026-11-01"},
		"the range has more than 10000 values":            {"run", "-9223372036854775808", "9223372036854775807"},
	} {
		_, err := d.Backfill(t.Context(), operator.BackfillRequest{RunRequest: operator.RunRequest{Name: "load"}, Param: r[0], From: r[1], To: r[2]})
		var refused *operator.Refusal
		require.ErrorAs(t, err, &refused, want)
		require.Equal(t, operator.ReasonParameters, refused.Reason)
		require.ErrorContains(t, err, want)
	}
	runs, err := d.Backfill(t.Context(), operator.BackfillRequest{RunRequest: operator.RunRequest{Name: "load"}, Param: "day", From: "2026-02-27", To: "2026-03-01"})
	require.NoError(t, err)
	require.Equal(t, []string{"2026-02-27 COMPLETED 1", "2026-02-28 COMPLETED 1", "2026-03-01 COMPLETED 1"}, backfilled(runs))
}
