package operator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/schedule"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/repository/tasks"
)

// diary is a scene with schedules at a time of its own.
type diary struct {
	*scene
	queue *tasks.Repository
	url   string
	now   time.Time
	n     int64
}

func newDiary(t *testing.T, url string, now time.Time) *diary {
	t.Helper()
	s, queue := overseen(t, url)
	d := &diary{scene: s, queue: queue, url: url, now: now}
	d.change(func(c *Config) { c.Now = func() time.Time { return d.now } })
	_, err := d.s.Overview(t.Context(), OverviewRequest{}) // makes the tables
	require.NoError(t, err)
	return d
}

// sql is a time as its database has it.
func (d *diary) sql(at time.Time) string {
	if strings.HasPrefix(d.url, "postgres") {
		return "'" + at.UTC().Format(time.RFC3339Nano) + "'"
	}
	return fmt.Sprint(at.UnixMicro())
}

// schedule registers a job at a time, with times decided up to another.
func (d *diary) schedule(name string, of taskports.Schedule, made, until time.Time) int64 {
	d.t.Helper()
	_, err := d.e.Repository.Register(d.t.Context(), taskports.Definition{Name: name, Files: ports.NewDefinition("job: "+name+" # "+of.Cron, "", nil), Schedule: &of}, "tester")
	require.NoError(d.t, err)
	d.e.Exec(fmt.Sprintf("UPDATE surfin_job_definition SET created_at = %s, scheduled_until = %s WHERE name = '%s'", d.sql(made), d.sql(until), name))
	d.e.Exec(fmt.Sprintf("UPDATE surfin_audit SET at = %s WHERE act = 'register' AND job_name = '%s' AND at > %[1]s", d.sql(made), name))
	def, err := d.e.Repository.Definition(d.t.Context(), name)
	require.NoError(d.t, err)
	return def.ID
}

// submit is the task of a time.
func (d *diary) submit(definition int64, key string) int64 {
	d.t.Helper()
	made, _, err := d.queue.Submit(d.t.Context(), task.Submission{Tasks: []task.Spec{{Type: task.TypeJob, Origin: task.Origin{JobDefinition: definition, ScheduledFor: key}}}})
	require.NoError(d.t, err)
	return int64(made.Tasks[0])
}

// ran is an execution, of a task or of none.
func (d *diary) ran(job string, of int64, status core.Status, started, ended time.Time) core.JobExecutionID {
	d.t.Helper()
	d.n++
	launched, err := d.e.Repository.Launch(d.t.Context(), ports.LaunchRequest{JobName: job, Params: numbered(d.t, d.n), Owner: core.Owner{Host: "far", PID: 7}, Lease: time.Hour, Task: of})
	require.NoError(d.t, err)
	id := launched.Execution.ID
	end, active := "NULL", "1"
	if !ended.IsZero() {
		end, active = d.sql(ended), "NULL"
	}
	d.e.Exec(fmt.Sprintf("UPDATE surfin_job_execution SET status = '%s', active = %s, created_at = %s, started_at = %[3]s, ended_at = %s WHERE id = %d", status, active, d.sql(started), end, id))
	return id
}

func (d *diary) leaveOut(job, detail string, at time.Time) {
	d.t.Helper()
	def, err := d.e.Repository.Definition(d.t.Context(), job)
	require.NoError(d.t, err)
	moved, err := d.e.Repository.Advance(d.t.Context(), def, def.ScheduledUntil, detail)
	require.NoError(d.t, err)
	require.True(d.t, moved)
	d.e.Exec(fmt.Sprintf("UPDATE surfin_audit SET at = %s WHERE id = (SELECT max(id) FROM surfin_audit)", d.sql(at)))
}

func outcomes(times []PlannedTime) (list []string) {
	for _, t := range times {
		line := t.Key + " " + string(t.Outcome)
		if t.Clock != "" {
			line += " " + string(t.Clock)
		}
		if t.Status != "" {
			line += " " + string(t.Status)
		}
		list = append(list, line)
	}
	return list
}

func berlin(t *testing.T, text string) time.Time {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	at, err := time.ParseInLocation("2006-01-02 15:04", text, zone)
	require.NoError(t, err)
	return at
}

