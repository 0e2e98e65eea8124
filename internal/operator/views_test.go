package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const copyJob = `job: copy
parameters:
  year: {type: int}
  note: {type: string, default: x, identifying: false}
flow:
- {step: first, tasklet: {sql: select 1}}
- decide: way
  choose:
  - {when: params.year > 3000, next: end}
  - next: copy
- step: copy
  chunk:
    size: 2
    reader: {csv: {path: in.csv, item: {id: int}}}
    writer: {csv: out.csv}
    skip: {limit: 1}
- {step: last, tasklet: {sql: select 1}}
finally:
- {step: tell, tasklet: {sql: select 1}}
`

func TestViewsOfAFailedExecution(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, ctx := newScene(t, url), t.Context()
		s.write("copy.yaml", copyJob)
		s.write("in.csv", numberedLines(8, 3, 6))
		exec := s.run("copy.yaml", map[string]string{"year": "1995"})
		require.Equal(t, core.StatusFailed, exec.Status, exec.Error)

		page, err := s.s.List(ctx, ListRequest{})
		require.NoError(t, err)
		s.matches("list", page)
		instances, err := s.s.Instances(ctx, InstancesRequest{Job: "copy"})
		require.NoError(t, err)
		s.matches("instances", instances)
		jobs, err := s.s.Jobs(ctx)
		require.NoError(t, err)
		s.matches("jobs", jobs)
		shown, err := s.s.Show(ctx, ShowRequest{Execution: exec.ID, Audit: true})
		require.NoError(t, err)
		s.matches("show", shown)
		explained, err := s.s.Explain(ctx, ExplainRequest{Execution: exec.ID})
		require.NoError(t, err)
		s.matches("explain", explained)
		skips, err := s.s.Skips(ctx, SkipsRequest{Execution: exec.ID})
		require.NoError(t, err)
		s.matches("skips", skips)
		skip, err := s.s.Skip(ctx, skips.Items[0].ID)
		require.NoError(t, err)
		require.Equal(t, skips.Items[0], *skip)

		shown, err = s.s.Show(ctx, ShowRequest{Execution: exec.ID, Definition: true})
		require.NoError(t, err)
		require.Len(t, shown.Definition, 1)
		require.Equal(t, copyJob, shown.Definition[0].Text, "it is there where it was asked for")
		require.Empty(t, shown.Audit)
	})
}

func TestPagesSayWhereTheNextOneBegins(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e, ctx := testengine.New(t, url), t.Context()
		s, err := New(Config{Repository: e.Repository.Ports()})
		require.NoError(t, err)
		j := testengine.Job("j", e.Tasklet("one", tx.Attr{}, func(context.Context, *core.StepContribution) error { return nil }))
		for n := range int64(3) {
			_, err := e.Launcher.Run(ctx, j, numbered(t, n), nil)
			require.NoError(t, err)
		}
		page, err := s.List(ctx, ListRequest{Limit: 2, Statuses: []core.Status{core.StatusCompleted}})
		require.NoError(t, err)
		require.Len(t, page.Executions, 2)
		require.Equal(t, page.Executions[1].ID, page.Next)
		page, err = s.List(ctx, ListRequest{Limit: 2, Before: page.Next})
		require.NoError(t, err)
		require.Len(t, page.Executions, 1)
		require.Zero(t, page.Next)
		instances, err := s.Instances(ctx, InstancesRequest{Limit: 2})
		require.NoError(t, err)
		require.Len(t, instances.Instances, 2)
		instances, err = s.Instances(ctx, InstancesRequest{Limit: 1, Before: instances.Next})
		require.NoError(t, err)
		require.Len(t, instances.Instances, 1)
		require.Zero(t, instances.Next)
		running, err := s.List(ctx, ListRequest{Running: true})
		require.NoError(t, err)
		data, err := json.Marshal(running)
		require.NoError(t, err)
		require.JSONEq(t, `{"executions": []}`, string(data), "a list is never null")
	})
}

