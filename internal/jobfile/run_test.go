package jobfile_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

func parse(t testing.TB, path, text string) *jobfile.File {
	t.Helper()
	file, err := jobfile.Parse(path, []byte(text), described(t))
	require.NoError(t, err)
	return file
}

type scene struct {
	*testengine.Engine
	*bench
	file *jobfile.File
	job  *model.Job
}

func newScene(t *testing.T, url, path, text string) *scene {
	t.Helper()
	s := &scene{Engine: testengine.New(t, url), bench: &bench{}, file: parse(t, path, text)}
	var err error
	s.job, err = s.file.Compile(jobfile.Deps{Provider: s.Provider, Registry: s.registry(t)})
	require.NoError(t, err)
	return s
}

func (s *scene) launch(t *testing.T, given map[string]string) (*core.JobExecution, error) {
	t.Helper()
	params, err := job.ValidateParameters(s.file.Parameters(), given)
	require.NoError(t, err)
	return s.Launcher.Run(t.Context(), s.job, params, nil)
}

const everyValue = `
job: values
parameters:
  n: {type: int}
  day: {type: date, default: 2026-11-20}
  name: {type: string, default: "007"}
  ratio: {type: float, default: 0.5}
  on: {type: bool, default: true}
  wait: {type: duration, default: 90s}
  none: {type: string, required: false}
flow:
- step: first
  tasklet:
    note: {text: NO, count: -12, limit: 10MB, out: {rows: int, day: date, ratio: float null}}
- step: second
  tasklet:
    note:
      text: ${params.day}
      count: ${steps.first.out.rows + 1}
      small: ${params.n}
      many: ${job.execution}
      ratio: ${params.n}
      on: ${params.on and params.n > 1}
      wait: ${params.wait}
      limit: ${params.n * 1024}
      args: ["${params.name}-$${x}-${params.ratio}", "${params.none ?? 'nothing'}", "${steps.first.status}/${steps.first.exit}", $5]
      env: {DAY: "${steps.first.out.day}", JOB: "${job.name}"}
      sql: |
        update t set day = ${params.day}, n = ${params.n}
        where s = '$${literal}' and x = ${params.none} and r = ${steps.first.out.ratio}
      inner: {level: "${params.n > 1 ? 'high' : 'low'}"}
      maybe: 3
`

func TestConfigsAreBoundWithTheValuesOfLaunchAndEarlierSteps(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, "job.yaml", everyValue)
		s.out = map[string]any{"rows": int64(41), "day": core.Date(3), "ratio": 1.25}
		exec, err := s.launch(t, map[string]string{"n": "7"})
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Len(t, s.notes, 2)
		first, second := s.notes[0], s.notes[1]

		require.Equal(t, "NO", first.Text, "a text is read as written")
		require.Equal(t, -12, first.Count)
		require.Equal(t, registry.Size(10<<20), first.Limit)
		require.Equal(t, noteInner{Level: "low", Names: []int{1, 2}}, first.Inner, "defaults inside of what is not there")

		require.Equal(t, "2026-11-20", second.Text)
		require.Equal(t, 42, second.Count)
		require.Equal(t, int8(7), second.Small)
		require.Equal(t, uint16(exec.ID), second.Many)
		require.InDelta(t, 7, second.Ratio, 0)
		require.True(t, second.On)
		require.Equal(t, 90*time.Second, second.Wait)
		require.Equal(t, registry.Size(7<<10), second.Limit)
		require.Equal(t, []string{"007-${x}-0.5", "nothing", "COMPLETED/COMPLETED", "$5"}, second.Args)
		require.Equal(t, map[string]string{"DAY": "1970-01-04", "JOB": "values"}, second.Env)
		require.Equal(t, "high", second.Inner.Level)
		require.Equal(t, []int{1, 2}, second.Inner.Names)
		require.Equal(t, 3, *second.Maybe)
		day, err := core.ParseParameter(core.TypeDate, "2026-11-20")
		require.NoError(t, err)
		require.Equal(t, []any{day, int64(7), nil, 1.25}, second.SQL.Args)
		require.Equal(t, "update t set day = ?, n = ?\nwhere s = '${literal}' and x = ? and r = ?\n", second.SQL.String())
	})
}

