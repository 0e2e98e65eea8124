package operator

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const pathJob = `job: load
parameters:
  input: {type: string}
flow:
- step: make
  tasklet: {sql: create table if not exists loaded (id int)}
- step: load
  chunk: {reader: {csv: {path: "${params.input}", item: {id: int}}}, writer: {table: loaded}}
`

func TestThreeSpellingsOfAPathAreOneInstance(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		s.write("jobs/load.yaml", pathJob)
		s.write("jobs/data/in.csv", numberedLines(2))
		file := filepath.Join(s.dir, "jobs", "load.yaml")
		exec, err := s.s.Run(t.Context(), RunRequest{File: file, Params: map[string]string{"input": "data/in.csv"}})
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)

		given := core.Parameter{Name: "input", Type: core.TypePath, Value: "./data/in.csv", Identifying: true}
		exactly, err := core.NewParameters(given)
		require.NoError(t, err)
		for _, req := range []RunRequest{
			{Params: map[string]string{"input": "./data/in.csv"}},
			{Params: map[string]string{"input": filepath.Join(s.dir, "jobs", "data", "in.csv")}},
			{Params: map[string]string{"input": s.dir + "/./jobs//data/../data/in.csv"}},
			{Params: map[string]string{"input": "jobs/data/in.csv"}, Folder: s.dir},
			{Params: map[string]string{"input": "in.csv"}, Folder: filepath.Join(s.dir, "jobs", "data")},
			{Exactly: &exactly},
		} {
			req.File = file
			_, err := s.s.Run(t.Context(), req)
			var refused *Refusal
			require.ErrorAs(t, err, &refused, "%v", req.Params)
			require.Equal(t, refusal.Complete, refused.Reason)
		}
		require.Len(t, s.executions(), 1)
		require.Equal(t, int64(2), s.e.Ints("select count(*) from loaded")[0])
		stored, _ := s.executions()[0].Params.Get("input")
		require.Equal(t, "data/in.csv", stored.Value)
		require.Equal(t, filepath.Join(s.dir, "jobs", "data", "in.csv"), stored.Path)
	})
}

func TestAPathOutsideOfTheFolderIsStoredAbsoluteAndLinksStay(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t))
	s.write("jobs/load.yaml", pathJob)
	s.write("data/in.csv", numberedLines(2))
	require.NoError(t, os.Symlink("../data", filepath.Join(s.dir, "jobs", "link")))
	file := filepath.Join(s.dir, "jobs", "load.yaml")
	for input, want := range map[string]string{
		"../data/in.csv": filepath.Join(s.dir, "data", "in.csv"),
		"link/in.csv":    "link/in.csv",
	} {
		exec, err := s.s.Run(t.Context(), RunRequest{File: file, Params: map[string]string{"input": input}})
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		stored, _ := exec.Params.Get("input")
		require.Equal(t, want, stored.Value)
	}
}

func (s *scene) moveAfterFailure(input string) (failed core.JobExecutionID, file string) {
	s.t.Helper()
	s.write("jobs/load.yaml", pathJob)
	s.write("jobs/data/in.csv", numberedLines(3, 2))
	exec, err := s.s.Run(s.t.Context(), RunRequest{File: filepath.Join(s.dir, "jobs", "load.yaml"), Params: map[string]string{"input": input}})
	require.NoError(s.t, err)
	require.Equal(s.t, core.StatusFailed, exec.Status)
	require.NoError(s.t, os.Rename(filepath.Join(s.dir, "jobs"), filepath.Join(s.dir, "moved")))
	s.write("moved/data/in.csv", numberedLines(3))
	return exec.ID, filepath.Join(s.dir, "moved", "load.yaml")
}

func TestAJobThatWasMovedContinuesWithANote(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		failed, file := s.moveAfterFailure("data/in.csv")
		var notices []Notice
		exec, err := s.s.Run(t.Context(), RunRequest{
			File: file, Params: map[string]string{"input": "./data/in.csv"},
			Hooks: Hooks{OnNotice: func(n Notice) { notices = append(notices, n) }},
		})
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, 2, exec.Attempt)
		require.Equal(t, []Notice{{Kind: NoticeOtherFile, Execution: failed, File: file, Was: filepath.Join(s.dir, "jobs", "load.yaml"), WasGone: true}}, notices)
	})
}