func TestARequestThatCannotBeAnsweredSaysWhatIsAllowed(t *testing.T) {
	t.Parallel()
	e, ctx := testengine.New(t, testdb.SQLite(t)), t.Context()
	s, err := New(Config{Repository: e.Repository.Ports()})
	require.NoError(t, err)
	refused := func(_ any, err error) string {
		var wrong *RequestError
		require.ErrorAs(t, err, &wrong)
		return err.Error()
	}
	require.Equal(t, "statuses ODD: no such status (allowed: STARTING, STARTED, PARKED, STOPPING, STOPPED, COMPLETED, FAILED, ABANDONED, UNKNOWN)",
		refused(s.List(ctx, ListRequest{Statuses: []core.Status{"ODD"}})))
	require.Equal(t, "limit -1: it must be at least 1", refused(s.List(ctx, ListRequest{Limit: -1})))
	require.Equal(t, "running true: statuses are set as well: set only one of them", refused(s.List(ctx, ListRequest{Running: true, Statuses: []core.Status{core.StatusFailed}})))
	require.Equal(t, "limit -1: it must be at least 1", refused(s.Instances(ctx, InstancesRequest{Limit: -1})))
	require.Equal(t, "phase odd: no such phase (allowed: read, process, write)", refused(s.Skips(ctx, SkipsRequest{Phase: "odd"})))
	require.Equal(t, "file: a dry run needs a job file", refused(s.Plan(ctx, PlanRequest{})))
	for _, err := range []error{
		second(s.Show(ctx, ShowRequest{Execution: 9})), second(s.Explain(ctx, ExplainRequest{Execution: 9})), second(s.Skips(ctx, SkipsRequest{Execution: 9})),
		second(s.Skip(ctx, 9)), second(s.ExportSkips(ctx, SkipsRequest{Execution: 9}, nil)), second(s.Summary(ctx, SummaryRequest{Execution: 9})),
	} {
		require.ErrorIs(t, err, core.ErrNotFound)
	}
}

func second[T any](_ T, err error) error { return err }

func TestASummaryHasEachStepOnce(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e, ctx := testengine.New(t, url), t.Context()
		s, err := New(Config{Repository: e.Repository.Ports()})
		require.NoError(t, err)
		rounds, broken := 0, true
		reads := func() (item.ItemReader[int], item.ItemProcessor[int, int], item.ItemWriter[int]) {
			return &gated{n: 3}, even{}, nowhere{}
		}
		once := e.Tasklet("once", tx.Attr{}, func(context.Context, *core.StepContribution) error { return nil })
		load := testengine.Chunk(e, "load", 2, reads)
		load.AllowStartIfComplete = true
		to := func(name string) model.Target { return model.Target{Kind: model.TargetElement, Name: name} }
		load.Next = []model.Transition{{Pattern: core.ExitCompleted, Target: to("again")}}
		again := &model.DecisionElement{Name: "again", Decide: func(context.Context, *core.View) (string, error) {
			if rounds++; rounds%3 == 0 {
				return "DONE", nil
			}
			return "MORE", nil
		}, Next: []model.Transition{{Pattern: "MORE", Target: to("load")}, {Pattern: "DONE", Target: to("end")}}}
		last := e.Tasklet("end", tx.Attr{}, func(context.Context, *core.StepContribution) error {
			if broken {
				return errors.New("the printer is on fire")
			}
			return nil
		})
		j := testengine.Job("looped", once, load)
		j.Flow.Elements = append(j.Flow.Elements, again, last)

		exec := e.Run(j)
		require.Equal(t, core.StatusFailed, exec.Status, exec.Error)
		view, err := s.Summary(ctx, SummaryRequest{Execution: exec.ID})
		require.NoError(t, err)
		require.Equal(t, []string{"once", "load", "end"}, stepNames(view.Steps))
		require.Equal(t, []int64{3, 9}, []int64{int64(view.Steps[1].Rounds), view.Steps[1].Read}, "three rounds of three items")
		shown, err := s.Show(ctx, ShowRequest{Execution: exec.ID})
		require.NoError(t, err)
		require.Equal(t, []string{"once", "load", "load", "load", "end"}, stepNames(shown.Steps), "the page has each round")

		broken = false
		restarted := e.Run(j)
		require.Equal(t, core.StatusCompleted, restarted.Status, restarted.Error)
		var passed []core.StepExecution
		for _, event := range e.Events() {
			if p, ok := event.(core.StepPassed); ok {
				passed = append(passed, p.Step, p.Step)
			}
		}
		ran, err := e.Repository.Steps(ctx, restarted.ID)
		require.NoError(t, err)
		// For a step that was passed and then ran again, the run counts.
		passed = append(passed, core.StepExecution{ID: 1, JobExecutionID: exec.ID, Name: ran[0].Name})
		view, err = s.Summary(ctx, SummaryRequest{Execution: restarted.ID, Passed: passed})
		require.NoError(t, err)
		names := stepNames(view.Steps)
		require.Equal(t, "once", names[0])
		require.Equal(t, exec.ID, view.Steps[0].Execution)
		seen := map[string]bool{}
		for _, name := range names {
			require.False(t, seen[name], "%s is there twice: %v", name, names)
			seen[name] = true
		}
		for _, step := range view.Steps {
			if step.Step == ran[0].Name {
				require.Equal(t, restarted.ID, step.Execution)
			}
		}
	})
}

