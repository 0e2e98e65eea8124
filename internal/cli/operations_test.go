//go:build unix

package cli_test

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const endlessJob = "job: e\nflow:\n- step: forever\n  chunk:\n    size: 10\n    reader: {endless: {item: number}}\n    writer: {table: {name: numbers, create: true}}\n"

func TestAStopFromAnotherProcessCommitsTheChunkAndARestartGoesOn(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"e.yaml": endlessJob})
		require.Equal(t, cli.ExitCompleted, s.run("migrate").code)
		for attempt, words := range [][]string{{"run", "e.yaml"}, {"restart", "1"}} {
			c := s.start(words...)
			c.until("step ")
			id := []string{"1", "2"}[attempt]
			r := s.run("stop", id, "--wait", "1m")
			require.Equal(t, cli.ExitStopped, r.code, r.err)
			require.Contains(t, r.out, "job e, execution "+id)
			require.Contains(t, r.out, ": STOPPED in ")
			require.Contains(t, r.err, " restart it: surfin restart "+id+" ")
			code, errs := c.end()
			require.Equal(t, cli.ExitStopped, code, errs)
			require.Contains(t, errs, "stop requested: stopping after the current chunk commits")
		}
		r := s.run("sql", "select (select count(*) from numbers) - (select sum(write_count) from surfin_step_execution) as lost")
		require.Contains(t, r.out, "lost\n─\n 0\n", r.err)
	})
}

func TestStopSaysWhatWillHappenAndWhatIsOverCannotBeStopped(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), nil)
	gate := s.path("gate")
	require.NoError(t, syscall.Mkfifo(gate, 0o600))
	s.write("e.yaml", strings.Replace(endlessJob, "item: number", "item: number, gate: "+gate, 1))
	c := s.start("run", "e.yaml")
	c.until("step started")
	r := s.run("stop", "1") // while it reads its first item
	require.Equal(t, cli.ExitCompleted, r.code, r.err)
	require.Regexp(t, `^job e, execution 1: STOPPING in TOOK
 process \d+ on \S+ starts no further step, part or task, except for steps of finally
 running: \S+; a chunk step commits its current chunk, any other step returns by itself
 wait for it: surfin stop 1 --wait 5m --database-url URL
 its progress: surfin show 1 --database-url URL
$`, r.out)
	opened, err := os.OpenFile(gate, os.O_WRONLY, 0)
	require.NoError(t, err)
	require.NoError(t, os.Remove(gate))
	require.NoError(t, opened.Close())
	code, errs := c.end()
	require.Equal(t, cli.ExitStopped, code, errs)

	before := s.run("show", "1", "--audit").out
	r = s.run("stop", "1", "--wait", "1s")
	require.Equal(t, cli.ExitFailed, r.code)
	require.Equal(t, "surfin: execution 1 has ended (STOPPED): nothing to stop\n its steps: surfin show 1 --database-url URL\n restart it: surfin restart 1 --database-url URL\n", r.err)
	require.Equal(t, before, s.run("show", "1", "--audit").out, "nothing was changed")
	require.Equal(t, cli.ExitUsage, s.run("stop", "7").code)
	require.Equal(t, cli.ExitUsage, s.run("stop", "1", "--wait", "0s").code)
}

func TestAStopThatIsNotObeyedInTimeSaysSo(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"h.yaml": "job: h\nflow:\n- {step: wait, tasklet: hang}\n"})
	c := s.start("run", "h.yaml")
	c.until("step started")
	c.signal(syscall.SIGSTOP)
	r := s.run("stop", "1", "--wait", "100ms")
	require.Equal(t, cli.ExitFailed, r.code)
	require.Contains(t, r.err, "surfin: execution 1 still runs after TOOK: it was asked to stop\n its progress: surfin show 1 ")
	c.signal(syscall.SIGKILL)
	c.signal(syscall.SIGCONT)
	c.end()
	r = s.run("stop", "1", "--wait", "1m")
	require.Equal(t, cli.ExitFailed, r.code)
	require.Contains(t, r.err, "is dead, and left it STOPPING\n end it: surfin recover ")
	require.Contains(t, s.run("stop", "1").out, "is dead: no process is left to stop\n end it: surfin recover ")
}

