package cli_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/testdb"
)

const togetherJob = `job: together
flow:
- step: load
  partition: {by: {files: "in/*.csv"}, workers: 1}
  chunk:
    size: 2
    reader: {csv: {path: "${part.path}", item: {id: int, name: string}}}
    writer: {csv: {path: out.csv, together: true}}
`

func newTogether(t *testing.T, url string) *scene {
	t.Helper()
	s := newScene(t, url, map[string]string{"j.yaml": togetherJob})
	require.NoError(t, os.Mkdir(s.path("in"), 0o700))
	s.write("in/a.csv", "id,name\n1,a\n2,b\n3,c\n")
	s.write("in/b.csv", "id,name\n4,d\n5,e\nx,f\n")
	s.write("in/c.csv", "id,name\n")
	require.Equal(t, cli.ExitCompleted, s.flow("migrate").code)
	require.Equal(t, cli.ExitFailed, s.flow("run", "j.yaml").code)
	require.NoFileExists(t, s.path("out.csv"))
	require.Len(t, partsOf(t, s.path("out.csv")), 3, "of the complete and the failed parts")
	require.Contains(t, s.flow("explain", "1").out, "out.csv is not published yet: DIR/out.csv.part.* has 44 committed bytes.")
	return s
}

func (s *scene) published(t *testing.T, want string) {
	t.Helper()
	text, err := os.ReadFile(s.path("out.csv"))
	require.NoError(t, err)
	require.Equal(t, want, string(text))
	require.Empty(t, partsOf(t, s.path("out.csv")))
}

// Rule C15w.
func TestOneFileOfManyPartsIsPublishedWhenAllAreComplete(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newTogether(t, url)
		s.write("in/b.csv", "id,name\n4,d\n5,e\n6,f\n")
		var lost string
		var text []byte
		for _, part := range partsOf(t, s.path("out.csv")) {
			data, err := os.ReadFile(part)
			require.NoError(t, err)
			if strings.Contains(string(data), "3,c") {
				lost, text = part, data
			}
		}
		require.NoError(t, os.Remove(lost))
		r := s.flow("restart", "1", "--accept-changes")
		require.Equal(t, cli.ExitFailed, r.code, r.err)
		require.Contains(t, r.err, "a finished part of the file, is not on ")
		require.Contains(t, r.err, "put the file into a folder that all machines share")
		require.NoFileExists(t, s.path("out.csv"))

		require.NoError(t, os.WriteFile(lost, text, 0o600))
		r = s.flow("restart", "2")
		require.Equal(t, cli.ExitCompleted, r.code, r.err)
		s.published(t, "id,name\n1,a\n2,b\n3,c\n4,d\n5,e\n6,f\n")
	})
}

// Rule C15w.
func TestPartsOfAnUnpublishedFileAreRemovedWithTheirStep(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, s *scene){
		"from start": func(t *testing.T, s *scene) {
			require.NoError(t, os.Remove(s.path("in/a.csv")))
			s.write("in/b.csv", "id,name\n4,d\n")
			r := s.flow("restart", "1", "--from-start")
			require.Equal(t, cli.ExitCompleted, r.code, r.err)
			s.published(t, "id,name\n4,d\n")
		},
		"nothing left to do": func(t *testing.T, s *scene) {
			for _, part := range []string{"a", "b", "c"} {
				require.NoError(t, os.Remove(s.path("in/"+part+".csv")))
			}
			r := s.flow("restart", "1", "--from-start")
			require.Equal(t, cli.ExitCompleted, r.code, r.err)
			s.published(t, "id,name\n")
		},
		"another file": func(t *testing.T, s *scene) {
			s.write("j.yaml", strings.Replace(togetherJob, "path: out.csv, together: true", `path: "out-${part.index}.csv"`, 1))
			r := s.flow("restart", "1", "--file", "j.yaml")
			require.NotEqual(t, cli.ExitCompleted, r.code)
			require.Len(t, partsOf(t, s.path("out.csv")), 3)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, url string) { end(t, newTogether(t, url)) })
		})
	}
}