var nightlyBerlin = taskports.Schedule{Cron: "30 2 * * *", Timezone: "Europe/Berlin", CatchUp: "none", Overlap: "forbid"} //nolint:gochecknoglobals // a constant

// Rule OP12.
func TestPastTimesOfAScheduleHaveTheirOutcomes(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		d := newDiary(t, url, berlin(t, "2026-10-27 12:00"))
		made := berlin(t, "2026-10-15 12:00")
		of := d.schedule("nightly", nightlyBerlin, made, berlin(t, "2026-10-26 12:00"))
		day := func(n int) time.Time { return berlin(t, fmt.Sprintf("2026-10-%d 02:30", n)) }
		key := func(n int) string { return fmt.Sprintf("2026-10-%dT02:30", n) }
		d.ran("nightly", d.submit(of, key(16)), core.StatusCompleted, day(16).Add(2*time.Second), day(16).Add(10*time.Minute))
		retried := d.submit(of, key(17))
		d.ran("nightly", retried, core.StatusFailed, day(17).Add(5*time.Minute), day(17).Add(6*time.Minute))
		second := d.ran("nightly", retried, core.StatusCompleted, day(17).Add(10*time.Minute), day(17).Add(20*time.Minute))
		// The 18th was left out, the 19th and the 20th were missed, the 21st was purged, and the 22nd was disabled.
		d.leaveOut("nightly", "skipped, because an earlier run is not over or had the same local time: "+key(18), day(18).Add(time.Second))
		d.leaveOut("nightly", "2 times were missed", day(20).Add(10*time.Hour))
		for _, on := range []bool{false, true} {
			_, _, err := d.e.Repository.EnableDefinition(t.Context(), "nightly", on, "tester")
			require.NoError(t, err)
			d.e.Exec(fmt.Sprintf("UPDATE surfin_audit SET at = %s WHERE id = (SELECT max(id) FROM surfin_audit)", d.sql(day(22).Add(map[bool]time.Duration{false: -time.Hour, true: time.Hour}[on]))))
		}
		d.e.Exec("UPDATE surfin_job_definition SET scheduled_until = " + d.sql(berlin(t, "2026-10-26 12:00")))
		refused := d.submit(of, key(23))
		d.e.Exec(fmt.Sprintf("UPDATE surfin_task SET state = 'FAILED', last_error = 'parameters: n is missing' WHERE id = %d", refused))
		d.submit(of, key(24))
		d.ran("nightly", d.submit(of, key(25)), core.StatusFailed, day(25).Add(time.Second-time.Hour), day(25).Add(time.Minute-time.Hour)) // Go takes the second pass
		running := d.ran("nightly", d.submit(of, key(26)), core.StatusStarted, day(26).Add(time.Second), time.Time{})

		view, err := d.s.ScheduleTimes(t.Context(), ScheduleTimesRequest{Job: "nightly", Ahead: 2})
		require.NoError(t, err)
		require.Equal(t, []string{
			"2026-10-27T02:30 missed", "2026-10-26T02:30 started STARTED", "2026-10-25T02:30 started first FAILED", "2026-10-24T02:30 waiting",
			"2026-10-23T02:30 not_run", "2026-10-22T02:30 disabled", "2026-10-21T02:30 unknown", "2026-10-20T02:30 missed", "2026-10-19T02:30 missed",
			"2026-10-18T02:30 left_out", "2026-10-17T02:30 started COMPLETED", "2026-10-16T02:30 started COMPLETED",
		}, outcomes(view.Past))
		require.Equal(t, []string{"2026-10-28T02:30 planned", "2026-10-29T02:30 planned"}, outcomes(view.Coming))
		require.Equal(t, running, view.Past[1].Execution)
		require.Equal(t, 1.0, view.Past[2].Late)
		require.InDelta(t, (3*24*time.Hour + 10*time.Hour + 30*time.Minute).Seconds(), view.Past[3].Late, 1)
		require.Equal(t, "parameters: n is missing", view.Past[4].Reason)
		require.Equal(t, second, view.Past[10].Execution)
		require.Equal(t, 2, view.Past[10].Attempts)
		require.Equal(t, 300.0, view.Past[10].Late, "of the first attempt")
		require.InDelta(t, 600, view.Usual, 120)
		require.True(t, view.Since.Equal(made))
		require.True(t, view.Next.IsZero())

		// Pages have each once.
		var all []string
		for before := (time.Time{}); ; {
			page, err := d.s.ScheduleTimes(t.Context(), ScheduleTimesRequest{Job: "nightly", Before: before, Limit: 5})
			require.NoError(t, err)
			require.Equal(t, before.IsZero(), len(page.Coming) > 0)
			all = append(all, outcomes(page.Past)...)
			if before = page.Next; before.IsZero() {
				break
			}
		}
		require.Equal(t, outcomes(view.Past), all)

		// Times of an earlier schedule are not of this one.
		other := nightlyBerlin
		other.Cron = "30 3 * * *"
		d.schedule("nightly", other, made, berlin(t, "2026-10-26 12:00"))
		d.e.Exec("UPDATE surfin_audit SET at = " + d.sql(berlin(t, "2026-10-25 12:00")) + " WHERE detail LIKE '%other times)'")
		view, err = d.s.ScheduleTimes(t.Context(), ScheduleTimesRequest{Job: "nightly"})
		require.NoError(t, err)
		require.Equal(t, []string{"2026-10-27T03:30 missed", "2026-10-26T03:30 unknown"}, outcomes(view.Past))
		require.True(t, view.Since.Equal(berlin(t, "2026-10-25 12:00")))

		_, err = d.s.ScheduleTimes(t.Context(), ScheduleTimesRequest{Job: "weekly"})
		require.ErrorIs(t, err, ports.ErrNoSuchJob)
	})
}