func TestOnlyWhatStoppedOrFailedCanBeAbandoned(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{
			"bad.yaml": "job: bad\nflow:\n- {step: one, tasklet: panic}\n", "good.yaml": "job: good\nflow:\n- {step: one, tasklet: nothing}\n",
			"h.yaml": "job: h\nflow:\n- {step: wait, tasklet: hang}\n",
		})
		require.Equal(t, cli.ExitCompleted, s.run("migrate").code)
		require.Equal(t, cli.ExitFailed, s.run("run", "bad.yaml").code)
		require.Equal(t, cli.ExitCompleted, s.run("run", "good.yaml").code)
		c := s.start("run", "h.yaml")
		c.until("step started")

		r := s.run("abandon", "1")
		require.Equal(t, cli.ExitCompleted, r.code, r.err)
		require.Contains(t, r.out, "job bad, execution 1: ABANDONED")
		require.Contains(t, r.out, " a new instance: surfin run DIR/bad.yaml --again ")
		for _, refused := range []struct{ id, want string }{
			{"2", "surfin: execution 2 is COMPLETED: only an execution that stopped or failed can be abandoned\n its steps: surfin show 2 "},
			{"3", "surfin: execution 3 is STARTED: only an execution that stopped or failed can be abandoned\n its progress: surfin show 3 "},
		} {
			r := s.run("abandon", refused.id)
			require.Equal(t, cli.ExitFailed, r.code)
			require.Contains(t, r.err, refused.want)
		}
		require.Contains(t, s.run("show", "2").out, "execution 2: COMPLETED")
		require.Contains(t, s.run("show", "3").out, "execution 3: STARTED")

		r = s.run("restart", "1")
		require.Equal(t, cli.ExitFailed, r.code)
		require.Contains(t, r.err, "surfin: job bad, execution 1: the last execution was abandoned\n its steps: surfin show 1 ")
		r = s.run("run", "bad.yaml")
		require.Equal(t, cli.ExitRefused, r.code)
		require.Contains(t, r.err, " a new instance: surfin run DIR/bad.yaml --again ")
		c.signal(syscall.SIGTERM)
		c.until("a second signal cancels at once")
		c.signal(syscall.SIGTERM)
		c.end()
	})
}

func TestRecoverEndsWhatADeadProcessLeftAndNamesTheWayOn(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"e.yaml": endlessJob, "h.yaml": "job: h\nflow:\n- {step: wait, tasklet: hang}\n"})
		require.Equal(t, cli.ExitCompleted, s.run("migrate").code)
		alive := s.start("run", "h.yaml")
		alive.until("step started")
		c := s.start("run", "e.yaml")
		c.until("step started")
		c.signal(os.Kill)
		c.end()
		require.Contains(t, s.run("list", "--running", "--job", "e").out, " 2 e STARTED (owner gone) 1 ")

		r := s.run("recover")
		require.Equal(t, cli.ExitCompleted, r.code, r.err)
		require.Contains(t, r.out, " 2 e FAILED 1 ")
		require.NotContains(t, r.out, " h ", "what is alive is not touched")
		require.Contains(t, r.out, "restart it: surfin restart 2 ")
		r = s.run("recover")
		require.Equal(t, cli.ExitCompleted, r.code)
		require.Contains(t, r.err, "nothing to recover")
		require.Equal(t, "[]\n", s.run("recover", "--format", "json").out)
		require.Contains(t, s.run("list", "--running").out, " 1 h STARTED 1 ")
		alive.signal(syscall.SIGKILL)
		alive.end()
	})
}

