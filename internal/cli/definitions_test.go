package cli_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/testdb"
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
		require.Contains(t, r.err, "it never occurs")
		require.Equal(t, cli.ExitUsage, s.run("register").code)

		r = s.run("definitions", "list")
		require.Equal(t, cli.ExitCompleted, r.code, r.err)
		require.Regexp(t, `(?s)hourly .*enabled .*@hourly UTC.*plain .*enabled`, r.out)
		require.Contains(t, s.run("definitions", "--format", "csv").out, "job,version,state,schedule,updated,by\n")
		r = s.run("schedules", "--count", "3")
		require.Equal(t, cli.ExitCompleted, r.code, r.err)
		require.Regexp(t, `(?s)catch up.*:00 \+00:00 +in \S+ +hourly +@hourly +UTC +last +queue`, r.out)
		require.Contains(t, s.run("schedules", "--format", "json").out, `"timezone": "UTC"`)
		require.Contains(t, s.run("schedules", "--format", "csv").out, "job,key,at,timezone,due,cron,catch_up,overlap,calendar,when_closed,enabled\nhourly,")
		require.Equal(t, cli.ExitUsage, s.run("schedules", "--count", "0").code)

		r = s.run("definitions", "disable", "hourly", "huorly")
		require.Equal(t, cli.ExitUsage, r.code)
		require.Regexp(t, `hourly .*disabled`, r.out)
		require.Contains(t, r.err, "job huorly is not registered")
		r = s.run("schedules")
		require.Regexp(t, `- +disabled +hourly`, r.out)
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

func TestFoldersAreRegisteredAndPruned(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		plain := func(name string) string { return "job: " + name + "\nflow:\n- {step: a, tasklet: nothing}\n" }
		s := newScene(t, url, map[string]string{"other.yaml": plain("other")})
		require.NoError(t, os.Mkdir(s.path("jobs"), 0o700))
		s.write("jobs/a.yaml", plain("a"))
		s.write("jobs/b.yml", plain("b"))
		s.write("jobs/notes.txt", "no job")
		require.Equal(t, cli.ExitCompleted, s.run("migrate").code)
		require.Equal(t, cli.ExitCompleted, s.run("register", "other.yaml").code)

		s.write("jobs/c.yaml", "job: c\nflow:\n- {step: a, tasklet: nothnig}\n")
		r := s.run("register", s.path("jobs"))
		require.Equal(t, cli.ExitUsage, r.code)
		require.Contains(t, r.err, "nothnig")
		require.NotContains(t, s.run("definitions").out, "\na ", "nothing is registered where one file is wrong")
		s.write("jobs/c.yaml", plain("a"))
		require.Contains(t, s.run("register", s.path("jobs")).err, "both have job a")

		s.write("jobs/c.yaml", plain("c"))
		r = s.run("register", s.path("jobs"), "--prune")
		require.Equal(t, cli.ExitCompleted, r.code, r.err)
		require.Regexp(t, `(?s)^Job a is registered .*Job b is registered .*Job c is registered `, r.out)
		require.NoError(t, os.Remove(s.path("jobs/b.yml")))
		require.NotContains(t, s.run("register", s.path("jobs")).out, "Job b")
		r = s.run("register", s.path("jobs"), "--prune")
		require.Equal(t, cli.ExitCompleted, r.code, r.err)
		require.Contains(t, r.out, "Job b is not registered any more: its file is gone.\n")
		require.Regexp(t, `(?s)a .*c .*other `, s.run("definitions").out, "a job of another folder stays")
		require.Contains(t, s.run("register", s.path("jobs"), "--prune", "--format", "json").out, `"unregistered": []`)
		require.Contains(t, s.run("register", "other.yaml", "--prune").err, "it is for folders")

		r = s.run("unregister", "a", "huh")
		require.Equal(t, cli.ExitUsage, r.code)
		require.Contains(t, r.out, "Job a is not registered any more.\n")
		require.Contains(t, r.err, "job huh is not registered")
		require.NotContains(t, s.run("definitions", "--format", "csv").out, "\na,")
		require.Contains(t, s.run("register", "jobs/a.yaml").out, "Job a is registered")
	})
}
