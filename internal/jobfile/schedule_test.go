package jobfile_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/assembly"
	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/schedule"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

const nightly = `
job: nightly
parameters:
  day: {type: date}
  at: {type: timestamp, required: false}
  file: {type: path, default: in.csv}
  region: {type: string, default: north, enum: [north, south]}
  year: {type: int, default: 2026}
schedule:
  cron: 30 2 * * *
  timezone: Europe/Berlin
  catch_up: all
  overlap: forbid
  parameters:
    day: ${schedule.previous_day}
    at: ${schedule.time}
    file: in/${format(schedule.date, 'yyyyMMdd')}.csv
    region: south
    year: ${year(schedule.date)}
budget: {max_attempts: 3, max_total_attempts: 10, deadline: 2h, max_no_progress: 4}
exclusive: params.region + '/' + string(params.year)
flow:
- {step: a, tasklet: idle}
`

func TestAScheduleGivesParametersOfTheScheduledTime(t *testing.T) {
	t.Parallel()
	file := parse(t, "job.yaml", nightly)
	s := file.Schedule()
	require.Equal(t, schedule.CatchUpAll, s.CatchUp)
	require.Equal(t, schedule.OverlapForbid, s.Overlap)
	// The clock skips 02:30: the job is due at 03:00, with the date of that day.
	at := s.Cron.Next(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC))
	texts, err := s.Parameters(at)
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"day": "2026-03-28", "at": "2026-03-29T01:00:00Z", "file": "in/20260329.csv", "region": "south", "year": "2026",
	}, texts)
	_, err = job.ValidateParameters(file.Parameters(), texts)
	require.NoError(t, err)
	require.Equal(t, task.Budget{MaxAttempts: 3, MaxTotalAttempts: 10, Deadline: 2 * time.Hour, MaxNoProgress: 4}, file.Budget())

	plain := parse(t, "job.yaml", "job: x\nschedule: {cron: \"@daily\"}\nflow:\n- {step: a, tasklet: idle}\n")
	require.Equal(t, "UTC", plain.Schedule().Cron.Zone().String())
	require.Equal(t, schedule.CatchUpLast, plain.Schedule().CatchUp)
	require.Equal(t, schedule.OverlapQueue, plain.Schedule().Overlap)
	require.Equal(t, task.Budget{}, plain.Budget())
	require.Nil(t, parse(t, "job.yaml", "job: x\nflow:\n- {step: a, tasklet: idle}\n").Schedule())
}

func TestAScheduledValueMayBreakTheLimitsOfItsParameterLater(t *testing.T) {
	t.Parallel()
	file := parse(t, "job.yaml", `
job: x
parameters: {day: {type: date, max: 2026-12-31}}
schedule: {cron: 0 0 1 1 *, parameters: {day: "${schedule.date}"}}
flow:
- {step: a, tasklet: idle}
`)
	s := file.Schedule()
	_, err := s.Parameters(s.Cron.Next(time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC)))
	require.NoError(t, err)
	_, err = s.Parameters(s.Cron.Next(time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)))
	var wrong *ports.ParameterError
	require.ErrorAs(t, err, &wrong)
	require.ErrorContains(t, err, "parameter day: job.yaml:4:47: 2027-01-01 is more than 2026-12-31")
}

func TestWhatOneExecutionAtATimeIsFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line string
		want core.ExclusiveKey
	}{
		{"", ""}, {"exclusive: instance", ""}, {"exclusive: job", core.ExclusiveJob},
		{"exclusive: params.region", core.ExclusiveBy("job")}, // a value is never the word
		{"exclusive: params.n % 2", core.ExclusiveBy("1")},
	} {
		file := parse(t, "job.yaml", "job: x\nparameters: {region: {type: string, default: job}, n: {type: int, default: 7}}\n"+c.line+"\nflow:\n- {step: a, tasklet: idle}\n")
		params, err := job.ValidateParameters(file.Parameters(), nil)
		require.NoError(t, err)
		key, err := file.Exclusive(params)
		require.NoError(t, err)
		require.Equal(t, c.want, key, c.line)
	}
	file := parse(t, "job.yaml", "job: x\nparameters: {region: {type: string}}\nexclusive: params.region\nflow:\n- {step: a, tasklet: idle}\n")
	params, err := job.ValidateParameters(file.Parameters(), map[string]string{"region": strings.Repeat("x", 501)})
	require.NoError(t, err)
	_, err = file.Exclusive(params)
	require.EqualError(t, err, "job.yaml:3:12: exclusive: the key has 501 bytes, more than the allowed 500")
}

