package operator

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/operator/catalog"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/series"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/repository/tasks"
)

const oneStatement = `job: %s
parameters: {n: {type: int, default: 1}}
flow:
- {step: only, tasklet: {sql: "%s"}}
`

// overseen is a scene with all sources of an overview.
func overseen(t *testing.T, url string) (*scene, *tasks.Repository) {
	t.Helper()
	s := newScene(t, url)
	queue, err := tasks.New(s.e.Database, repository.DefaultPrefix, tasks.Options{})
	require.NoError(t, err)
	s.change(func(c *Config) {
		c.Workers, c.Attention, c.JobHistory, c.Figures, c.Engine = queue, s.e.Repository, s.e.Repository, s.e.Repository, "local"
		c.Heartbeat = 6 * time.Second
	})
	return s, queue
}

func (s *scene) one(name, statement, n string) *core.JobExecution {
	s.t.Helper()
	s.write(name+".yaml", fmt.Sprintf(oneStatement, name, statement))
	return s.run(name+".yaml", map[string]string{"n": n})
}

func (s *scene) overview(req OverviewRequest) *Overview {
	s.t.Helper()
	o, err := s.s.Overview(s.t.Context(), req)
	require.NoError(s.t, err)
	return o
}

func needs(o *Overview) (list []string) {
	for _, n := range o.Needs {
		what := n.Name
		if n.Execution != 0 {
			what = fmt.Sprint(n.Execution)
		}
		action := ""
		if len(n.Actions) > 0 {
			action = string(n.Actions[0].Kind)
		}
		list = append(list, strings.Join(strings.Fields(strings.Join([]string{string(n.Reason), n.Job, what, action}, " ")), " "))
	}
	return list
}

// Rule OP9.
func TestAnOverviewHasWhatEndedWithoutSuccessUntilItIsCleared(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, _ := overseen(t, url)
		ctx := t.Context()
		require.Empty(t, needs(s.overview(OverviewRequest{})))

		require.Equal(t, core.StatusFailed, s.one("fails", "insert into missing values (1)", "1").Status)
		require.Equal(t, core.StatusFailed, s.one("fails", "insert into missing values (1)", "2").Status)
		s.write("stops.yaml", "job: stops\nflow:\n- decide: way\n  choose:\n  - {next: {stop: {restart: only}}}\n- {step: only, tasklet: {sql: select 1}}\n")
		require.Equal(t, core.StatusStopped, s.run("stops.yaml", nil).Status)
		s.write("copy.yaml", copyJob)
		s.write("in.csv", numberedLines(4, 3))
		skipped := s.run("copy.yaml", map[string]string{"year": "1991"})
		require.Equal(t, core.StatusCompleted, skipped.Status, skipped.Error)
		s.write("in.csv", numberedLines(8, 3, 6))
		limit := s.run("copy.yaml", map[string]string{"year": "1992"})
		require.Equal(t, core.StatusFailed, limit.Status, limit.Error)

		o := s.overview(OverviewRequest{})
		require.Equal(t, []string{"failed copy 5 restart", "failed fails 2 restart", "failed fails 1 restart", "stopped stops 3 restart", "skips_left copy 4 skips"}, needs(o))
		require.Equal(t, 1, o.Needs[4].Count)
		require.Equal(t, refusal.ActExport, o.Needs[4].Actions[1].Kind, "its text could not be read")
		require.WithinDuration(t, time.Now(), o.Needs[0].Since, time.Minute)
		require.Contains(t, o.Needs[0].Error, "skip")
		require.Equal(t, map[core.Status]int{core.StatusFailed: 3, core.StatusStopped: 1, core.StatusCompleted: 1}, o.Ended.Statuses)
		require.Equal(t, 86400.0, o.Ended.Window)
		require.Empty(t, s.overview(OverviewRequest{Since: time.Now().Add(time.Hour)}).Needs, "it was before")

		// Pages have each once, and only the first one has the rest.
		var all []string
		pages := 0
		for before := core.JobExecutionID(0); ; pages++ {
			page := s.overview(OverviewRequest{Limit: 2, Before: before})
			require.Equal(t, before == 0, page.Ended != nil)
			all = append(all, needs(page)...)
			if before = page.Next; before == 0 {
				break
			}
		}
		require.ElementsMatch(t, needs(o), all)
		require.LessOrEqual(t, pages, 3)

		// A restart that completes, an abandon and a redrive clear them.
		s.e.Exec("create table missing (n int)")
		require.Equal(t, core.StatusCompleted, s.one("fails", "insert into missing values (1)", "1").Status)
		_, err := s.s.Abandon(ctx, 2)
		require.NoError(t, err)
		skips, err := s.s.Skips(ctx, SkipsRequest{Execution: skipped.ID})
		require.NoError(t, err)
		redrive := func(text string) *Execution {
			running, err := s.s.Redrive(ctx, RedriveRequest{Execution: skipped.ID, Edited: map[int64]Edit{skips.Items[0].ID: {Raw: &text}}})
			require.NoError(t, err)
			exec, err := running.Wait()
			require.NoError(t, err)
			return exec
		}
		again := redrive("7")
		require.Equal(t, core.StatusFailed, again.Status, "out.csv exists")
		rest := []string{"failed copy 5 restart", "stopped stops 3 restart", "skips_left copy 4 skips"}
		require.Equal(t, append([]string{fmt.Sprintf("failed copy %d redrive", again.ID)}, rest...), needs(s.overview(OverviewRequest{})))
		require.NoError(t, os.Remove(filepath.Join(s.dir, "out.csv")))
		require.Equal(t, core.StatusCompleted, redrive("7").Status)
		require.Equal(t, []string{"failed copy 5 restart", "stopped stops 3 restart"}, needs(s.overview(OverviewRequest{})))
	})
}

