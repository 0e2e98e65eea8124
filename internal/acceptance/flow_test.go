package acceptance

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

var inEveryExecution = []string{"journal_table", "journal", "alarm"}

func newFlowScene(t *testing.T, url string) *scene {
	t.Helper()
	s := newScene(t, url, nil)
	for _, file := range []string{"jobs/flow.yaml", "jobs/flow_child.yaml", "example/birdstrikes/data/birdstrikes.csv"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(s.dir, filepath.Dir(file)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, file), text, 0o600))
	}
	return s
}

func TestAFlowEndsAsIfNothingWasThoughTheProcessIsKilled(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		kills, random := killsOf(t, 5, 1, 3)
		s := newFlowScene(t, url)
		began := time.Now()
		code, out := s.run("run", "jobs/flow.yaml", "run=1")
		require.Zero(t, code, out)
		killer := &flowKiller{random: random, took: time.Since(began), steps: startedIn(out)}
		require.Len(t, killer.steps, 14)
		db, r := s.open()
		want := s.flowTraces(db, r, 1)
		require.Len(t, want.tables["flow_costs"], 83)
		require.Len(t, want.steps, 20, "14 that started, 4 partitions, 2 that were passed by")
		require.Len(t, want.skips, 8)
		for run := int64(2); kills > 0; run++ {
			kills -= killer.completes(s, run, kills)
			want.assertEqual(t, run, s.flowTraces(db, r, run))
			s.assertOnce(r, run)
		}
	})
}

func startedIn(log string) (steps []string) {
	for line := range strings.Lines(log) {
		if _, step, ok := strings.Cut(line, "step started step="); ok {
			steps = append(steps, strings.TrimSpace(step))
		}
	}
	return steps
}

type flowKiller struct {
	random *rand.Rand
	took   time.Duration // by an undisturbed run
	steps  []string
}

// completes runs an instance to its end and returns how often it killed it.
// Half of the kills are at any moment of the process, half soon after some
// step began, as most steps are short.
func (k *flowKiller) completes(s *scene, run int64, most int) (kills int) {
	s.t.Helper()
	for {
		p := s.start("run", "jobs/flow.yaml", fmt.Sprint("run=", run))
		if kills < most {
			wait := time.Duration(k.random.Int64N(int64(k.took)))
			if k.random.IntN(2) == 0 {
				p.await("step=" + k.steps[k.random.IntN(len(k.steps))])
				wait = time.Duration(k.random.IntN(20_000)) * time.Microsecond
			}
			if !p.waitFor(wait) && k.random.IntN(6) == 0 {
				p.signal(syscall.SIGTERM)
				p.waitFor(time.Duration(k.random.IntN(20_000)) * time.Microsecond)
			}
			p.signal(syscall.SIGKILL)
		}
		code, out := p.wait()
		switch {
		case code == -1:
			kills++
		case isComplete(code, out):
			return kills
		default:
			require.Equal(s.t, 3, code, "it was neither killed nor stopped, and failed:\n%s", out)
		}
	}
}

// flowTraces holds all results of a run of jobs/flow.yaml, without ids, times and the number of attempts.
type flowTraces struct {
	tables  map[string][]string
	file    string
	steps   map[string]stepTraces
	gate    string
	skips   []string
	decided map[string]string // by the key in the job's context
	journal []string          // the last entries of the newest execution
}

func (want flowTraces) assertEqual(t *testing.T, run int64, got flowTraces) {
	t.Helper()
	for name, rows := range want.tables {
		require.Equal(t, rows, got.tables[name], "run %d, table %s", run, name)
	}
	for name, step := range want.steps {
		require.Equal(t, step, got.steps[name], "run %d, step %s", run, name)
	}
	require.Len(t, got.steps, len(want.steps), "run %d", run)
	want.tables, want.steps, got.tables, got.steps = nil, nil, nil, nil
	require.Equal(t, want, got, "run %d", run)
}

type stepTraces struct {
	status core.Status
	exit   string
	total  core.Counters
	gate   string
	out    map[string]any
}