func TestMistakesInSchedulesAreReportedWhereTheyStand(t *testing.T) {
	t.Parallel()
	const head, tail = "job: x\nparameters: {day: {type: date}, n: {type: int, default: 1, max: 5}, s: {type: string, required: false}}\n", "flow:\n- {step: a, tasklet: idle}\n"
	for text, want := range map[string][]string{
		"schedule: {cron: 0 0 30 2 *, parameters: {day: \"${schedule.date}\"}}": {
			`3:18 cron expression "0 0 30 2 *": no date has this day and month: it never occurs`},
		"schedule: {cron: 0 0 * *, timezone: Berlin, parameters: {day: 2026-01-01}}": {
			`3:18 cron expression "0 0 * *" has 4 fields, but needs five: minute, hour, day of month, month, day of week`,
			`3:37 there is no time zone "Berlin"; names are those of the IANA database, such as UTC or Europe/Berlin`},
		"schedule: {timezone: Local}": {
			`3:11 schedule needs the key "cron"`, "3:11 schedule: the job's parameter day has no value", "3:22 time zone Local differs between machines; name one, such as Europe/Berlin"},
		"schedule: {cron: '@daily', parameters: {days: 1, day: \"${schedule.tme}\", n: \"${schedule.date}\"}}": {
			"3:41 schedule: the job has no parameter days", "3:67 ${schedule.tme}: schedule has no field tme", "3:80 a parameter of type int takes an int, and ${schedule.date} is a date"},
		"schedule: {cron: '@daily', parameters: {day: \"${today()}\", n: 6, s: \"${params.n}\"}}": {
			"3:49 ${today()}", "3:63 schedule: parameter n: 6 is more than 5", "3:72 ${params.n}: unknown name params"},
		"schedule: {cron: '@daily', parameters: {day: \"day ${schedule.date}\"}}": {`3:46 "day `},
		"schedule: {cron: '@daily', catchup: all, overlap: never, parameters: {day: 2026-01-01}}": {
			`3:28 unknown key "catchup" in schedule`, "3:51 overlap: \"never\" is not allowed"},
		"budget: {max_attempts: 0, deadline: -1s, max_no_progress: many}": {
			"3:24 max_attempts must be at least 1", "3:37 deadline must be more than 0", "3:59 max_no_progress"},
		"exclusive: jobs":                                     {"3:12 exclusive: "},
		"exclusive: params.s":                                 {"3:12 exclusive may be null"},
		"exclusive: \"${params.n}\"":                          {"3:12 exclusive is an expression itself, without ${ }"},
		"exclusive: steps.a.read":                             {"3:12 exclusive: "},
		"exclusive: ''":                                       {"3:12 exclusive: the expression is empty"},
		"exclusive: {by: params.n}":                           {"3:12 exclusive"},
		"schedule: {cron: '', parameters: {day: 2026-01-01}}": {"3:18 "},
		"schedule: '@daily'":                                  {"3:11 schedule"},
	} {
		_, err := jobfile.Parse("job.yaml", []byte(head+text+"\n"+tail), described(t))
		var problems jobfile.Problems
		require.ErrorAs(t, err, &problems, text)
		var got []string
		for _, p := range problems {
			got = append(got, fmt.Sprintf("%d:%d %s", p.Line, p.Col, p.Msg))
		}
		require.Len(t, got, len(want), "%s: %q", text, got)
		for i := range want {
			require.Contains(t, got[i], want[i], text)
		}
	}
}