func TestNeedsOfJobsWithAScheduleComeBeforeOthersOfTheirKind(t *testing.T) {
	t.Parallel()
	o := &Overview{Needs: []Need{{Reason: NeedStopped, Job: "nightly"}, {Reason: NeedFailed, Job: "by hand"}, {Reason: NeedFailed, Job: "paused"}, {Reason: NeedFailed, Job: "nightly"}}}
	o.order([]taskports.Definition{
		{Name: "nightly", Schedule: &taskports.Schedule{}, Enabled: true}, {Name: "paused", Schedule: &taskports.Schedule{}}, {Name: "by hand", Enabled: true},
	})
	require.Equal(t, []string{"failed nightly", "failed by hand", "failed paused", "stopped nightly"}, needs(o))
}

func TestAnOverviewHasWhatRunsAndNeedsAPerson(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, _ := overseen(t, url)
		ctx := t.Context()
		ago := func(n int) string {
			if strings.HasPrefix(url, "postgres") {
				return fmt.Sprintf("now() - interval '%d seconds'", n)
			}
			return fmt.Sprintf("%d", time.Now().Add(-time.Duration(n)*time.Second).UnixMicro())
		}
		launch := func(job string, n int64, owner core.Owner) core.JobExecutionID {
			launched, err := s.e.Repository.Launch(ctx, ports.LaunchRequest{JobName: job, Params: numbered(t, n), Owner: owner, Lease: time.Hour})
			require.NoError(t, err)
			id := launched.Execution.ID
			s.e.Exec(fmt.Sprintf("UPDATE surfin_job_execution SET status = 'STARTED', started_at = %s WHERE id = %d", ago(600), id))
			return id
		}
		far := core.Owner{Host: "far", PID: 7}
		lost, parked, slow, stuck, well, halted := launch("lost", 1, far), launch("parked", 1, far), launch("fast", 1, far), launch("copy", 1, far), launch("copy", 2, far), launch("copy", 3, far)
		s.e.Exec(fmt.Sprintf("UPDATE surfin_job_execution SET lease_until = %s WHERE id = %d", ago(60), lost))
		s.e.Exec(fmt.Sprintf("UPDATE surfin_job_execution SET status = 'PARKED', owner = '', lease_until = NULL WHERE id = %d", parked))
		for range 5 {
			exec := s.one("fast", "select 1", fmt.Sprint(s.e.Ints("SELECT count(*) FROM surfin_job_execution")[0]))
			require.Equal(t, core.StatusCompleted, exec.Status)
		}
		s.write("copy.yaml", copyJob)
		s.write("in.csv", numberedLines(4))
		done := s.run("copy.yaml", map[string]string{"year": "1991"})
		for _, id := range []core.JobExecutionID{stuck, well, halted} {
			s.e.Exec(fmt.Sprintf(`UPDATE surfin_job_execution SET definition_hash = (SELECT d.definition_hash FROM surfin_job_execution d WHERE d.id = %[2]d),
				definition_text = (SELECT d.definition_text FROM surfin_job_execution d WHERE d.id = %[2]d) WHERE id = %[1]d`, id, done.ID))
			commits := 0
			if id != stuck {
				commits = 1
			}
			for _, step := range []string{"first", "copy"} {
				s.e.Exec(fmt.Sprintf(`INSERT INTO surfin_step_execution (job_execution_id, job_name, name, status, owner, epoch, started_at, commit_count)
					VALUES (%d, 'copy', '%s', 'STARTED', 'o', 1, %s, %d)`, id, step, ago(300), commits))
			}
		}
		// Their process has sampled a commit each: of one just now, of the other long ago.
		for id, at := range map[core.JobExecutionID]time.Duration{well: 299 * time.Second, halted: 200 * time.Second} {
			step := core.StepExecutionID(s.e.Ints(fmt.Sprintf("SELECT id FROM surfin_step_execution WHERE job_execution_id = %d AND name = 'copy'", id))[0])
			samples := series.Encode([]series.Sample{{At: time.Second}, {At: at, Counters: core.Counters{Commit: 1}}})
			e, err := s.e.Repository.Execution(ctx, id)
			require.NoError(t, err)
			require.NoError(t, s.e.Repository.StoreSeries(ctx, ports.JobRef{ID: id, Owner: e.Owner, Epoch: e.Epoch}, []ports.StepSeries{{Step: step, Samples: samples, Since: 300 * time.Second}}))
		}

		o := s.overview(OverviewRequest{})
		require.Equal(t, []string{
			fmt.Sprintf("lost_owner lost %d recover", lost), fmt.Sprintf("no_worker parked %d stop", parked),
			fmt.Sprintf("no_commit copy %d watch", stuck), fmt.Sprintf("no_commit copy %d watch", halted), fmt.Sprintf("slow fast %d watch", slow),
		}, needs(o))
		require.Equal(t, "copy", o.Needs[2].Step)
		require.InDelta(t, 300, o.Needs[2].Seconds, 60)
		require.InDelta(t, 100, o.Needs[3].Seconds, 40)
		require.InDelta(t, 600, o.Needs[4].Seconds, 60)
		require.Less(t, o.Needs[4].Usual, 60.0)
		require.Len(t, o.Running, 6)
		require.False(t, o.MoreRunning)
		require.Equal(t, 6, o.Ended.Statuses[core.StatusCompleted])
	})
}