func stepNames(steps []StepView) []string {
	var names []string
	for _, s := range steps {
		names = append(names, s.Step)
	}
	return names
}

func TestPartitionsBelongToTheRoundBeforeThem(t *testing.T) {
	t.Parallel()
	step := func(id core.StepExecutionID, name string, status core.Status) core.StepExecution {
		return core.StepExecution{ID: id, JobExecutionID: 1, Name: name, Status: status}
	}
	s, err := New(Config{Repository: ports.Repository{Explorer: &counting{}}})
	require.NoError(t, err)
	steps := splitPartitions([]core.StepExecution{
		step(1, "load", core.StatusCompleted), step(2, "load:a", core.StatusCompleted), step(3, "load:b", core.StatusCompleted),
		step(4, "load", core.StatusFailed), step(5, "load:a", core.StatusFailed), step(6, "odd:name", core.StatusCompleted),
	})
	require.Len(t, steps, 3)
	first, second := s.runs.view.partitionedView(steps[0]), s.runs.view.partitionedView(steps[1])
	require.Equal(t, map[core.Status]int{core.StatusCompleted: 2}, first.Partitions.Statuses)
	require.Empty(t, first.Partitions.List, "none failed")
	require.Equal(t, 1, second.Partitions.Total)
	require.Equal(t, "load:a", second.Partitions.List[0].Step)
	require.Nil(t, s.runs.view.partitionedView(steps[2]).Partitions, "its step is not there")
}

func TestAnExportIsReadBackAsItWasEdited(t *testing.T) {
	t.Parallel()
	s, ctx := newScene(t, testdb.SQLite(t)), t.Context()
	s.write("copy.yaml", copyJob)
	s.write("in.csv", numberedLines(8, 3, 6))
	exec := s.run("copy.yaml", map[string]string{"year": "1995"})
	var export bytes.Buffer
	n, err := s.s.ExportSkips(ctx, SkipsRequest{Execution: exec.ID, Limit: 7, After: 99}, &export)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	edited := strings.Replace(export.String(), `"item":null`, `"item":{"id":3}`, 1)
	items, err := ReadExport("skipped.jsonl", strings.NewReader(edited+"\n"))
	require.NoError(t, err)
	require.JSONEq(t, `{"id":3}`, string(items[1].Item))
	require.Equal(t, "bad", *items[1].Raw)

	_, err = ReadExport("skipped.jsonl", strings.NewReader(edited+edited+"{}\n{\"odd\": 1}\n{\"id\": 7} 8\n"))
	require.EqualError(t, err, strings.Join([]string{
		"skipped.jsonl:2: skipped item 1 is already in line 1",
		`skipped.jsonl:3: "id" is missing: the number of the skipped item`,
		`skipped.jsonl:4: not a line of an export: json: unknown field "odd"`,
		"skipped.jsonl:5: not a line of an export: unexpected text after the JSON object",
	}, "\n"))
	_, err = ReadExport("skipped.jsonl", strings.NewReader("\n"))
	require.ErrorIs(t, err, ErrEmptyExport)
}

