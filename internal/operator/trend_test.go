package operator

import (
	"cmp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const dailyJob = `job: daily
parameters:
  day: {type: date}
  also: {type: date, default: 2026-01-01}
flow:
- {step: create, tasklet: {sql: "create table if not exists daily (id int)"}}
- step: load
  chunk: {size: 2, skip: {limit: 3}, reader: {csv: {path: in.csv, item: {id: int}}}, writer: {table: daily}}
- {step: count, tasklet: {sql: insert into checked values (1)}}
`

func TestATrendHasTheNumbersOfTheLastRuns(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, _ := overseen(t, url)
		ctx := t.Context()
		none, err := s.s.Trend(ctx, TrendRequest{Job: "daily"})
		require.NoError(t, err)
		require.Equal(t, &JobTrend{Job: "daily", Runs: []RunSummary{}}, none)
		s.write("in.csv", "id\n1\n2\nx\n")
		s.write("daily.yaml", dailyJob)
		first := s.daily(false, map[string]string{"day": "2026-11-01"})
		failed := s.daily(true, map[string]string{"day": "2026-11-02"})
		s.write("in.csv", "id\n1\n2\n3\n4\n")
		last := s.daily(false, map[string]string{"day": "2026-11-03"})
		got, err := s.s.Trend(ctx, TrendRequest{Job: "daily"})
		require.NoError(t, err)
		require.Equal(t, 2, got.Completed)
		require.Equal(t, &Typical{Median: 4, P95: 4.9, Runs: 2}, roundedTypical(got.Rows))
		require.Equal(t, &Typical{Median: .5, P95: .95, Runs: 2}, roundedTypical(got.Skips))
		require.Positive(t, got.Duration.Median)
		for i, want := range []struct {
			of          *core.JobExecution
			rows, skips int64
		}{{last, 5, 0}, {failed, 2, 1}, {first, 3, 1}} {
			require.Equal(t, want.of.ID, got.Runs[i].Execution)
			require.Equal(t, want.rows, *got.Runs[i].Rows)
			require.Equal(t, want.skips, *got.Runs[i].Skips)
		}
		one, err := s.s.Trend(ctx, TrendRequest{Job: "daily", Limit: 1})
		require.NoError(t, err)
		require.Len(t, one.Runs, 1)
		_, err = s.s.Trend(ctx, TrendRequest{Job: "daily", Limit: 101})
		require.ErrorContains(t, err, "must be from 1 to 100")
		page, err := s.s.List(ctx, ListRequest{FailedSteps: true})
		require.NoError(t, err)
		require.Equal(t, []string{"", "count", ""}, []string{page.Executions[0].FailedStep, page.Executions[1].FailedStep, page.Executions[2].FailedStep})
	})
}

// daily runs the job for some parameters: without its table the last step fails.
func (s *scene) daily(fails bool, params map[string]string) *core.JobExecution {
	s.t.Helper()
	text := "create table if not exists checked (id int)"
	if fails {
		text = "drop table if exists checked"
	}
	_, err := s.e.Database.Conn().ExecContext(s.t.Context(), text)
	require.NoError(s.t, err)
	e := s.run("daily.yaml", params)
	require.Equal(s.t, fails, e.Status == core.StatusFailed, e.Error)
	return e
}

func roundedTypical(of *Typical) *Typical {
	return &Typical{Median: float64(int(of.Median*100+.5)) / 100, P95: float64(int(of.P95*100+.5)) / 100, Runs: of.Runs}
}

// Rule OP13.
func TestACalendarHasTheInstancesOfEachDay(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, _ := overseen(t, url)
		ctx := t.Context()
		s.write("in.csv", "id\n1\n")
		s.write("daily.yaml", dailyJob)
		ask := func(req CalendarRequest) *JobCalendar {
			req.Job = "daily"
			c, err := s.s.Calendar(ctx, req)
			require.NoError(t, err)
			return c
		}
		require.Empty(t, ask(CalendarRequest{}).Days, "nothing is known of the job")
		s.daily(true, map[string]string{"day": "2026-11-01"})
		again := s.daily(false, map[string]string{"day": "2026-11-01"})
		s.daily(false, map[string]string{"day": "2026-11-30"})
		failed := s.daily(true, map[string]string{"day": "2026-11-30", "also": "2026-02-28"})
		s.daily(false, map[string]string{"day": "2026-10-31"})

		c := ask(CalendarRequest{Param: "day", Month: "2026-11"})
		require.Equal(t, []string{"also", "day"}, c.Params)
		require.Len(t, c.Days, 30)
		require.Equal(t, CalendarDay{Value: "2026-11-01", Instances: 1, Status: core.StatusCompleted, Execution: again.ID, Attempts: 2}, c.Days[0])
		require.Equal(t, CalendarDay{Value: "2026-11-02"}, c.Days[1])
		require.Equal(t, CalendarDay{Value: "2026-11-30", Instances: 2, Status: core.StatusFailed, Execution: failed.ID, Attempts: 1}, c.Days[29])
		require.Equal(t, "2026-10", ask(CalendarRequest{Param: "day"}).Month)
		require.Equal(t, failed.ID, ask(CalendarRequest{Param: "also", Month: "2026-02"}).Days[27].Execution)
		require.Equal(t, 3, ask(CalendarRequest{Param: "also"}).Days[0].Instances)
		s.daily(false, map[string]string{"day": "2028-02-29"})
		leap := ask(CalendarRequest{Param: "day", From: "2028-02-27", To: "2028-03-01"})
		require.Len(t, leap.Days, 4)
		require.Equal(t, []string{"2028-02-27", "2028-02-28", "2028-03-01"}, leap.Missing)
		require.Equal(t, core.StatusCompleted, leap.Days[2].Status)
		require.Empty(t, leap.Month)
		require.Len(t, ask(CalendarRequest{From: "2024-01-01", To: "2026-09-26"}).Days, 1000)
		for field, req := range map[string]CalendarRequest{
			"param": {Param: "fail"}, "month": {Month: "2026-13"}, "from": {To: "2026-11-01"}, "to": {From: "2026-11-01"}, "to: 2026-11-02 is after": {From: "2026-11-02", To: "2026-11-01"},
			"to: the range has more than 1000": {From: "2024-01-01", To: "2026-09-27"}, "param: job": {Job: "other", From: "1", To: "2"},
		} {
			req.Job = cmp.Or(req.Job, "daily")
			_, err := s.s.Calendar(ctx, req)
			require.Error(t, err, field)
			require.True(t, strings.HasPrefix(err.Error(), field), err)
		}
	})
}