func TestAnOverviewHasSchedulesFilesTasksAndEventsThatNeedAPerson(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, queue := overseen(t, url)
		ctx := t.Context()
		s.write("nightly.yaml", nightlyJob)
		s.write("parts/child.yaml", childJob)
		path := filepath.Join(s.dir, "nightly.yaml")
		_, err := s.s.Register(ctx, RegisterRequest{File: path})
		require.NoError(t, err)
		in, err := catalog.New(s.registry, nil, path)
		require.NoError(t, err)
		require.Equal(t, []string{"no_leader work"}, needs(s.overview(OverviewRequest{Catalog: in})))
		_, leads, err := queue.Lead(ctx, "here", time.Hour)
		require.NoError(t, err)
		require.True(t, leads)
		require.Empty(t, needs(s.overview(OverviewRequest{Catalog: in})))

		// A day of it was not decided, another one was left out.
		d, err := s.e.Repository.Definition(ctx, "nightly")
		require.NoError(t, err)
		moved, err := s.e.Repository.Advance(ctx, d, time.Now().Add(-72*time.Hour), "2 times were missed")
		require.NoError(t, err)
		require.True(t, moved)
		// Its file is wrong now, and the stored one, too.
		s.write("nightly.yaml", strings.Replace(nightlyJob, "step: note", "stepp: note", 1))
		s.e.Exec("UPDATE surfin_job_definition SET version = 'x', definition_text = 'job: nightly\nflow:\n- {step: a, tasklet: {sqll: select 1}}\n'")
		// A task waits for a worker that has its type, and an event is dead.
		_, _, err = queue.Submit(ctx, task.Submission{Tasks: []task.Spec{{Type: "mail"}, {Type: "mail"}}})
		require.NoError(t, err)
		now := "now()"
		if !strings.HasPrefix(url, "postgres") {
			now = fmt.Sprint(time.Now().UnixMicro())
		}
		s.e.Exec("UPDATE surfin_task SET created_at = (SELECT min(created_at) FROM surfin_job_definition)")
		s.e.Exec(fmt.Sprintf("INSERT INTO surfin_event (topic, subject, dedupe_key, offer_after, created_at, dead_at) VALUES ('paid', 1, 'e', 0, %[1]s, %[1]s)", now))
		s.change(func(c *Config) { c.Now = func() time.Time { return time.Now().Add(2 * time.Minute) } })

		o := s.overview(OverviewRequest{Catalog: in})
		require.Equal(t, []string{
			"late nightly schedules", "waiting_type mail work", "file nightly " + path + " validate", "file nightly " + path + " validate", "dead_events paid events",
			"left_out nightly history",
		}, needs(o))
		require.Greater(t, o.Needs[0].Seconds, 24*3600.0)
		require.Equal(t, FileProblem{File: path, Line: 7, Column: 3, Message: "this element has no `step`, which names it", Cure: o.Needs[2].Problems[0].Cure}, o.Needs[2].Problems[0])
		require.NotEmpty(t, o.Needs[2].Problems[0].Cure)
		require.False(t, o.Needs[2].Registered)
		require.True(t, o.Needs[3].Registered)
		require.Equal(t, 3, o.Needs[3].Problems[0].Line)
		require.Equal(t, 2, o.Needs[1].Count)
		require.Equal(t, "2 times were missed", o.Needs[5].Error)

		page, err := s.s.JobSummaries(ctx, JobsRequest{Catalog: in})
		require.NoError(t, err)
		require.Len(t, page.Jobs, 1)
		require.Equal(t, []JobSource{JobInCatalog, JobRegistered}, page.Jobs[0].Sources)
		require.NotNil(t, page.Jobs[0].Next)
		require.Len(t, page.Jobs[0].Problems, 2)

		s.write("nightly.yaml", nightlyJob+"\n")
		require.Len(t, needs(s.overview(OverviewRequest{Catalog: in})), 5, "the corrected file is read")
		require.NoError(t, os.Remove(path))
		require.Len(t, needs(s.overview(OverviewRequest{Catalog: in})), 6)
	})
}

