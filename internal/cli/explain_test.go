package cli_test

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// history is the repository of a scene, for states that a command leaves only when its process
// dies.
func (s *scene) history() *repository.Repository {
	s.t.Helper()
	provider, err := gormdb.Open(context.Background(), map[string]gormdb.Config{tx.Default: {URL: s.url}})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { require.NoError(s.t, provider.Close()) })
	db, err := provider.Database(tx.Default)
	require.NoError(s.t, err)
	r := repository.New(db, repository.Options{})
	require.NoError(s.t, r.Migrate(context.Background()))
	return r
}

func launched(t *testing.T, r *repository.Repository, name, text string, lease time.Duration, change func(*ports.LaunchRequest)) (*core.JobExecution, ports.JobRef) {
	t.Helper()
	req := ports.LaunchRequest{
		JobName: name, Definition: core.Definition{Hash: "other", Text: text, Path: "/jobs/" + name + ".yaml"}, Restartable: true,
		Owner: core.Owner{Host: "elsewhere", Boot: "b", PID: 4711, Start: "1", Nonce: "n"}, Lease: lease,
	}
	if change != nil {
		change(&req)
	}
	l, err := r.Launch(context.Background(), req)
	require.NoError(t, err)
	return l.Execution, ports.JobRef{ID: l.Execution.ID, Owner: l.Execution.Owner, Epoch: l.Execution.Epoch}
}

func stepOf(t *testing.T, r *repository.Repository, id core.JobExecutionID, name string) core.StepExecution {
	t.Helper()
	steps, err := r.Steps(context.Background(), id)
	require.NoError(t, err)
	for _, s := range steps {
		if s.Name == name {
			return s
		}
	}
	require.Fail(t, "no such step", name)
	return core.StepExecution{}
}

func (s *scene) explained(id string) string {
	s.t.Helper()
	r := s.run("explain", id)
	require.Equal(s.t, cli.ExitCompleted, r.code, r.err)
	return anyPart.ReplaceAllString(anyURL.ReplaceAllString(r.out, "--database-url URL"), ".part.NAME ")
}

var anyPart = regexp.MustCompile(`\.part\.[0-9a-z-]+ `)

var anyURL = regexp.MustCompile(`--database-url \S+`)

func TestExplainACompletedExecution(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"load.yaml": loadJob, "numbers.csv": numbers})
		require.Equal(t, cli.ExitCompleted, s.run("run", "load.yaml", "least=2", "--auto-migrate", "true").code)
		require.Equal(t, `Execution 1 of job load (input=numbers.csv year=1995) is COMPLETED, since TIME, after TOOK.

Step load COMPLETED: 5 read, 4 written, 1 filtered.
Step last COMPLETED.

It cannot be restarted: it is complete.

 run another instance: surfin run DIR/load.yaml least=2 year=1996 --database-url URL
 run the same again: surfin run DIR/load.yaml least=2 --again --database-url URL
`, s.explained("1"))
	})
}

const filesJob = `job: files
flow:
- {step: first, tasklet: nothing}
- step: copy
  chunk:
    size: 2
    reader: {csv: {path: in.csv, item: {id: int, name: string}}}
    writer: {csv: out.csv}
    skip: {limit: 1}
- {step: last, tasklet: nothing}
`

