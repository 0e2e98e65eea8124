package api_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/api"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func confinedJobs(s *scene) {
	for name, flow := range map[string]string{
		"export":  `{step: s, chunk: {reader: {csv: {path: in.csv, item: {id: string}}}, writer: {csv: {path: "${params.path}"}}}}`,
		"itself":  `{step: s, chunk: {reader: {lines: {path: report.py}}, writer: {lines: {path: "${params.path}"}}}}`,
		"archive": `{step: s, tasklet: {files: {move: "${params.path}", to: archive, overwrite: true}}}`,
		"fetch":   `{step: s, tasklet: {files: {copy: "${params.path}", to: ., overwrite: true}}}`,
		"named":   `{step: s, tasklet: {files: {copy: in.csv, as: "${params.path}", overwrite: true}}}`,
		"drop":    `{step: s, tasklet: {files: {delete: "${params.path}"}}}`,
		"pack":    `{step: s, tasklet: {files: {gzip: "${params.path}", keep: true}}}`,
		"sums":    `{step: s, tasklet: {files: {checksum: in.csv, as: "${params.path}"}}}`,
		"parent":  `{job: export, file: export.yaml, parameters: {path: "${params.path}"}}`,
		"own":     `{step: s, tasklet: {files: {copy: "own/*.py", to: archive, overwrite: true}}}`,
	} {
		s.write(name+".yaml", "job: "+name+"\nparameters: {path: {type: string}}\nflow:\n- "+flow+"\n")
	}
}

func with(s *server, job, path string, refused bool) string {
	s.t.Helper()
	got := s.call("POST", "/v1/jobs/"+job+"/run", fmt.Sprintf(`{"params": {"path": %q}}`, path))
	if refused && got.status >= 400 {
		return got.text
	}
	want := core.StatusCompleted
	if refused {
		want = core.StatusFailed
	}
	require.Equal(s.t, http.StatusOK, got.status, "%s %s: %s", job, path, got.text)
	return s.over(got.acted(true), want).Error
}

func programFiles() []string {
	return []string{"report.py", "x.pl", "x.bash", "Makefile", "Dockerfile", ".env", "x.tmpl", "x.PY", "report.csv.py", "lib/report.py", "x.py.gz", "own/a.py", "x.sql"}
}

// Rule SE3.
func TestAClientDoesNotReplaceAScriptBesideTheJobFile(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		scene := newScene(t, url)
		confinedJobs(scene)
		allowed := t.TempDir()
		for _, dir := range []string{"lib", "own"} {
			require.NoError(t, os.Mkdir(filepath.Join(scene.dir, dir), 0o700))
		}
		for _, name := range programFiles() {
			scene.write(name, "as it was")
		}
		require.NoError(t, os.WriteFile(filepath.Join(allowed, "report.py"), []byte("evil"), 0o600))
		require.NoError(t, os.Symlink("report.py", filepath.Join(scene.dir, "harmless.csv")))
		s := scene.serve(func(c *api.Config) { c.Paths = []string{allowed} })
		for _, name := range append(programFiles(), "new.py", "new/Makefile") {
			for _, job := range []string{"export", "itself", "named"} {
				require.Contains(t, with(s, job, name, true), "api.paths", "%s %s", job, name)
			}
		}
		require.Contains(t, with(s, "export", "harmless.csv", true), "api.paths", "a link to a script")
		for _, name := range programFiles() {
			require.Contains(t, with(s, "archive", name, true), "api.paths", "move %s", name)
			require.Contains(t, with(s, "drop", name, true), "api.paths", "delete %s", name)
		}
		require.Contains(t, with(s, "fetch", filepath.Join(allowed, "report.py"), true), "api.paths", "the name is of the client, the folder of the job file")
		for _, name := range programFiles() {
			text, err := os.ReadFile(filepath.Join(scene.dir, name))
			require.NoError(t, err)
			require.Equal(t, "as it was", string(text), name)
		}
		with(s, "own", "x", false)
		require.FileExists(t, filepath.Join(scene.dir, "archive/a.py"), "folder and names are of the job file")
	})
}

