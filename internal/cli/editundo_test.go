package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestAChangeThatWasRefusedWhenTheStepBeganIsUndoneWithoutConsent(t *testing.T) {
	t.Parallel()
	const job = `job: j
flow:
- step: load
  chunk:
    size: 2
    reader: {csv: {path: in.csv, item: {id: int}}}
    writer: {csv: {path: out.txt}}
`
	wrong := strings.NewReplacer("id: int", "id: string", "path: out.txt", `path: out.txt, delimiter: ";"`).Replace(job)
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"j.yaml": job, "in.csv": "id\n1\n2\nx\n"})
		require.Equal(t, cli.ExitCompleted, s.run("migrate").code)
		require.Equal(t, cli.ExitFailed, s.run("run", "j.yaml").code)
		s.write("j.yaml", wrong)
		require.Equal(t, cli.ExitUsage, s.run("run", "j.yaml").code)
		for range 2 {
			r := s.run("run", "j.yaml", "--accept-changes")
			require.Equal(t, cli.ExitFailed, r.code, r.err)
			require.Contains(t, r.err, "a file has one format. Undo the change")
		}
		s.write("j.yaml", strings.Replace(job, "path: out.txt", "path: other.txt", 1))
		r := s.run("run", "j.yaml")
		require.Equal(t, cli.ExitUsage, r.code)
		require.Contains(t, r.err, " --- execution 1\n", "it is compared with what execution 1 wrote")

		s.write("j.yaml", job)
		require.NotContains(t, s.run("explain", "3").out, "accept-changes")
		r = s.run("run", "j.yaml")
		require.Equal(t, cli.ExitFailed, r.code, r.err)
		require.Contains(t, r.err, "not an int", "it goes on where execution 1 ended")
		s.write("j.yaml", wrong)
		require.Equal(t, cli.ExitUsage, s.run("run", "j.yaml").code, "the change is refused as before")
	})
}
