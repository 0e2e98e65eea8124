package operator_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func backfilled(b *operator.Backfilled) (all []string) {
	for _, r := range b.Runs {
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
		require.True(t, runs.Runs[1].Failed())
		require.Equal(t, 1, runs.Failed())
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
	d.work = func(context.Context) error {
		close(stop) // a tasklet that has begun ends normally
		return nil
	}
	req := operator.BackfillRequest{RunRequest: operator.RunRequest{Name: "load"}, Param: "run", From: "1", To: "50", Parallel: 1}
	req.Stop = stop
	over := 0
	req.Done = func(operator.BackfillRun) { over++ }
	all, err := d.Backfill(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, []int{1, 1, 49}, []int{over, len(all.Runs), all.NotBegun})

	all, err = d.Backfill(t.Context(), req)
	require.NoError(t, err)
	require.NotNil(t, all.Runs, "in JSON it is a list")
	require.Equal(t, []int{0, 50}, []int{len(all.Runs), all.NotBegun})

	last := make(chan struct{})
	d.work = nil
	req.Stop, req.To = last, "2"
	req.Done = func(r operator.BackfillRun) {
		if r.Value == "2" {
			close(last)
		}
	}
	all, err = d.Backfill(t.Context(), req)
	require.NoError(t, err)
	require.Len(t, all.Runs, 2)
	require.Zero(t, all.NotBegun+all.Failed())
}

func TestABackfillRunsInstancesSideBySide(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		d := newDesk(t, url)
		const parallel = 3
		var running, most atomic.Int64
		all := make(chan struct{})
		d.work = func(ctx context.Context) error {
			n := running.Add(1)
			defer running.Add(-1)
			for before := most.Load(); n > before && !most.CompareAndSwap(before, n); before = most.Load() {
			}
			if n == parallel {
				close(all)
			}
			select {
			case <-all:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		req := operator.BackfillRequest{RunRequest: operator.RunRequest{Name: "load"}, Param: "run", From: "1", To: "3", Parallel: parallel}
		values := map[string]bool{}
		req.Done = func(r operator.BackfillRun) { values[r.Value] = true }
		runs, err := d.Backfill(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, []string{"1 COMPLETED 1", "2 COMPLETED 1", "3 COMPLETED 1"}, backfilled(runs), "in the order of the values")
		require.Equal(t, int64(parallel), most.Load())
		require.Len(t, values, 3)

		d.work = nil
		req.To, req.Parallel = "9", 4
		runs, err = d.Backfill(t.Context(), req)
		require.NoError(t, err)
		require.Len(t, runs.Runs, 9)
		require.Zero(t, runs.Failed()+runs.NotBegun)
	})
}

func TestARangeIsChecked(t *testing.T) {
	t.Parallel()
	d := newDesk(t, testdb.SQLite(t))
	d.load.Parameters = append(d.load.Parameters, core.ParameterSpec{Name: "day", Type: core.TypeDate, Identifying: true}, core.ParameterSpec{Name: "dry", Type: core.TypeInt})
	for want, r := range map[string][3]string{
		"the job has no such parameter":                {"days", "1", "2"},
		"a range needs a date or an int, not a string": {"input", "a", "b"},
		"dry is not identifying":                       {"dry", "1", "2"},
		`"x" is not an int`:                            {"run", "x", "2"},
		"2026-11-20 is after 2026-11-01":               {"day", "2026-11-20", "2026-11-01"},
		"the range has more than 10000 values":         {"run", "-9223372036854775808", "9223372036854775807"},
	} {
		_, err := d.Backfill(t.Context(), operator.BackfillRequest{RunRequest: operator.RunRequest{Name: "load"}, Param: r[0], From: r[1], To: r[2]})
		var refused *operator.Refusal
		require.ErrorAs(t, err, &refused, want)
		require.Equal(t, refusal.Parameters, refused.Reason)
		require.ErrorContains(t, err, want)
	}
	runs, err := d.Backfill(t.Context(), operator.BackfillRequest{RunRequest: operator.RunRequest{Name: "load"}, Param: "day", From: "2026-02-27", To: "2026-03-01"})
	require.NoError(t, err)
	require.Equal(t, []string{"2026-02-27 COMPLETED 1", "2026-02-28 COMPLETED 1", "2026-03-01 COMPLETED 1"}, backfilled(runs))
}