func TestPurgeCountsThenDeletesWhatIsOldAndKeepsTheNewest(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"n.yaml": "job: n\nflow:\n- {step: one, tasklet: nothing}\n", "bad.yaml": "job: bad\nflow:\n- {step: one, tasklet: panic}\n"})
		require.Equal(t, cli.ExitCompleted, s.run("migrate").code)
		for range 4 {
			require.Equal(t, cli.ExitCompleted, s.run("run", "n.yaml", "--again").code)
		}
		require.Equal(t, cli.ExitFailed, s.run("run", "bad.yaml").code)
		require.Contains(t, s.run("purge", "--older-than", "1d").out, "deleted 0 executions, 0 instances, 0 steps, 0 skipped items that ended before TIME\n")
		require.Contains(t, s.run("purge", "--older-than", "0s", "--dry-run").out, "would delete 4 executions, 4 instances, 4 steps, 0 skipped items")
		require.Equal(t, cli.ExitUsage, s.run("purge", "--older-than", "0s").code, "rule OP6")
		require.Contains(t, s.run("purge", "--older-than", "0s", "--keep-last", "1", "--yes").out, "deleted 3 executions, 3 instances, 3 steps, 0 skipped items")
		require.Contains(t, s.run("list", "--format", "json").out, `"execution": 4`)
		require.Contains(t, s.run("purge", "--older-than", "0s", "--status", "failed", "--job", "bad", "--format", "json", "--yes").out, `"executions": 1`)
		require.Equal(t, cli.ExitFailed, s.run("run", "bad.yaml").code, "the instance is gone: it runs again")
		for _, wrong := range [][]string{{"purge"}, {"purge", "--older-than", "soon"}, {"purge", "--older-than", "1d", "--status", "STARTED"}, {"purge", "--older-than", "1d", "--keep-last", "-1"}} {
			require.Equal(t, cli.ExitUsage, s.run(wrong...).code)
		}
	})
}

func TestARestartIsForTheNewestExecutionThatFailedOrStopped(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"bad.yaml": "job: bad\nflow:\n- {step: one, tasklet: panic}\n", "good.yaml": "job: good\nflow:\n- {step: one, tasklet: nothing}\n"})
	require.Equal(t, cli.ExitFailed, s.run("run", "bad.yaml").code)
	require.Equal(t, cli.ExitFailed, s.run("restart", "1").code)
	r := s.run("restart", "1")
	require.Equal(t, cli.ExitRefused, r.code)
	require.Contains(t, r.err, "surfin: job bad, execution 1: a later execution of the instance exists: execution 2 (FAILED)\n its steps: surfin show 2 --database-url URL\n restart it: surfin restart 2 ")

	require.Equal(t, cli.ExitCompleted, s.run("run", "good.yaml").code)
	r = s.run("restart", "3")
	require.Equal(t, cli.ExitFailed, r.code)
	require.Contains(t, r.err, "is already complete with these parameters (execution 3)\n its steps: surfin show 3 --database-url URL\n a new instance: surfin run DIR/good.yaml --again ")
	require.NotContains(t, s.run("list").out, " 4 ")
}

func TestAnUnknownOutcomeIsForThePersonToJudge(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"bad.yaml": "job: bad\nflow:\n- {step: one, tasklet: panic}\n"})
	require.Equal(t, cli.ExitFailed, s.run("run", "bad.yaml").code)
	require.Equal(t, cli.ExitCompleted, s.run("sql", "update surfin_job_execution set status = 'UNKNOWN', exit_code = 'UNKNOWN'", "--write").code)
	for _, c := range []struct {
		args []string
		code int
	}{{[]string{"run", "bad.yaml"}, cli.ExitRefused}, {[]string{"restart", "1"}, cli.ExitFailed}} {
		r := s.run(c.args...)
		require.Equal(t, c.code, r.code, r.err)
		require.Contains(t, r.err, "the outcome of the last execution is unknown")
		require.Contains(t, r.err, " abandon it: surfin abandon 1 ")
		require.Contains(t, r.err, " a new instance: surfin run DIR/bad.yaml --again ")
	}
	require.Equal(t, cli.ExitCompleted, s.run("abandon", "1").code)
	require.Equal(t, cli.ExitFailed, s.run("run", "bad.yaml", "--again").code)
}