// Rule OP12.
func TestAWeekHasTheDaysOfItsZone(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		d := newDiary(t, url, berlin(t, "2026-10-22 12:00"))
		made := berlin(t, "2026-01-01 12:00")
		of := d.schedule("nightly", nightlyBerlin, made, d.now)
		hourly := nightlyBerlin
		hourly.Cron = "0 * * * *"
		d.schedule("hourly", hourly, made, d.now)
		often := nightlyBerlin
		often.Cron = "*/5 * * * *"
		d.schedule("often", often, made, d.now)
		d.ran("nightly", d.submit(of, "2026-10-20T02:30"), core.StatusCompleted, berlin(t, "2026-10-20 02:31"), berlin(t, "2026-10-20 03:01"))
		zone := d.now.Location()

		w, err := d.s.ScheduleWeek(t.Context(), WeekRequest{Zone: zone})
		require.NoError(t, err)
		require.Equal(t, []string{"2026-W43", "2026-W42", "2026-W44"}, []string{w.Week, w.Previous, w.Later})
		require.True(t, w.Current)
		require.Len(t, w.Days, 7)
		require.Equal(t, "2026-10-19", w.Days[0].Date)
		require.Equal(t, []float64{24, 25}, []float64{w.Days[5].Hours, w.Days[6].Hours})
		require.Len(t, w.Schedules, 3)
		nightly := w.Schedules[1]
		require.Equal(t, []string{
			"2026-10-19T02:30 unknown", "2026-10-20T02:30 started COMPLETED", "2026-10-21T02:30 unknown", "2026-10-22T02:30 unknown",
			"2026-10-23T02:30 planned", "2026-10-24T02:30 planned", "2026-10-25T02:30 planned first",
		}, outcomes(nightly.Times))
		require.Equal(t, 1800.0, nightly.Usual)
		require.Equal(t, 60.0, nightly.Times[1].Late)
		require.Len(t, w.Schedules[0].Times, 169, "an hour occurs twice")
		require.Subset(t, outcomes(w.Schedules[0].Times), []string{"2026-10-25T02:00 planned first", "2026-10-25T02:00+01:00 planned second"})
		require.True(t, w.Schedules[2].More)
		require.Empty(t, w.Schedules[2].Times[0].Outcome)

		w, err = d.s.ScheduleWeek(t.Context(), WeekRequest{Week: "2026-W13", Zone: zone, Limit: 2})
		require.NoError(t, err)
		require.False(t, w.Current)
		require.Equal(t, 23.0, w.Days[6].Hours)
		require.Len(t, w.Schedules[0].Times, 167)
		last := w.Schedules[1].Times[6]
		require.Equal(t, schedule.ClockSkips, last.Clock, "it does not exist")
		require.Equal(t, "2026-03-29T03:00:00+02:00", last.At.Format(time.RFC3339))
		require.Equal(t, "nightly", w.Next)
		w, err = d.s.ScheduleWeek(t.Context(), WeekRequest{Week: "2026-W13", After: w.Next})
		require.NoError(t, err)
		require.Len(t, w.Schedules, 1)
		require.Equal(t, 24.0, w.Days[6].Hours, "UTC")
		for _, wrong := range []string{"2026-W00", "2025-W53", "x", "2026-W5", "2026-W111", "-W", "99999-W01"} {
			_, err = d.s.ScheduleWeek(t.Context(), WeekRequest{Week: wrong})
			require.ErrorAs(t, err, new(*RequestError), wrong)
		}
	})
}