func TestADryRunIsAView(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, ctx := newScene(t, url), t.Context()
		s.write("copy.yaml", copyJob)
		s.write("in.csv", numberedLines(8, 3))
		plan, err := s.s.Plan(ctx, PlanRequest{File: filepath.Join(s.dir, "copy.yaml"), Params: map[string]string{"year": "1995"}, Sample: 4})
		require.NoError(t, err)
		s.matches("plan", plan)
		require.Empty(t, s.executions())
		require.NoFileExists(t, filepath.Join(s.dir, "out.csv"))
		_, err = s.s.Plan(ctx, PlanRequest{File: filepath.Join(s.dir, "copy.yaml")})
		require.ErrorAs(t, err, new(*ports.ParameterError))
	})
}

func TestProgressIsAView(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s, ctx := newScene(t, url), t.Context()
		r := &gated{n: 10, at: map[int]bool{4: true}, reached: make(chan int), gate: make(chan struct{})}
		over := make(chan error)
		go func() {
			_, err := s.e.Launcher.Run(ctx, watchedJob(s.e, r), numbered(t, 1), nil)
			over <- err
		}()
		<-r.reached
		views, err := s.s.Progress(ctx, ProgressRequest{})
		require.NoError(t, err)
		s.matches("progress", views)
		shown, err := s.s.Show(ctx, ShowRequest{Execution: 1})
		require.NoError(t, err)
		require.NotNil(t, shown.Owner)
		s.matches("running", shown)
		explained, err := s.s.Explain(ctx, ExplainRequest{Execution: 1})
		require.NoError(t, err)
		require.Equal(t, refusal.Running, explained.Refused)
		require.Equal(t, []Action{{Kind: refusal.ActWatch, Job: "watched"}, {Kind: refusal.ActStop, Execution: 1}}, explained.Actions)
		require.Equal(t, LeaseHeld, explained.Lease)
		r.gate <- struct{}{}
		require.NoError(t, <-over)
	})
}

func TestTheViewsKnowAnOwnerThatIsGone(t *testing.T) {
	t.Parallel()
	e, ctx := testengine.New(t, testdb.SQLite(t)), t.Context()
	_, err := e.Repository.Launch(ctx, ports.LaunchRequest{JobName: "j", Owner: core.Owner{Host: "far", PID: 7, Nonce: "secret"}, Lease: time.Minute})
	require.NoError(t, err)
	dead := false
	s, err := New(Config{
		Repository: e.Repository.Ports(), Registry: newScene(t, testdb.SQLite(t)).registry,
		Dead: func(core.Owner) bool { return dead },
	})
	require.NoError(t, err)
	look := func() (Lease, []Action) {
		views, err := s.Progress(ctx, ProgressRequest{})
		require.NoError(t, err)
		require.Len(t, views, 1)
		explained, err := s.Explain(ctx, ExplainRequest{Execution: 1})
		require.NoError(t, err)
		require.Equal(t, views[0].Lease, explained.Lease)
		require.Equal(t, dead, views[0].Owner.Dead)
		return explained.Lease, explained.Actions
	}
	lease, _ := look()
	require.Equal(t, LeaseHeld, lease)
	e.Exec("UPDATE surfin_job_execution SET lease_until = created_at - 1000000")
	lease, actions := look()
	require.Equal(t, LeaseExpired, lease)
	require.Equal(t, refusal.ActRecover, actions[0].Kind)
	dead = true
	lease, _ = look()
	require.Equal(t, LeaseDead, lease)
}