func (s *scene) flowTraces(db tx.Database, r *repository.Repository, run int64) flowTraces {
	s.t.Helper()
	ctx := context.Background()
	trace := flowTraces{tables: map[string][]string{}, steps: map[string]stepTraces{}}
	for table, columns := range map[string]string{
		"flow_strikes": "line, airport, cast(date as text), species, cost", "flow_airports": "airport, state",
		"flow_costs": "line, cost, part", "flow_species": "species, strikes, cost",
		"flow_by_airport": "airport, strikes", "flow_rank": "species, strikes",
		fmt.Sprint("flow_result where run = ", run): "strikes, skipped, costs, airports, species",
	} {
		name, _, _ := strings.Cut(table, " ")
		trace.tables[name] = s.lines(db, fmt.Sprintf("select %s from %s order by 1", columns, table))
		require.NotEmpty(s.t, trace.tables[name], table)
	}
	trace.file = s.read(fmt.Sprintf("jobs/out/flow_%d.csv", run))
	require.False(s.t, s.exists(fmt.Sprintf("jobs/out/flow_%d.csv.part", run)))

	for _, name := range []string{"flow", "flow_report"} {
		for _, e := range s.attempts(r, name, run) {
			steps, err := r.Steps(ctx, e.ID)
			require.NoError(s.t, err)
			for _, step := range steps {
				trace.steps[step.Name] = traceOf(step)
			}
			skips, err := r.SkippedItems(ctx, ports.SkipFilter{Execution: e.ID, Limit: 100})
			require.NoError(s.t, err)
			for _, skip := range skips {
				trace.skips = append(trace.skips, fmt.Sprint(skip.Meta.Line, " ", skip.Class, " ", string(skip.Item)))
			}
			if name == "flow" {
				trace.gate, trace.decided = e.Gate, decided(e.Context)
				trace.journal = s.lines(db, fmt.Sprintf("select status, failed_step from flow_journal where execution = %d", e.ID))
			}
		}
	}
	slices.Sort(trace.skips)
	return trace
}

func traceOf(step core.StepExecution) stepTraces {
	total := step.Total()
	total.Commit = 0   // a stop ends a chunk between two reads (rule C14), so there may be more commits
	total.Rollback = 0 // a chunk in progress may have been undone
	if step.Name == "tables" {
		total.Write = 0 // the rows of the previous run
	}
	out := maps.Clone(step.Out)
	delete(out, "execution")
	return stepTraces{status: step.Status, exit: step.ExitCode, total: total, gate: step.Gate, out: out}
}

func decided(c *core.ExecutionContext) map[string]string {
	verdicts := map[string]string{}
	for _, key := range c.Keys() {
		value, _ := c.Get(key)
		_, verdicts[key], _ = strings.Cut(fmt.Sprint(value), " ")
	}
	return verdicts
}

func (s *scene) attempts(r *repository.Repository, job string, run int64) (list []core.JobExecution) {
	s.t.Helper()
	executions, err := r.Executions(context.Background(), ports.ExecutionFilter{JobName: job, Limit: 1000})
	require.NoError(s.t, err)
	for _, e := range slices.Backward(executions) {
		if p, _ := e.Params.Get("run"); p.Value == run {
			list = append(list, e)
		}
	}
	require.NotEmpty(s.t, list, job)
	return list
}

func (s *scene) lines(db tx.Database, query string) (list []string) {
	s.t.Helper()
	rows, err := db.Conn().QueryContext(context.Background(), query)
	require.NoError(s.t, err)
	defer rows.Close()
	columns, err := rows.Columns()
	require.NoError(s.t, err)
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		require.NoError(s.t, rows.Scan(into...))
		list = append(list, fmt.Sprint(values...))
	}
	require.NoError(s.t, rows.Err())
	return list
}

func (s *scene) assertOnce(r *repository.Repository, run int64) {
	s.t.Helper()
	for _, job := range []string{"flow", "flow_report"} {
		completed := map[string]core.JobExecutionID{}
		attempts := s.attempts(r, job, run)
		for i, e := range attempts {
			require.Equal(s.t, attempts[0].InstanceID, e.InstanceID)
			require.Equal(s.t, i+1, e.Attempt)
			if i < len(attempts)-1 {
				require.Contains(s.t, []core.Status{core.StatusFailed, core.StatusStopped}, e.Status, "execution %d", e.ID)
			} else {
				require.Equal(s.t, core.StatusCompleted, e.Status, "execution %d", e.ID)
			}
			s.assertNoneAgain(r, e.ID, completed)
		}
	}
}

// assertNoneAgain checks the steps of an execution against those that completed before.
func (s *scene) assertNoneAgain(r *repository.Repository, id core.JobExecutionID, completed map[string]core.JobExecutionID) {
	s.t.Helper()
	steps, err := r.Steps(context.Background(), id)
	require.NoError(s.t, err)
	for _, step := range steps {
		require.Contains(s.t, []core.Status{core.StatusCompleted, core.StatusFailed, core.StatusStopped}, step.Status, "step %s of execution %d", step.Name, id)
		before, again := completed[step.Name]
		if again && !slices.Contains(inEveryExecution, step.Name) {
			require.Fail(s.t, "a step that had completed ran again", "%s completed in execution %d, and ran in %d", step.Name, before, id)
		}
		if step.Status == core.StatusCompleted {
			completed[step.Name] = id
		}
	}
}