// Rule OP12.
func TestADayHasTheExecutionsAndThePlannedRunsOfAllJobs(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		d := newDiary(t, url, berlin(t, "2026-10-24 20:00"))
		made := berlin(t, "2026-01-01 12:00")
		at := func(hours float64) time.Time { return d.now.Add(time.Duration(hours * float64(time.Hour))) }
		d.schedule("nightly", nightlyBerlin, made, d.now)
		often := nightlyBerlin
		often.Cron = "*/5 * * * *"
		d.schedule("often", often, made, d.now)
		yearly := nightlyBerlin
		yearly.Cron = "0 0 1 1 *"
		d.schedule("yearly", yearly, made, d.now)
		d.ran("old", 0, core.StatusCompleted, at(-30), at(-29))
		d.ran("nightly", 0, core.StatusCompleted, at(-25), at(-23.5))
		d.ran("runs", 0, core.StatusStarted, at(-40), time.Time{})
		d.ran("failed", 0, core.StatusFailed, at(-5), at(-4))
		d.ran("failed", 0, core.StatusCompleted, at(-3), at(-2))
		d.ran("fails", 0, core.StatusCompleted, at(-3), at(-2))
		fails := d.ran("fails", 0, core.StatusFailed, at(-2), at(-1))
		for i := range 80 {
			d.ran("busy", 0, core.StatusCompleted, at(-20+float64(i)/50), at(-20+float64(i)/50+.01))
		}
		d.ran("busy", 0, core.StatusFailed, at(-19.9), at(-19.8))

		day, err := d.s.Day(t.Context(), DayRequest{})
		require.NoError(t, err)
		var jobs []string
		for _, j := range day.Jobs {
			jobs = append(jobs, j.Job)
		}
		require.Equal(t, []string{"fails", "runs", "failed", "busy", "often", "nightly"}, jobs)
		require.Nil(t, day.Others)
		require.Equal(t, fails, day.Jobs[0].Runs[1].Execution)
		require.True(t, day.Jobs[1].Runs[0].Ended.IsZero())
		busy := day.Jobs[3]
		require.Equal(t, map[core.Status]int{core.StatusCompleted: 80, core.StatusFailed: 1}, busy.Statuses)
		require.Less(t, len(busy.Runs), 12)
		sum, apart := 0, 0
		for _, r := range busy.Runs {
			if sum += r.Count; r.Status == core.StatusFailed {
				apart++
			}
		}
		require.Equal(t, []int{81, 1}, []int{sum, apart})
		require.Len(t, day.Jobs[4].Planned, 50)
		require.True(t, day.Jobs[4].MorePlanned)
		nightly := day.Jobs[5]
		require.Equal(t, 5400.0, nightly.Usual)
		require.Len(t, nightly.Planned, 1)
		require.Equal(t, "2026-10-25T02:30:00+02:00", nightly.Planned[0].At.Format(time.RFC3339), "the first pass")

		day, err = d.s.Day(t.Context(), DayRequest{Limit: 2})
		require.NoError(t, err)
		require.Len(t, day.Jobs, 2)
		require.Equal(t, &DayOthers{Jobs: 4, Planned: 51, MorePlanned: true, Statuses: map[core.Status]int{core.StatusCompleted: 82, core.StatusFailed: 2}}, day.Others)
		_, err = d.s.Day(t.Context(), DayRequest{Limit: MaxDayJobs + 1})
		require.ErrorAs(t, err, new(*RequestError))
	})
}
