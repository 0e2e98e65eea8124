package operator

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/schedule"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const nightlyJob = `
job: nightly
parameters: {day: {type: date}}
schedule: {cron: 30 2 * * *, timezone: Europe/Berlin, parameters: {day: "${schedule.date}"}}
budget: {max_attempts: 2, deadline: 1h}
flow:
- step: note
  tasklet: {sql: "insert into notes(text) values ('one')"}
- job: child
  file: parts/child.yaml
  parameters: {day: "${params.day}"}
`

const childJob = "job: child\nparameters: {day: {type: date}}\nflow:\n- step: more\n  tasklet: {sql: \"insert into notes(text) values ('child')\"}\n"

func TestARegisteredJobIsStartedByItsNameFromWhatIsStored(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s, ctx := newScene(t, url), t.Context()
		_, err := s.e.Database.Conn().ExecContext(ctx, "create table notes(text text)")
		require.NoError(t, err)
		s.write("nightly.yaml", nightlyJob)
		s.write("parts/child.yaml", childJob)
		path := filepath.Join(s.dir, "nightly.yaml")
		made, err := s.s.Register(ctx, RegisterRequest{File: path})
		require.NoError(t, err)
		require.True(t, made.Changed && made.Enabled)
		require.Equal(t, &taskports.Schedule{Cron: "30 2 * * *", Timezone: "Europe/Berlin", CatchUp: "last", Overlap: "queue"}, made.Schedule)
		require.Equal(t, BudgetView{MaxAttempts: 2, Deadline: 3600, MaxNoProgress: 50}, made.Budget)
		require.Equal(t, path, made.File)

		// The files are gone: a server on another machine never had them.
		require.NoError(t, os.RemoveAll(filepath.Join(s.dir, "parts")))
		require.NoError(t, os.Remove(path))
		run := func(day string) *Execution {
			t.Helper()
			e, err := s.s.Run(ctx, RunRequest{Name: "nightly", Params: map[string]string{"day": day}})
			require.NoError(t, err)
			return e
		}
		e := run("2026-11-22")
		require.Equal(t, core.StatusCompleted, e.Status)
		record, err := s.e.Repository.Execution(ctx, e.ID)
		require.NoError(t, err)
		require.Equal(t, made.Version, record.Definition.Hash)
		require.Equal(t, []int64{2}, s.e.Ints("select count(*) from notes"))

		// A failed one is restarted with the currently registered file.
		_, err = s.e.Database.Conn().ExecContext(ctx, "drop table notes")
		require.NoError(t, err)
		failed := run("2026-11-23")
		require.Equal(t, core.StatusFailed, failed.Status)
		_, err = s.e.Database.Conn().ExecContext(ctx, "create table notes(text text)")
		require.NoError(t, err)
		again, err := s.s.Restart(ctx, RestartRequest{Execution: failed.ID})
		require.NoError(t, err)
		ended, err := again.Wait()
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, ended.Status, ended.Error)
	})
}

func TestAWrongJobFileIsNotRegistered(t *testing.T) {
	t.Parallel()
	s, ctx := newScene(t, testdb.SQLite(t)), t.Context()
	for _, text := range []string{
		"job: x\nschedule: {cron: 0 0 30 2 *}\nflow:\n- {step: a, tasklet: {sql: select 1}}\n",
		"job: x\ndatabase: nowhere\nflow:\n- {step: a, tasklet: {sql: select 1}}\n",
		"job: x\nflow:\n- {job: a, file: absent.yaml}\n",
	} {
		s.write("x.yaml", text)
		_, err := s.s.Register(ctx, RegisterRequest{File: filepath.Join(s.dir, "x.yaml")})
		var refused *Refusal
		require.ErrorAs(t, err, &refused, text)
		require.Equal(t, refusal.File, refused.Reason)
		require.ErrorAs(t, err, new(jobfile.Problems))
	}
	list, err := s.s.Definitions(ctx)
	require.NoError(t, err)
	require.Empty(t, list)
	_, err = s.s.Enable(ctx, "x")
	var refused *Refusal
	require.ErrorAs(t, err, &refused)
	require.Equal(t, refusal.NoSuchJob, refused.Reason)
	_, err = s.s.Start(ctx, RunRequest{Name: "x"})
	require.ErrorIs(t, err, ports.ErrNoSuchJob)
}

func TestSchedulesSayWhatAServerWillSubmit(t *testing.T) {
	t.Parallel()
	s, ctx := newScene(t, testdb.SQLite(t)), t.Context()
	s.write("nightly.yaml", nightlyJob)
	s.write("parts/child.yaml", childJob)
	s.write("never.yaml", "job: never\nflow:\n- {step: a, tasklet: {sql: select 1}}\n")
	for _, name := range []string{"nightly.yaml", "never.yaml"} {
		_, err := s.s.Register(ctx, RegisterRequest{File: filepath.Join(s.dir, name)})
		require.NoError(t, err)
	}
	d, err := s.e.Repository.Definition(ctx, "nightly")
	require.NoError(t, err)
	moved, err := s.e.Repository.Advance(ctx, d, time.Date(2026, 3, 26, 12, 0, 0, 0, time.UTC), "")
	require.NoError(t, err)
	require.True(t, moved)
	s.change(func(c *Config) {
		c.Now = func() time.Time { return time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC) }
	})

	list, err := s.s.Schedules(ctx, SchedulesRequest{Count: 2})
	require.NoError(t, err)
	require.Len(t, list, 1)
	text := func(times []ScheduledTime) (texts []string) {
		for _, x := range times {
			texts = append(texts, x.Key+" "+x.At.Format(time.RFC3339))
		}
		return texts
	}
	require.Equal(t, []string{"2026-03-28T02:30 2026-03-28T02:30:00+01:00"}, text(list[0].Due))
	require.Equal(t, 1, list[0].Missed, "catch_up: last leaves the 27th out")
	require.Equal(t, []string{"2026-03-29T02:30 2026-03-29T03:00:00+02:00", "2026-03-30T02:30 2026-03-30T02:30:00+02:00"}, text(list[0].Next))

	view, err := s.s.Disable(ctx, "nightly")
	require.NoError(t, err)
	require.False(t, view.Enabled)
	list, err = s.s.Schedules(ctx, SchedulesRequest{})
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.False(t, list[0].Enabled)
	require.Empty(t, append(list[0].Due, list[0].Next...))
	_, err = s.s.Schedules(ctx, SchedulesRequest{Count: 1001})
	require.ErrorAs(t, err, new(*RequestError))
}

func TestAScheduledRunIsATaskWithTheParametersOfItsTime(t *testing.T) {
	t.Parallel()
	s, ctx := newScene(t, testdb.SQLite(t)), t.Context()
	s.write("nightly.yaml", nightlyJob)
	s.write("parts/child.yaml", childJob)
	s.write("same.yaml", "job: same\non: {disk: eu1}\nschedule: {cron: \"@hourly\", overlap: allow}\nflow:\n- {step: a, tasklet: {sql: select 1}}\n")
	for file, want := range map[string]string{
		"nightly.yaml": `{"job":"nightly","params":{"day":"2026-03-29"},"retry":true,"in_turn":true}`,
		"same.yaml":    `{"job":"same","again":true}`,
	} {
		made, err := s.s.Register(ctx, RegisterRequest{File: filepath.Join(s.dir, file)})
		require.NoError(t, err)
		d, err := s.e.Repository.Definition(ctx, made.Job)
		require.NoError(t, err)
		cron, err := schedule.ParseIn(d.Schedule.Cron, d.Schedule.Timezone)
		require.NoError(t, err)
		run, err := ScheduledRuns(s.s)(ctx, d, cron.Next(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)))
		require.NoError(t, err)
		require.Len(t, run.Tasks, 1)
		require.JSONEq(t, want, string(run.Tasks[0].Payload))
		require.Equal(t, d.Budget, run.Budget)
		var on *core.Placement // the leader assigns the run to a worker that fits (rule PL1)
		if file == "same.yaml" {
			on = &core.Placement{Labels: map[string]string{"disk": "eu1"}}
		}
		require.Equal(t, on, run.Tasks[0].On)
	}
}