// Rule OP11.
func TestASummaryHasTheLastExecutionsOfEachJob(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, _ := overseen(t, url)
		ctx := t.Context()
		s.write("copy.yaml", copyJob)
		for i := range 3 {
			s.write("in.csv", numberedLines(4+2*i, 3))
			require.Equal(t, core.StatusCompleted, s.run("copy.yaml", map[string]string{"year": fmt.Sprint(1991 + i)}).Status)
		}
		require.Equal(t, core.StatusFailed, s.one("fails", "insert into missing values (1)", "1").Status)
		s.write("in.csv", numberedLines(9, 3, 4))
		require.Equal(t, core.StatusFailed, s.run("copy.yaml", map[string]string{"year": "1994"}).Status)
		s.write("daily.yaml", nightlyJob)
		s.write("parts/child.yaml", childJob)
		_, err := s.s.Register(ctx, RegisterRequest{File: filepath.Join(s.dir, "daily.yaml")})
		require.NoError(t, err)
		_, err = s.s.Disable(ctx, "nightly")
		require.NoError(t, err)

		for range 2 { // the second time from memory
			page, err := s.s.JobSummaries(ctx, JobsRequest{})
			require.NoError(t, err)
			require.Empty(t, page.Next)
			require.Len(t, page.Jobs, 3)
			c := page.Jobs[0]
			require.Equal(t, "copy", c.Job)
			require.Equal(t, []JobSource{JobInHistory}, c.Sources)
			require.False(t, c.Runnable)
			require.Len(t, c.Last, 4)
			require.Equal(t, core.StatusFailed, c.Last[0].Status)
			require.EqualValues(t, 5, c.Last[0].Execution)
			require.EqualValues(t, 7, *c.Last[1].Rows)
			require.Equal(t, .75, *c.SuccessRate)
			require.Equal(t, 3, c.Completed)
			require.Equal(t, 5.0, c.Rows.Median)
			require.InDelta(t, 6.8, c.Rows.P95, 1e-9)
			_, enough := c.Rows.Within()
			require.False(t, enough, "95 of 100 are not said of 3")
			require.Equal(t, 1, c.SkipsLeft)
			require.Equal(t, "fails", page.Jobs[1].Job)
			require.Zero(t, *page.Jobs[1].SuccessRate)
			require.Nil(t, page.Jobs[1].Duration)
			require.Equal(t, "nightly", page.Jobs[2].Job)
			require.True(t, page.Jobs[2].Paused && page.Jobs[2].Runnable)
			require.Nil(t, page.Jobs[2].Next)
		}
		page, err := s.s.JobSummaries(ctx, JobsRequest{Limit: 1, After: "copy"})
		require.NoError(t, err)
		require.Equal(t, "fails", page.Next)
		page, err = s.s.JobSummaries(ctx, JobsRequest{Job: "nightly"})
		require.NoError(t, err)
		require.Len(t, page.Jobs, 1)
		_, err = s.s.JobSummaries(ctx, JobsRequest{Limit: 1001})
		require.ErrorAs(t, err, new(*RequestError))
	})
}

func TestPercentilesInterpolate(t *testing.T) {
	t.Parallel()
	require.Equal(t, 2.5, median([]float64{4, 1, 3, 2}))
	require.Equal(t, 3.0, median([]float64{5, 1, 3}))
	require.InDelta(t, 19.05, percentile(slices.Collect(func(yield func(float64) bool) {
		for i := range 20 {
			if !yield(float64(i + 1)) {
				return
			}
		}
	}), p95), 1e-9)
	require.Zero(t, percentile(nil, p95))
}