func TestFromStartRunsEveryStepAnewAndAChangeOfWhatIsDoneCanBeAccepted(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"j.yaml": "job: j\nflow:\n- {step: one, tasklet: nothing}\n- {step: two, tasklet: panic}\n"})
		require.Equal(t, cli.ExitCompleted, s.run("migrate").code)
		require.Equal(t, cli.ExitFailed, s.run("run", "j.yaml").code)
		r := s.run("restart", "1", "--from-start")
		require.Equal(t, cli.ExitFailed, r.code)
		require.Contains(t, r.err, "INFO step started step=one\n")
		r = s.run("restart", "2")
		require.Contains(t, r.err, "INFO step passed: it completed before step=one execution=2\n")

		s.write("j.yaml", "job: j\nflow:\n- {step: uno, tasklet: nothing}\n- {step: two, tasklet: nothing}\n")
		r = s.run("restart", "3")
		require.Equal(t, cli.ExitUsage, r.code)
		require.Contains(t, r.err, " restart anyway: surfin restart 3 --file DIR/j.yaml --accept-changes --database-url ")
		require.Contains(t, r.err, " from the start: surfin restart 3 --file DIR/j.yaml --from-start --database-url ")
		require.NotContains(t, s.run("list").out, "\n 4 ")
		r = s.run("restart", "3", "--accept-changes")
		require.Equal(t, cli.ExitCompleted, r.code, r.err)
		require.Contains(t, r.err, "WARN accepted: step one has completed, and is no longer in the file")
	})
}

func TestListFindsExecutionsByWhatTheyAre(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"n.yaml": "job: n\nflow:\n- {step: one, tasklet: nothing}\n", "bad.yaml": "job: bad\nflow:\n- {step: one, tasklet: panic}\n"})
		require.Equal(t, cli.ExitCompleted, s.run("migrate").code)
		for range 3 {
			require.Equal(t, cli.ExitCompleted, s.run("run", "n.yaml", "--again").code)
		}
		require.Equal(t, cli.ExitFailed, s.run("run", "bad.yaml").code)
		require.Equal(t, cli.ExitFailed, s.run("run", "bad.yaml").code)
		for _, c := range []struct {
			args []string
			want []string
		}{
			{nil, []string{"5", "4", "3", "2", "1"}},
			{[]string{"--job", "n", "--limit", "2"}, []string{"3", "2"}},
			{[]string{"--job", "n", "--limit", "2", "--before", "2"}, []string{"1"}},
			{[]string{"--instance", "4"}, []string{"5", "4"}},
			{[]string{"--exit", "FAILED", "--status", "failed"}, []string{"5", "4"}},
			{[]string{"--exit", "EXPECT_FAILED"}, nil},
			{[]string{"--since", "1h"}, []string{"5", "4", "3", "2", "1"}},
			{[]string{"--until", "1d"}, nil},
			{[]string{"--since", "2020-01-01", "--until", "2100-01-01T10:00"}, []string{"5", "4", "3", "2", "1"}},
			{[]string{"--since", "2100-01-01T10:00:00Z"}, nil},
			{[]string{"--running"}, nil},
		} {
			require.Equal(t, c.want, s.ids(append([]string{"list"}, c.args...)...), "%v", c.args)
		}
		require.Equal(t, "id job parameters status attempt started duration\n─\n 5 bad FAILED 2 TIME TOOK\n 3 n run.again=2 COMPLETED 1 TIME TOOK\n", s.run("list", "jobs").out)
		require.Contains(t, s.run("list", "jobs", "--format", "json").out, `"execution": 5`)
		require.Equal(t, `instance job parameters attempts last execution status
─
 4 bad 2 5 FAILED
 3 n run.again=2 1 3 COMPLETED
`, s.run("list", "instances", "--limit", "2").out)
		require.Contains(t, s.run("list", "instances", "--limit", "2").err, "there are more: --before 3")
		require.Contains(t, s.run("list", "instances", "--job", "n", "--before", "2").out, " 1 n 1 1 COMPLETED\n")
		for _, wrong := range [][]string{{"--since", "yesterday"}, {"--running", "--status", "FAILED"}, {"--limit", "0"}} {
			require.Equal(t, cli.ExitUsage, s.run(append([]string{"list"}, wrong...)...).code)
		}
	})
}

