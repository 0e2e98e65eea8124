package api_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/api"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const (
	outerJob = `job: outer
parameters: {input: {type: path, default: in.csv}, name: {type: string, default: in}, out: {type: string, default: OUTSIDE/default}}
flow:
- job: inner
  file: inner.yaml
  parameters: {file: "${params.name}.csv"}
- step: parts
  partition: {by: {files: "${params.name}*.csv"}, workers: 2}
  chunk:
    reader: {csv: {path: "${part.path}", item: {id: string}}}
    writer: {csv: {path: "parts-${part.name}.csv"}}
- step: load
  chunk:
    reader: {csv: {path: "${params.input}", item: {id: string}}}
    writer: {csv: {path: "${params.out}-${job.instance}.csv"}}
`
	innerJob = `job: inner
parameters: {file: {type: string}}
flow:
- step: load
  chunk:
    reader: {csv: {path: "${params.file}", item: {id: string}}}
    writer: {csv: {path: "inner-${job.instance}.csv"}}
`
)

// Rule SE3.
func TestPathsOfAClientStayBelowTheFoldersThatItMayName(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		scene := newScene(t, url)
		outside, allowed := t.TempDir(), t.TempDir()
		scene.write("outer.yaml", strings.ReplaceAll(outerJob, "OUTSIDE", outside))
		scene.write("inner.yaml", innerJob)
		for n := 2; n <= 4; n++ {
			scene.write(fmt.Sprintf("in%d.csv", n), "id\n1\n")
		}
		for _, dir := range []string{outside, allowed} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "in.csv"), []byte("id\n1\n"), 0o600))
		}
		require.NoError(t, os.Symlink(outside, filepath.Join(scene.dir, "link")))
		s := scene.serve(func(c *api.Config) { c.Paths = []string{allowed} })
		for _, params := range []string{
			fmt.Sprintf(`{"input": %q}`, filepath.Join(outside, "in.csv")), `{"input": "link/in.csv"}`, `{"input": "/proc/self/environ"}`, `{"input": "-"}`,
			fmt.Sprintf(`{"name": %q}`, filepath.Join(outside, "in")), `{"name": "link/in"}`,
		} {
			for _, act := range []string{"run", "plan"} {
				got := s.call("POST", "/v1/jobs/outer/"+act, `{"params": `+params+`}`)
				require.GreaterOrEqual(t, got.status, 400, params)
				require.Contains(t, got.text, "outside the folders that clients may use", params)
			}
		}
		require.Empty(t, s.executions(), "it was refused before there was an execution")
		for _, params := range []string{`{}`, `{"name": "in2"}`, fmt.Sprintf(`{"name": "in3", "input": %q}`, filepath.Join(allowed, "in.csv"))} {
			s.over(s.call("POST", "/v1/jobs/outer/run", `{"params": `+params+`}`).acted(true), core.StatusCompleted)
		}
		late := s.over(s.call("POST", "/v1/jobs/outer/run", fmt.Sprintf(`{"params": {"name": "in4", "out": %q}}`, filepath.Join(outside, "out"))).acted(true), core.StatusFailed)
		require.Contains(t, late.Error, "outside the folders that clients may use", "it is known when the step starts")
		matches, err := filepath.Glob(filepath.Join(outside, "out*"))
		require.NoError(t, err)
		require.Empty(t, matches)
		require.FileExists(t, filepath.Join(outside, "default-1.csv"), "a default of the job file passes")

		// The restrictions belong to the execution: they also hold for a restart by the command.
		require.NoError(t, os.Mkdir(filepath.Join(scene.dir, "late"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(scene.dir, "late/in.csv"), nil, 0o600))
		failed := s.over(s.call("POST", "/v1/jobs/outer/run", `{"params": {"name": "late/in"}}`).acted(true), core.StatusFailed)
		require.NoError(t, os.RemoveAll(filepath.Join(scene.dir, "late")))
		require.NoError(t, os.Symlink(outside, filepath.Join(scene.dir, "late")))
		_, err = s.app.Restart(t.Context(), operator.RestartRequest{Execution: core.JobExecutionID(failed.ID)})
		require.ErrorContains(t, err, "outside the folders that clients may use")
	})
}