func TestExplainAFailureSaysWhatIsCommittedAndWhereARestartGoesOn(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"files.yaml": filesJob, "in.csv": "id,name\n1,one\ntwo,two\n3,three\n4,four\n5,five\nsix,six\n"})
		require.Equal(t, cli.ExitFailed, s.run("run", "files.yaml", "--auto-migrate", "true").code)
		text := s.explained("1")
		require.Contains(t, text, "Execution 1 of job files FAILED at TIME, after TOOK.\nStep copy failed")
		still, cause := "", "see the error of step copy"
		if _, known := stepOf(t, s.history(), 1, "copy").Context.Get(core.ErrorClassKey); known {
			still, cause = "Without a correction of DIR/in.csv:7 it fails there again.\n", "correct DIR/in.csv:7, or let step copy skip such items; without that it fails there again"
			require.Contains(t, text, "Step copy failed at DIR/in.csv:7 with an error of class parse: read: ")
		}
		require.Contains(t, text, ": read: skip limit of 1 exceeded; last cause: DIR/in.csv:7: ")
		require.Contains(t, text, `
Step first COMPLETED.
Step copy FAILED: 4 of 5 read, 4 written, 1 skipped (while reading), committed up to line 6 of DIR/in.csv.
File DIR/out.csv is not published yet: DIR/out.csv.part.NAME has 36 committed bytes.

Step copy skipped 1 item: 1 in read (parse).

A restart passes first, resumes copy after line 6 of DIR/in.csv and then, if copy completes, runs last.
`+still+`
 1. remove the cause: `+cause+`
 2. restart it: surfin restart 1 --database-url URL
 abandon it: surfin abandon 1 --database-url URL
 see the skipped items: surfin skips list 1 --database-url URL
 3. correct the items: surfin skips export 1 --out FILE --database-url URL
`)
		var e struct {
			Status string
			Newest int
			Steps  []struct{ Step, Position, Kind string }
			Files  []struct {
				Path      string
				InView    bool `json:"in_view"`
				Committed int  `json:"committed_bytes"`
			}
			Skipped []struct {
				Phase, Class string
				Count        int
			}
			Restart struct {
				Entries []struct{ Step, Action, Certainty, Text, From string }
			}
			Commands []struct{ To, Command string }
			Text     []string
		}
		r := s.run("explain", "1", "--format", "json")
		require.NoError(t, json.Unmarshal([]byte(r.out), &e))
		require.Len(t, e.Restart.Entries, 3)
		require.Equal(t, []string{"first", "pass", "certain"}, []string{e.Restart.Entries[0].Step, e.Restart.Entries[0].Action, e.Restart.Entries[0].Certainty})
		require.Equal(t, []string{"copy", "resume", "line 6 of DIR/in.csv"}, []string{e.Restart.Entries[1].Step, e.Restart.Entries[1].Action, e.Restart.Entries[1].From})
		require.Equal(t, []string{"last", "run", "after", "copy"}, []string{e.Restart.Entries[2].Step, e.Restart.Entries[2].Action, e.Restart.Entries[2].Certainty, e.Restart.Entries[2].Text})
		require.Equal(t, 36, e.Files[0].Committed)
		require.Equal(t, "parse", e.Skipped[0].Class)
		require.NotEmpty(t, e.Text)

		s.write("files.yaml", strings.Replace(filesJob, "limit: 1", "limit: 9", 1))
		require.Contains(t, s.explained("1"), "The job file DIR/files.yaml has changed since; the plan is for the file as it is now.")
		require.Equal(t, cli.ExitCompleted, s.run("restart", "1").code, "what explain says comes true")
		require.Contains(t, s.explained("1"), "It cannot be restarted: execution 2 followed it in the same instance, and is COMPLETED.\n\n explain that one: surfin explain 2 ")
		require.Contains(t, s.explained("2"), `
Step first was completed by execution 1.
Step copy COMPLETED: 4 of 6 read, 4 written, 2 skipped (while reading) in all attempts.
Step last COMPLETED.
File DIR/out.csv is complete and published.

Step copy skipped 1 item in this attempt: 1 in read (parse).
`)
	})
}

const stepsJob = "job: two\nflow:\n- {step: one, tasklet: nothing}\n- {step: two, tasklet: panic}\n"

