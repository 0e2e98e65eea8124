package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/cli"
)

const hourlyJob = "job: hourly\nschedule: {cron: \"@hourly\"}\nflow:\n- {step: a, tasklet: nothing}\n"

func TestJobsAreRegisteredListedAndDisabled(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, map[string]string{
			"hourly.yaml": hourlyJob, "plain.yaml": "job: plain\nflow:\n- {step: a, tasklet: nothing}\n", "bad.yaml": "job: bad\nschedule: {cron: 0 0 30 2 *}\nflow: []\n",
		})
		require.Equal(t, cli.ExitCompleted, s.run("migrate").code)
		r := s.run("register", "hourly.yaml")
		require.Equal(t, cli.ExitCompleted, r.code, r.err)
		require.Regexp(t, `^Job hourly is registered \(version [0-9a-f]{12}\)\.\n +due @hourly UTC\n$`, r.out)
		require.Regexp(t, `^Job hourly is registered as it is `, s.run("register", "hourly.yaml").out)
		s.write("hourly.yaml", hourlyJob+"# 2\n")
		require.Regexp(t, `^Job hourly is registered \(version [0-9a-f]{12}, before [0-9a-f]{12}\)\.`, s.run("register", "hourly.yaml").out)
		require.Contains(t, s.run("register", "plain.yaml").out, "it has no schedule: it is started by its name")
		r = s.run("register", "bad.yaml")
		require.Equal(t, cli.ExitUsage, r.code)
		require.Contains(t, r.err, "it never comes")
		require.Equal(t, cli.ExitUsage, s.run("register").code)

		r = s.run("definitions", "list")
		require.Equal(t, cli.ExitCompleted, r.code, r.err)
		require.Regexp(t, `(?s)hourly .*enabled .*@hourly UTC.*plain .*enabled`, r.out)
		require.Contains(t, s.run("definitions", "--format", "csv").out, "job,version,state,schedule,updated,by\n")
		r = s.run("schedules", "--count", "3")
		require.Equal(t, cli.ExitCompleted, r.code, r.err)
		require.Regexp(t, `(?s)catch up.*:00 \+00:00 +in \S+ +hourly +@hourly +UTC +last +queue`, r.out)
		require.Contains(t, s.run("schedules", "--format", "json").out, `"timezone": "UTC"`)
		require.Contains(t, s.run("schedules", "--format", "csv").out, "job,key,at,timezone,due,cron,catch_up,overlap,calendar,when_closed\nhourly,")
		require.Equal(t, cli.ExitUsage, s.run("schedules", "--count", "0").code)

		r = s.run("definitions", "disable", "hourly", "huorly")
		require.Equal(t, cli.ExitUsage, r.code)
		require.Regexp(t, `hourly .*disabled`, r.out)
		require.Contains(t, r.err, "job huorly is not registered")
		r = s.run("schedules")
		require.Empty(t, r.out)
		require.Contains(t, r.err, "no registered job has a schedule that is enabled")
		require.Regexp(t, `hourly .*enabled`, s.run("definitions", "enable", "hourly").out)
	})
}

func TestADatabaseThatIsNotThereHasNoDefinitions(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), nil)
	for _, words := range [][]string{{"definitions"}, {"schedules"}} {
		r := s.run(words...)
		require.Equal(t, cli.ExitCompleted, r.code, r.err)
		require.Empty(t, r.out)
	}
}