func TestAChunkStepRunsTheComponentsOfTheFile(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, "job.yaml", `
job: counting
parameters: {to: {type: int}}
types: {pair: {n: int, text: string}}
flow:
- step: load
  chunk:
    size: 2
    reader: {count: {from: 2, to: "${params.to}", label: "to ${params.to}", item: pair}}
    writer: [sink: all, sink: {name: again, mode: upsert}]
`)
		exec, err := s.launch(t, map[string]string{"to": "4"})
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, []string{
			"n=2 text=to 4 ", "n=3 text=to 4 ", "n=2 text=to 4 ", "n=3 text=to 4 ", "n=4 text=to 4 ", "n=4 text=to 4 ",
		}, s.rows)
		step := s.Step(exec, "load")
		require.EqualValues(t, 3, step.Counters.Read)
		require.EqualValues(t, 2, step.Counters.Commit)
		require.Len(t, s.uses, 3)
		for _, use := range s.uses {
			require.Equal(t, "counting", use.Job)
			require.Equal(t, "load", use.Step)
			require.Equal(t, exec.ID, use.Execution)
			require.Equal(t, "default", use.Database)
		}
	})
}

func TestALaunchWithAValueThatDoesNotFitIsRefusedWithThePosition(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), "job.yaml", `
job: refused
parameters:
  big: {type: int}
  to: {type: int, default: 5}
flow:
- step: a
  tasklet: {note: {small: "${params.big}", text: "${env.SURFIN_TEST_NOT_SET}", limit: "${params.big}KB"}}
- step: b
  chunk:
    reader: {count: {from: 3, to: "${params.to}"}}
    writer: {sink: {name: x, mode: "${params.big > 5 ? 'merge' : 'insert'}"}}
- step: c
  tasklet: {note: {count: "${steps.a.read}"}}
`)
	exec, err := s.launch(t, map[string]string{"big": "300", "to": "1"})
	require.Nil(t, exec)
	var problems jobfile.Problems
	require.ErrorAs(t, err, &problems)
	require.Equal(t, `job.yaml:8:27: small: 300 is out of range
    8 |   tasklet: {note: {small: "${params.big}", text: "${env.SURFIN_TEST_NOT_SET}", limit: "${params.big}KB"}}
      |                           ^
job.yaml:8:50: text: the environment variable SURFIN_TEST_NOT_SET is not set
    8 |   tasklet: {note: {small: "${params.big}", text: "${env.SURFIN_TEST_NOT_SET}", limit: "${params.big}KB"}}
      |                                                  ^
job.yaml:11:35: reader count: to: 1 is less than from
   11 |     reader: {count: {from: 3, to: "${params.to}"}}
      |                                   ^
job.yaml:12:36: mode: "merge" is not allowed
   12 |     writer: {sink: {name: x, mode: "${params.big > 5 ? 'merge' : 'insert'}"}}
      |                                    ^ allowed: insert, upsert`, problems.Error())
	require.Empty(t, s.uses, "nothing was made")
	executions, err := s.Repository.Executions(t.Context(), ports.ExecutionFilter{})
	require.NoError(t, err)
	require.Empty(t, executions, "there is no execution of a refused launch")
}

func TestAnExpressionOverAStepThatDidNotRunFailsTheStep(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), "job.yaml", `
job: skipped
flow:
- step: a
  tasklet: note
  next: {RARE: b, "*": c}
- step: b
  tasklet: idle
- step: c
  tasklet: {note: {count: "${steps.b.read}"}}
`)
	exec, err := s.launch(t, nil)
	require.NoError(t, err)
	require.Equal(t, core.StatusFailed, exec.Status)
	require.Contains(t, exec.Error, "job.yaml:10:27: count: ${steps.b.read}: step b has not run")
}