func TestExplainWhyThereIsNoRestart(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{
		"once.yaml":  "job: once\nrestartable: false\nflow:\n- {step: one, tasklet: panic}\n",
		"limit.yaml": "job: limit\nflow:\n- {step: one, tasklet: panic, start_limit: 1}\n",
		"two.yaml":   stepsJob,
	})
	require.Equal(t, cli.ExitFailed, s.run("run", "once.yaml").code)
	require.Equal(t, `Execution 1 of job once FAILED at TIME, after TOOK.
Step one failed: panic: the sky is falling.

Step one FAILED.

It cannot be restarted: its job file says restartable: false.

 run the same again: surfin run DIR/once.yaml --again --database-url URL
`, s.explained("1"))

	ran := s.run("run", "limit.yaml")
	require.Equal(t, cli.ExitFailed, ran.code)
	require.NotContains(t, ran.err, "restart it")
	require.Contains(t, ran.err, "a new instance: surfin run DIR/limit.yaml --again")
	require.Contains(t, s.explained("2"), "A restart would fail: step one was attempted once, and its start_limit is 1.\n\n run the same again: ")
	require.Equal(t, cli.ExitFailed, s.run("restart", "2").code)
	require.Contains(t, s.explained("3"), "its start_limit is 1", "and so it was")

	require.Equal(t, cli.ExitFailed, s.run("run", "two.yaml").code)
	require.Contains(t, s.explained("4"), "A restart passes one and runs two again from its start.\n")
	r := s.history()
	ctx := context.Background()
	exec, err := r.Execution(ctx, 4)
	require.NoError(t, err)
	_, err = r.ChangeJob(ctx, ports.JobRef{ID: 4, Owner: exec.Owner, Epoch: exec.Epoch}, ports.JobChange{To: core.StatusAbandoned})
	require.NoError(t, err)
	require.Regexp(t, `^Execution 4 of job two is ABANDONED. It had ended at TIME, after TOOK.\n`, s.explained("4"))
	require.Contains(t, s.explained("4"), "It cannot be restarted: it was abandoned.\n\n run the same again: surfin run DIR/two.yaml --again --database-url URL\n")
}

func TestExplainARunningExecutionAndOneWhoseProcessIsGone(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, nil)
		r, ctx := s.history(), context.Background()
		exec, ref := launched(t, r, "two", stepsJob, time.Hour, nil)
		require.Equal(t, `Execution 1 of job two is about to start, since TIME.
Its owner is process 4711 on host elsewhere; its lease lasts until TIME.

It cannot be restarted: it is running.

 watch it: surfin top --job two --database-url URL
 stop it: surfin stop 1 --database-url URL
`, s.explained("1"))

		_, err := r.ChangeJob(ctx, ref, ports.JobChange{To: core.StatusStarted})
		require.NoError(t, err)
		step, err := r.StartStep(ctx, ref, ports.StepStart{Name: "one"})
		require.NoError(t, err)
		require.Contains(t, s.explained("1"), "is running since TIME.\nIts owner is process 4711 on host elsewhere; its lease lasts until TIME.\n\nStep one is running.\n")
		_, err = r.RequestStop(ctx, exec.ID, ports.By{Actor: "test"})
		require.NoError(t, err)
		text := s.explained("1")
		require.Contains(t, text, "is running since TIME, and was asked to stop: it ends after its current chunk.\n")
		require.NotContains(t, text, "surfin stop")

		_, err = r.EndStep(ctx, ports.StepRef{ID: step.ID, Owner: step.Owner, Epoch: step.Epoch}, ports.StepChange{To: core.StatusStopped, ExitCode: core.ExitStopped, Error: "stopped on request"})
		require.NoError(t, err)
		_, err = r.ChangeJob(ctx, ref, ports.JobChange{To: core.StatusStopped, ExitCode: core.ExitStopped, Error: "stopped on request"})
		require.NoError(t, err)
		text = s.explained("1")
		require.Contains(t, text, "Execution 1 of job two STOPPED at TIME, after TOOK.\nA stop was requested, and step one ended after its current chunk.\n")
		require.Contains(t, text, "A restart runs one again from its start and then, if one completes, runs two.\nThe job file /jobs/two.yaml no longer exists")

		_, ref = launched(t, r, "expired", strings.Replace(stepsJob, "two", "expired", 1), time.Millisecond, nil)
		_, err = r.ChangeJob(ctx, ref, ports.JobChange{To: core.StatusStarted})
		require.NoError(t, err)
		text = s.explained("2")
		require.Contains(t, text, "But its owner, process 4711 on host elsewhere, has sent no heartbeat: its lease expired at TIME.\n")
		require.Contains(t, text, "The next run or restart takes it over.\nThat attempt runs one and then, if one completes, runs two.\n")
		require.Contains(t, text, " end it: surfin recover --database-url URL\n")
		require.Contains(t, text, " restart it: surfin restart 2 ")

		owner, err := job.CurrentOwner()
		require.NoError(t, err)
		owner.Start = "0" // a process that once had this PID
		launched(t, r, "dead", strings.Replace(stepsJob, "two", "dead", 1), time.Hour, func(req *ports.LaunchRequest) { req.Owner = owner })
		require.Contains(t, s.explained("3"), ", is dead; its lease expires at TIME.\n")
	})
}

