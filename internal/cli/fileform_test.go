package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/testdb"
)

// The step fails after its first committed chunk, of in/a.csv.
const (
	formJob = `job: form
flow:
- step: load
  chunk:
    size: 2
    reader: {csv: {path: in/a.csv, item: {id: int, name: string}}}
    writer: {csv: {path: out.csv}}
`
	formPartitions = `job: form
flow:
- step: load
  partition: {by: {files: "in/*.csv"}}
  chunk:
    size: 2
    reader: {csv: {path: "${part.path}", item: {id: int, name: string}}}
    writer: {csv: {path: "out/${part.name}"}}
`
)

// Rule C15b.
func TestAFileIsNotContinuedInAnotherFormThoughTheChangeWasAccepted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		job, old, new, out string
		want               []string
		published          string
	}{
		"another writer": {
			formJob, "csv: {path: out.csv}", "jsonl: {path: out.csv}", "out.csv",
			[]string{"jsonl: cannot restart: the file was started with writer csv, but now it is writer jsonl: a file has one format."},
			`{"id":1,"name":"a"}` + "\n",
		},
		"a map that changes the columns": {
			formJob, "    writer:", "    processor: {map: {only: true, name: item.name, id2: item.id * 10}}\n    writer:", "out.csv",
			[]string{"csv: cannot restart: the file was started with columns id, name, but now it is columns name, id2: a file has one format."},
			"name,id2\na,10\n",
		},
		"a partition": {
			formPartitions, "writer: {csv: {", "writer: {csv: {line_end: crlf, delimiter: ';', ", "out/a.csv",
			[]string{`csv: cannot restart: the file was started with delimiter ","; line_end lf, but now it is delimiter ";"; line_end crlf: a file has one format.`},
			"id;name\r\n1;a\r\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, url string) {
				s := newScene(t, url, map[string]string{"j.yaml": c.job})
				require.NoError(t, os.Mkdir(s.path("in"), 0o700))
				s.write("in/a.csv", "id,name\n1,a\n2,b\n3,c\nx,d\n")
				s.write("in/b.csv", "id,name\n7,g\n")
				require.Equal(t, cli.ExitCompleted, s.flow("migrate").code)
				require.Equal(t, cli.ExitFailed, s.flow("run", "j.yaml").code)
				part := partOf(t, s.path(c.out))
				committed, err := os.ReadFile(part)
				require.NoError(t, err)

				edited := strings.Replace(c.job, c.old, c.new, 1)
				require.NotEqual(t, c.job, edited)
				s.write("j.yaml", strings.Replace(edited, "    writer:", "    skip: {limit: 5}\n    retry: {limit: 3}\n    writer:", 1))
				r := s.flow("restart", "1", "--file", "j.yaml", "--accept-changes")
				require.Equal(t, cli.ExitFailed, r.code, r.err)
				for _, text := range append(c.want, "restart with --from-start", filepath.Base(part)) {
					require.Contains(t, r.err, text)
				}
				require.NoFileExists(t, s.path(c.out))
				now, err := os.ReadFile(partOf(t, s.path(c.out)))
				require.NoError(t, err)
				require.Equal(t, string(committed), string(now))

				r = s.flow("restart", "2", "--file", "j.yaml", "--from-start")
				require.Equal(t, cli.ExitCompleted, r.code, r.err)
				published, err := os.ReadFile(s.path(c.out))
				require.NoError(t, err)
				require.True(t, strings.HasPrefix(string(published), c.published), string(published))
				require.NotContains(t, string(published), "id,name")
				require.Empty(t, partsOf(t, s.path(c.out)))
			})
		})
	}
}

func partsOf(t *testing.T, path string) []string {
	t.Helper()
	names, err := filepath.Glob(path + ".part.*")
	require.NoError(t, err)
	return names
}

func partOf(t *testing.T, path string) string {
	t.Helper()
	names := partsOf(t, path)
	require.Len(t, names, 1)
	return names[0]
}
