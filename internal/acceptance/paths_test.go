package acceptance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

const pathsJob = `job: load
parameters:
  input: {type: string}
flow:
- step: check
  tasklet: {shell: [./bin/check.sh, "${params.input}"]}
- step: there
  tasklet: {shell: {command: [bin/there.sh, only-in-data], dir: data}}
- step: load
  chunk:
    reader: {csv: {path: "${params.input}", item: {id: int}}}
    writer: {table: {name: loaded, create: true}}
`

func (s *scene) in(folder string) *scene {
	s.t.Helper()
	other := *s
	other.dir = filepath.Join(s.dir, folder)
	require.NoError(s.t, os.MkdirAll(other.dir, 0o755))
	return &other
}

func newPathsScene(t *testing.T, url string) *scene {
	t.Helper()
	s := newScene(t, url, map[string]string{
		"jobs/load.yaml":         pathsJob,
		"jobs/in.csv":            "id\n1\n2\n",
		"jobs/data/only-in-data": "",
		"jobs/bin/check.sh":      "#!/bin/sh\ntest -f \"$1\" && test -f ready\n",
		"jobs/bin/there.sh":      "#!/bin/sh\ntest -f \"$1\"\n",
		"data/in.csv":            "id\n3\n",
	})
	for _, name := range []string{"check.sh", "there.sh"} {
		require.NoError(t, os.Chmod(filepath.Join(s.dir, "jobs", "bin", name), 0o700)) //nolint:gosec // a program
	}
	return s
}

func TestAnInstanceAndItsPathsAreTheSameFromEveryDirectory(t *testing.T) {
	t.Parallel()
	inTurn(t, 1, func(t *testing.T, url string) {
		s := newPathsScene(t, url)
		jobs, elsewhere := s.in("jobs"), s.in("else/where")
		code, out := s.run("run", "jobs/load.yaml", "input=jobs/in.csv")
		require.Equal(t, 1, code, out)
		require.Contains(t, out, "step check", out)

		// The program, its argument and the input are found from another directory.
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, "jobs", "ready"), nil, 0o600))
		code, out = elsewhere.run("restart", "1")
		require.Equal(t, 0, code, out)

		for _, c := range []struct {
			at                *scene
			file, input, hint string
		}{
			{jobs, "load.yaml", "in.csv", "in.csv"},
			{jobs, "load.yaml", "./in.csv", "in.csv"},
			{jobs, "./load.yaml", filepath.Join(s.dir, "jobs", "in.csv"), "in.csv"},
			{s, "jobs/load.yaml", "jobs/in.csv", "jobs/in.csv"},
			{elsewhere, "../../jobs/load.yaml", "../../jobs/in.csv", filepath.Join(s.dir, "jobs", "in.csv")},
		} {
			code, out = c.at.run("run", c.file, "input="+c.input)
			require.Equal(t, 4, code, "%s: %s", c.input, out)
			require.Contains(t, out, "already complete")
			require.Contains(t, out, c.file+" input="+c.hint+" --again", "the hint can be typed here")
		}
		db, _ := s.open()
		require.Equal(t, []int64{2}, s.ints(db, "select count(*) from loaded", 1))

		code, out = s.run("run", "jobs/load.yaml", "input=data/in.csv")
		require.Equal(t, 0, code, out)
		code, out = s.run("show", "3")
		require.Equal(t, 0, code, out)
		require.Contains(t, out, filepath.Join(s.dir, "data", "in.csv"), "outside of the folder of the job it is absolute")
	})
}

func TestTwoFilesWithOneJobNameAreReported(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{
		"a.yaml": "job: same\nflow:\n- {step: one, tasklet: {sql: select 1}}\n",
		"b.yaml": "job: same\nflow:\n- {step: two, tasklet: {sql: select 1}}\n",
	})
	code, out := s.run("run", "a.yaml")
	require.Equal(t, 0, code, out)
	code, out = s.run("run", "b.yaml")
	require.Equal(t, 4, code, out)
	require.Contains(t, out, "another file has a job of this name, and both share its instances")
	require.Contains(t, out, filepath.Join(s.dir, "a.yaml"))
	require.Contains(t, out, filepath.Join(s.dir, "b.yaml"))

	p := s.start("run", "b.yaml", "--again", "--format", "json", "--log-level", "error")
	code, out = p.wait()
	require.Equal(t, 0, code, out)
	var page struct {
		Notices []struct {
			Kind, File, Was string
			Execution       int64
		}
	}
	require.NoError(t, json.Unmarshal([]byte(out), &page), out)
	require.Len(t, page.Notices, 1)
	require.Equal(t, "other_file", page.Notices[0].Kind)
	require.Equal(t, filepath.Join(s.dir, "a.yaml"), page.Notices[0].Was)
	require.Equal(t, filepath.Join(s.dir, "b.yaml"), page.Notices[0].File)
}

func TestTheDefaultDatabaseIsNamedWithItsPlace(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{
		"jobs/one.yaml":    "job: one\nflow:\n- {step: one, tasklet: {sql: select 1}}\n",
		"conf/surfin.yaml": "databases: {default: {url: sqlite:history.db}}\n",
	})
	s.env = []string{"DATABASE_URL="}
	code, out := s.run("run", "jobs/one.yaml")
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "sqlite "+filepath.Join(s.dir, "surfin.db"), "the working directory")
	code, out = s.run("run", "jobs/one.yaml", "--config", "conf/surfin.yaml")
	require.Equal(t, 0, code, out)
	require.Contains(t, out, "sqlite "+filepath.Join(s.dir, "conf", "history.db"), "a path in the file is relative to the file")
}

func TestAWorkerInAnotherDirectoryReadsTheFileOfTheLaunch(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.Postgres(t), map[string]string{
		"jobs/spread.yaml": `job: spread
parameters:
  input: {type: string}
flow:
- step: make
  tasklet: {sql: "create table loaded(part int, id int)"}
- step: load
  partition: {by: {count: 2}, remote: true}
  chunk:
    reader: {csv: {path: "${params.input}", item: {id: int}}}
    processor: {map: {part: part.index}}
    writer: {table: loaded}
- step: look
  tasklet: {shell: [test, -f, "${params.input}"]}
`,
		"jobs/data/in.csv": "id\n1\n2\n",
	})
	code, out := s.run("migrate")
	require.Equal(t, 0, code, out)
	worker := s.in("else/where").worker()
	code, out = s.in("jobs/data").run("run", "../spread.yaml", "input=in.csv")
	require.Equal(t, 0, code, "%s\n%s", out, worker.out.String())
	db, _ := s.open()
	require.Equal(t, []int64{4}, s.ints(db, "select count(*) from loaded", 1))
}