// Rule SE3.
func TestAClientWritesDataFiles(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		scene := newScene(t, url)
		confinedJobs(scene)
		allowed, below := t.TempDir(), filepath.Join(scene.dir, "data")
		require.NoError(t, os.Mkdir(below, 0o700))
		s := scene.serve(func(c *api.Config) { c.Paths = []string{allowed, below, scene.dir} })
		for _, name := range []string{"out.csv", "out.TXT", "new/out.csv.gz", "out.dat", filepath.Join(allowed, "out.edi"), filepath.Join(allowed, "out"), "data/out.edi"} {
			with(s, "export", name, false)
			with(s, "named", name, false)
		}
		for _, name := range []string{filepath.Join(allowed, "x.yaml"), filepath.Join(allowed, "x.yml."), "data/x.SQL", "data/x.sh", "out.edi"} {
			require.Contains(t, with(s, "export", name, true), "api.paths", name)
		}
		for _, name := range []string{"SHA256SUMS", "in.csv.sha256", filepath.Join(allowed, "sums")} {
			with(s, "sums", name, false)
		}
		with(s, "pack", "in.csv", false)
		require.NoError(t, os.WriteFile(filepath.Join(allowed, "in.csv"), []byte("id\n"), 0o600))
		for _, name := range []string{"in.csv.gz", "out.csv", filepath.Join(allowed, "in.csv")} {
			with(s, "archive", name, false)
			require.FileExists(t, filepath.Join(scene.dir, "archive", filepath.Base(name)))
		}
	})
}

// Rule SE3.
func TestFoldersForDataAreOfTheExecution(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		scene := newScene(t, url)
		confinedJobs(scene)
		allowed := t.TempDir()
		s := scene.serve(func(c *api.Config) { c.Paths = []string{allowed} })
		with(s, "parent", filepath.Join(allowed, "child.edi"), false)
		require.FileExists(t, filepath.Join(allowed, "child.edi"))
		require.Contains(t, with(s, "parent", "child.edi", true), "api.paths")

		out := filepath.Join(allowed, "late.edi")
		require.NoError(t, os.Mkdir(out, 0o700))
		failed := s.over(s.call("POST", "/v1/jobs/export/run", fmt.Sprintf(`{"params": {"path": %q}}`, out)).acted(true), core.StatusFailed)
		require.NoError(t, os.Remove(out))
		restarted, err := s.app.Restart(t.Context(), operator.RestartRequest{Execution: core.JobExecutionID(failed.ID)})
		require.NoError(t, err)
		s.over(core.JobExecutionID(restarted.Execution().ID), core.StatusCompleted)
		require.FileExists(t, out)
	})
}

// Rule SE3: on SMB and vfat every file is executable.
func TestAClientWritesDataFilesThatAreExecutable(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		scene := newScene(t, url)
		confinedJobs(scene)
		allowed := t.TempDir()
		s := scene.serve(func(c *api.Config) { c.Paths = []string{allowed} })
		put := func(name, text string, mode os.FileMode) string {
			path := filepath.Join(scene.dir, name)
			if filepath.IsAbs(name) {
				path = name
			}
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			require.NoError(t, os.Chmod(path, mode))
			return path
		}
		for _, name := range []string{"a.csv", filepath.Join(allowed, "b.csv")} {
			put(name, "id\n7\n", 0o777)
			with(s, "export", name, false)
			require.NoError(t, os.Chmod(put(name, "id\n7\n", 0o777), 0o777))
			with(s, "archive", name, false)
			put(name, "id\n7\n", 0o777)
			with(s, "drop", name, false)
		}
		put("empty.csv", "", 0o777)
		with(s, "archive", "empty.csv", false)
		for name, text := range map[string]string{"run.txt": "#!/bin/sh\n", "tool.dat": "\x7fELF\x02", filepath.Join(allowed, "run"): "#!/bin/sh\n"} {
			path := put(name, text, 0o600)
			for _, job := range []string{"export", "archive", "drop", "named"} {
				require.Contains(t, with(s, job, name, true), "name it in the job file", "%s %s", job, name)
			}
			now, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, text, string(now))
		}
	})
}
