package acceptance

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestFilesThatArriveDuringTheLoadAreNotMovedAway(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		for name, load := range map[string]string{
			"parts": `
  partition: {by: {files: "in/*.csv"}, workers: 2}
  chunk:
    reader: {csv: {path: "${part.path}", item: {id: int}}}`,
			"reader": `
  chunk:
    reader: {files: {glob: "in/*.csv", reader: {csv: {item: {id: int}}}}}`,
		} {
			t.Run(name, func(t *testing.T) {
				s := newScene(t, anotherOf(t, url), map[string]string{"job.yaml": `job: meal
parameters: {n: {type: int}}
flow:
- step: load` + load + `
    writer: {table: {name: loaded, key: [id], create: true}}
- step: sender
  tasklet: {shell: {command: [sh, send.sh]}}
- step: archive
  tasklet: {files: {move: "in/*.csv", of: load, to: done}}
`, "in/a.csv": "id\n1\n", "in/b.csv": "id\ntwo\n", "send.sh": "[ -e in/late.csv ] || printf 'id\\n4\\n' > in/late.csv\n"})
				code, out := s.run("run", "job.yaml", "n=1")
				require.Equal(t, 1, code, out) // b.csv is bad
				require.Equal(t, []string{"a.csv", "b.csv"}, s.names("in"))

				require.NoError(t, os.WriteFile(filepath.Join(s.dir, "in", "b.csv"), []byte("id\n2\n"), 0o600))
				code, out = s.run("restart", "1", "--accept-changes")
				require.Equal(t, 0, code, out)
				require.Equal(t, []string{"a.csv", "b.csv"}, s.names("done"), out)
				require.Equal(t, []string{"late.csv"}, s.names("in"))

				code, out = s.run("run", "job.yaml", "n=2")
				require.Equal(t, 0, code, out)
				require.Equal(t, []string{"a.csv", "b.csv", "late.csv"}, s.names("done"))
				db, _ := s.open()
				require.Equal(t, []int64{3, 7}, s.ints(db, "select count(*), sum(id) from loaded", 2))
			})
		}
	})
}

func (s *scene) names(folder string) (names []string) {
	s.t.Helper()
	paths, err := filepath.Glob(filepath.Join(s.dir, folder, "*"))
	require.NoError(s.t, err)
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	return names
}

func TestAStepOfFilesThatNamesAStepWithoutFilesIsRefusedAtLoad(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"job.yaml": `job: meal
flow:
- step: load
  chunk:
    reader: {csv: {path: in.csv, item: {id: int}}}
    writer: {table: {name: loaded, create: true}}
- step: archive
  tasklet: {files: {move: "in/*.csv", of: load, to: done}}
- step: again
  tasklet: {files: {move: "in/*.csv", of: laod, to: done}}
`})
	code, out := s.run("validate", "job.yaml")
	require.Equal(t, 2, code, out)
	require.Contains(t, out, "job.yaml:8:43: tasklet files: of: step load keeps no list of files: only the reader `files`, or partitions by `files`, do")
	require.Contains(t, out, "job.yaml:10:43: tasklet files: of: there is no step laod (did you mean load?)")
}