func TestARestartKeepsThePathsThatIdentify(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t))
	s.write("moved/data/in.csv", numberedLines(3, 2))
	outside := filepath.Join(s.dir, "moved", "data", "in.csv")
	s.write("jobs/load.yaml", pathJob)
	failed, err := s.s.Run(t.Context(), RunRequest{File: filepath.Join(s.dir, "jobs", "load.yaml"), Params: map[string]string{"input": outside}})
	require.NoError(t, err)
	require.Equal(t, core.StatusFailed, failed.Status)

	// In its new folder the job would store the path relative.
	require.NoError(t, os.Rename(filepath.Join(s.dir, "jobs", "load.yaml"), filepath.Join(s.dir, "moved", "load.yaml")))
	s.write("moved/data/in.csv", numberedLines(3))
	running, err := s.s.Restart(t.Context(), RestartRequest{Execution: failed.ID, File: filepath.Join(s.dir, "moved", "load.yaml")})
	require.NoError(t, err)
	exec, err := running.Wait()
	require.NoError(t, err)
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	stored, _ := exec.Params.Get("input")
	require.Equal(t, outside, stored.Value)
}

func TestAnotherFileWithTheSameJobNameIsReportedWithBothPaths(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		s.write("a/load.yaml", pathJob)
		s.write("b/load.yaml", pathJob)
		s.write("a/in.csv", numberedLines(2))
		s.write("b/in.csv", numberedLines(2))
		s.write("b/other.csv", numberedLines(2))
		a, b := filepath.Join(s.dir, "a", "load.yaml"), filepath.Join(s.dir, "b", "load.yaml")
		require.NoError(t, os.Symlink(a, filepath.Join(s.dir, "a", "link.yaml")))
		run := func(file, input string) []Notice {
			t.Helper()
			var notices []Notice
			_, err := s.s.Run(t.Context(), RunRequest{
				File: file, Params: map[string]string{"input": input}, Hooks: Hooks{OnNotice: func(n Notice) { notices = append(notices, n) }},
			})
			if err != nil {
				var refused *Refusal
				require.ErrorAs(t, err, &refused)
				require.Equal(t, refusal.Complete, refused.Reason)
			}
			return notices
		}
		require.Empty(t, run(a, "in.csv"))
		require.Equal(t, []Notice{{Kind: NoticeOtherFile, Execution: 1, File: b, Was: a}}, run(b, "in.csv"), "the refusal is about an instance of the other file")
		require.Equal(t, []Notice{{Kind: NoticeOtherFile, Execution: 1, File: b, Was: a}}, run(b, "other.csv"), "another instance of the same job")
		require.Empty(t, run(b, "other.csv"))
		require.Empty(t, run(a, "in.csv"))
		require.Empty(t, run(filepath.Join(s.dir, "a", "link.yaml"), "in.csv"), "a link to the file is no other file")
	})
}

func TestThePathOfAChildJobBeginsAtTheFileThatGivesIt(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t))
	s.write("children/load.yaml", pathJob)
	s.write("data/in.csv", numberedLines(2))
	s.write("parent.yaml", `job: parent
parameters: {input: {type: string, default: data/in.csv}}
flow:
- job: load
  file: children/load.yaml
  parameters: {input: "${params.input}"}
- job: again
  file: children/load.yaml
  parameters: {input: ./children/in.csv}
`)
	s.write("children/in.csv", numberedLines(3))
	exec, err := s.s.Run(t.Context(), RunRequest{File: filepath.Join(s.dir, "parent.yaml"), Params: map[string]string{"input": "./data/in.csv"}})
	require.NoError(t, err)
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	require.Equal(t, int64(5), s.e.Ints("select count(*) from loaded")[0])
	stored := map[string]any{}
	for _, e := range s.executions() {
		p, _ := e.Params.Get("input")
		stored[p.Text()] = e.JobName
	}
	require.Equal(t, map[string]any{"data/in.csv": "parent", filepath.Join(s.dir, "data", "in.csv"): "load", "in.csv": "load"}, stored)
}

func TestAJobInNoFileStoresAbsolutePaths(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t))
	s.write("in.csv", numberedLines(2))
	exec, err := s.s.Run(t.Context(), RunRequest{
		Source: jobfile.Bytes("load", []byte(pathJob)), Params: map[string]string{"input": "in.csv"}, Folder: s.dir,
	})
	require.NoError(t, err)
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	stored, _ := exec.Params.Get("input")
	require.Equal(t, filepath.Join(s.dir, "in.csv"), stored.Value)
}