func TestPathsAreRelativeToTheFileAndStoredRelativeToItWhereInside(t *testing.T) {
	t.Parallel()
	text := `
job: paths
parameters:
  input: {type: path, default: ../data/in.csv}
  folder: {type: path, default: /var/data}
  name: {type: string, default: report}
flow:
- step: a
  tasklet:
    note:
      path: ${params.input}
      paths: [out.csv, "out/${params.name}.csv", "${params.folder}/*.gz", "${params.name}/x", /abs/y, "${params.input ?? 'x'}"]
      text: ${params.input} and ../data
`
	run := func(given, stored map[string]string) *noteConfig {
		s := newScene(t, testdb.SQLite(t), filepath.Join("some", "jobs", "job.yaml"), text)
		exec, err := s.launch(t, given)
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		for name, want := range stored {
			value, _ := exec.Params.Get(name)
			require.Equal(t, want, value.Value, name)
		}
		return s.notes[0]
	}
	at := func(path string) string {
		abs, err := filepath.Abs(path)
		require.NoError(t, err)
		return abs
	}
	outside := at("some/data/in.csv")
	byDefault := run(nil, map[string]string{"input": outside, "folder": "/var/data"})
	require.Equal(t, outside, byDefault.Path)
	require.Equal(t, []string{"some/jobs/out.csv", "some/jobs/out/report.csv", "/var/data/*.gz", "some/jobs/report/x", "/abs/y", outside}, byDefault.Paths)
	require.Equal(t, outside+" and ../data", byDefault.Text)

	given := run(map[string]string{"input": "./a/../in.csv", "folder": at("some/jobs/sub") + "/"}, map[string]string{"input": "in.csv", "folder": "sub"})
	require.Equal(t, "some/jobs/in.csv", given.Path, "messages name it as the working directory sees it")
	require.Equal(t, "some/jobs/sub/*.gz", given.Paths[2])
	require.Equal(t, at("some/jobs/in.csv")+" and ../data", given.Text, "an expression has it absolute")
}

func TestAFailureTakesItsNamedTransitionAndCompletesTheJob(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), "job.yaml", `
job: rescue
flow:
- step: work
  tasklet: note
  next: {FAILED: tell}
- step: rest
  tasklet: note
  next: end
- step: tell
  tasklet: {note: {text: "${steps.work.status}"}}
  next: {FAILED: {fail: {exit: LOUD}}}
`)
	s.fail = errors.New("no luck")
	exec, err := s.launch(t, nil)
	require.NoError(t, err)
	require.Len(t, s.notes, 2, "work, then tell")
	require.Equal(t, "FAILED", s.notes[1].Text)
	require.Equal(t, core.StatusFailed, exec.Status)
	require.Equal(t, "LOUD", exec.ExitCode)
}

func TestACompiledFileCarriesItsTextAndParameters(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), "job.yaml", everyValue)
	require.Equal(t, everyValue, s.job.Definition.Text)
	require.Len(t, s.job.Definition.Hash, 64)
	require.Equal(t, "values", s.job.Name)
	require.True(t, s.job.Restartable)
	require.Equal(t, []string{"first", "second"}, s.file.Steps())
	require.Equal(t, "default", s.file.Database())
	specs := s.file.Parameters()
	require.Len(t, specs, 7)
	require.Equal(t, core.ParameterSpec{Name: "n", Type: core.TypeInt, Required: true, Identifying: true}, specs[0])
	require.Equal(t, core.ParameterSpec{Name: "none", Type: core.TypeString, Identifying: true}, specs[6])
	require.NoError(t, s.job.Bind(context.Background(), mustParams(t, specs, map[string]string{"n": "3"})))
}

func mustParams(t *testing.T, specs []core.ParameterSpec, given map[string]string) core.Parameters {
	t.Helper()
	params, err := job.ValidateParameters(specs, given)
	require.NoError(t, err)
	return params
}