func TestAScheduleInGoIsThatOfAFile(t *testing.T) {
	t.Parallel()
	idle := batch.Tasklet("idle", func() batch.TaskletFunc { return nil })
	_, files, err := assembly.Describe(idle, batch.Jobs(batch.NewJob("x").
		Parameter(batch.Parameter{Name: "day", Type: core.TypeDate}).
		Schedule(batch.Schedule{
			Cron: "30 2 * * *", Timezone: "Asia/Tokyo", CatchUp: "none", Overlap: "allow",
			Parameters: map[string]string{"day": "${schedule.date}"},
		}).
		Budget(task.Budget{MaxAttempts: 2, MaxTotalAttempts: 7, Deadline: time.Hour, MaxNoProgress: 3}).
		Exclusive("params.day").
		Step("a", batch.Use("idle"))))
	require.NoError(t, err)
	made := files["x"]
	s := made.Schedule()
	require.Equal(t, "Asia/Tokyo", s.Cron.Zone().String())
	require.Equal(t, schedule.CatchUpNone, s.CatchUp)
	require.Equal(t, schedule.OverlapAllow, s.Overlap)
	texts, err := s.Parameters(s.Cron.Next(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"day": "2026-03-29"}, texts)
	require.Equal(t, task.Budget{MaxAttempts: 2, MaxTotalAttempts: 7, Deadline: time.Hour, MaxNoProgress: 3}, made.Budget())
	params, err := job.ValidateParameters(made.Parameters(), texts)
	require.NoError(t, err)
	key, err := made.Exclusive(params)
	require.NoError(t, err)
	require.Equal(t, core.ExclusiveBy("2026-03-29"), key)
	err = batch.CheckJobs([]*batch.Job{batch.NewJob("x").Schedule(batch.Schedule{Cron: "@never"}).Step("a", batch.Use("idle"))}, idle)
	require.ErrorContains(t, err, "job x: schedule.cron")
}

func TestAScheduleABudgetAndAKeyMayChangeBeforeARestart(t *testing.T) {
	t.Parallel()
	before := parse(t, "job.yaml", nightly)
	after := parse(t, "job.yaml", strings.NewReplacer("30 2 * * *", "0 4 * * *", "max_attempts: 3", "max_attempts: 1", "exclusive: params.region + '/' + string(params.year)", "exclusive: job").Replace(nightly))
	params, err := job.ValidateParameters(before.Parameters(), map[string]string{"day": "2026-03-28"})
	require.NoError(t, err)
	require.Empty(t, jobfile.Compare(before, after, params, history("a FAILED+")))
}

func TestAScheduleHasTheBusinessDaysOfItsCalendar(t *testing.T) {
	t.Parallel()
	const text = "job: x\ncalendars: {plant: {base: TARGET, holidays: [2026-12-24]}}\nschedule: {cron: 0 6 24 12 *, calendar: plant, when_closed: next}\nflow:\n- {step: a, tasklet: idle}\n"
	s := parse(t, "job.yaml", text).Schedule()
	require.Equal(t, "2026-12-28T06:00", s.Cron.Next(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)).Key)
	days := s.Calendar.Days()
	require.Equal(t, []string{"2026-12-24"}, days.Holidays)
	require.Equal(t, "TARGET", days.Yearly)
	for _, c := range [][2]string{
		{"calendar: plant, when_closed: next", "calendar: plan"},
		{"calendar: plant, when_closed: next", "when_closed: skip"},
		{"cron: 0 6 24 12 *, calendar: plant, when_closed: next", "cron: 0 6 * * SUN, calendar: plant"},
	} {
		_, err := jobfile.Parse("job.yaml", []byte(strings.Replace(text, c[0], c[1], 1)), described(t))
		require.ErrorContains(t, err, "job.yaml:3:")
	}
}