func TestShowAuditTellsWhoDidWhat(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"bad.yaml": "job: bad\nflow:\n- {step: one, tasklet: panic}\n"})
	require.Equal(t, cli.ExitFailed, s.run("run", "bad.yaml").code)
	require.Equal(t, cli.ExitCompleted, s.run("abandon", "1").code)
	r := s.run("show", "1", "--audit")
	require.Contains(t, r.out, "at about act status by detail\n─\n")
	require.Contains(t, r.out, "FAILED -> ABANDONED ")
	require.Contains(t, r.out, "@", "the user and the host")
	require.Regexp(t, `TIME job launch STARTING process \d+ on \S+ for \S+@\S+\n`, r.out)
	require.Contains(t, s.run("show", "1", "--audit", "--format", "json").out, `"to": "ABANDONED"`)
}

func (s *scene) ids(args ...string) []string {
	s.t.Helper()
	r := s.run(append(args, "--format", "json")...)
	require.Equal(s.t, cli.ExitCompleted, r.code, r.err)
	var records []struct{ Execution int }
	require.NoError(s.t, json.Unmarshal([]byte(r.out), &records))
	var ids []string
	for _, record := range records {
		ids = append(ids, strconv.Itoa(record.Execution))
	}
	return ids
}

func TestALeaseThatIsOverSaysWhyNoProcessTookItOver(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, nil)
		_, ref := launched(t, s.history(), "two", stepsJob, time.Millisecond, nil)
		_, err := s.history().ChangeJob(t.Context(), ref, ports.JobChange{To: core.StatusStarted})
		require.NoError(t, err)
		shown := s.must("show", "1").out
		require.Regexp(t, `owner +process 4711 on elsewhere, lease expired \S+ ago; no process takes it over automatically\n`, shown)
		require.Contains(t, shown, "surfin recover")
		require.Contains(t, shown, "surfin restart 1")
		require.Contains(t, s.must("list").out, "STARTED (lease expired)")
		require.Contains(t, s.must("show", "1", "--format", "json").out, `"lost": true`)
	})
}

func TestARestartChangesParametersThatDoNotIdentify(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"p.yaml": `job: p
parameters:
  day: {type: int, required: true}
  limit: {type: int, default: 1, identifying: false}
flow:
- step: one
  expect: "params.limit > 4"
  tasklet: nothing
`})
		require.Equal(t, cli.ExitCompleted, s.run("migrate").code)
		r := s.run("run", "p.yaml", "day=7")
		require.Equal(t, cli.ExitExpect, r.code, r.err)

		r = s.run("restart", "1", "day=8")
		require.Equal(t, cli.ExitUsage, r.code, r.err)
		require.Contains(t, r.err, `parameter day: it identifies the instance, which has "7" (execution 1): a restart keeps it; run the job with the new value instead`)
		require.Contains(t, s.run("restart", "1", "limt=5").err, "surfin: parameter limt: the job has no such parameter (it has: day, limit)\n")
		require.Contains(t, s.run("restart", "1", "limit=much").err, "limit")
		require.NotContains(t, s.run("list").out, " 2 p ", "nothing was launched")

		r = s.run("restart", "1", "limit=5", "day=7")
		require.Equal(t, cli.ExitCompleted, r.code, r.err)
		require.Contains(t, s.run("show", "2", "--format", "json").out, `"limit": 5`)
		require.Contains(t, s.run("show", "1", "--format", "json").out, `"limit": 1`)
	})
}