func TestExplainAnUnknownOutcomeAndALostOwner(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"two.yaml": strings.Replace(stepsJob, "panic", "nothing", 1)})
	r, ctx := s.history(), context.Background()
	_, ref := launched(t, r, "two", stepsJob, time.Hour, func(req *ports.LaunchRequest) { req.Definition.Path = s.path("two.yaml") })
	_, err := r.ChangeJob(ctx, ref, ports.JobChange{To: core.StatusStarted})
	require.NoError(t, err)
	_, err = r.ChangeJob(ctx, ref, ports.JobChange{To: core.StatusUnknown, ExitCode: core.ExitUnknown, Error: "step one: the outcome is not known"})
	require.NoError(t, err)
	require.Equal(t, `Execution 1 of job two ended at TIME, after TOOK, and its outcome is not known: it is UNKNOWN.
The reason: step one: the outcome is not known.

No step ran.

It cannot be restarted: it is not known whether its last transaction committed: check what it wrote, then abandon it.

 abandon it: surfin abandon 1 --database-url URL
 run the same again: surfin run DIR/two.yaml --again --database-url URL
`, s.explained("1"))

	s = newScene(t, testdb.SQLite(t), map[string]string{"two.yaml": strings.Replace(stepsJob, "panic", "nothing", 1)})
	_, ref = launched(t, s.history(), "two", stepsJob, time.Millisecond, nil)
	_ = ref
	require.Equal(t, cli.ExitCompleted, s.run("run", "two.yaml").code)
	require.Contains(t, s.explained("1"), "Its owner, process 4711 on host elsewhere, was lost: it died or stopped sending heartbeats, and the execution was taken over.\n")
}

func TestExplainOfAJobFileThatIsNotUnderstoodSaysLessAndNothingWrong(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), nil)
	_, ref := launched(t, s.history(), "old", "job: old\nflow:\n- {step: one, tasklet: gone}\n", time.Hour, nil)
	_, err := s.history().ChangeJob(context.Background(), ref, ports.JobChange{To: core.StatusFailed, ExitCode: core.ExitFailed, Error: "out of luck"})
	require.NoError(t, err)
	require.Equal(t, `Execution 1 of job old FAILED at TIME.
The reason: out of luck.

No step ran.

This program no longer understands the stored job file, so the plan of a restart is not known: it passes the complete steps.

 1. remove the cause: see its error
 2. restart it: surfin restart 1 --database-url URL
 abandon it: surfin abandon 1 --database-url URL
`, s.explained("1"))

	require.Equal(t, cli.ExitUsage, s.run("explain", "77").code)
	require.Equal(t, cli.ExitUsage, s.run("explain").code)
}

func TestExplainTellsWhatIsCommittedFromWhatWasRolledBack(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"load.yaml": loadJob, "numbers.csv": "id,name\n1,one\n2,two\n3,three\nfour,four\n5,five\n"})
	require.Equal(t, cli.ExitFailed, s.run("run", "load.yaml").code)
	text := s.explained("1")
	require.Contains(t, text, "Step load FAILED: 2 read, 2 written, committed up to line 3 of DIR/numbers.csv; 1 more read in the chunk that was rolled back.\n")
	require.Contains(t, text, "A restart resumes load after line 3 of DIR/numbers.csv and then, if load completes, runs last.\n")
}
