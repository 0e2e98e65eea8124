package acceptance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testtree"
)

// Rule C15b.
func TestAFullDiskFailsTheStepAndARestartGoesOnWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	if out, err := testtree.Command(t.Context(), "unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/mnt").CombinedOutput(); err != nil {
		t.Skipf("it needs a system that lets a user mount a tmpfs: %v, %s", err, out)
	}
	s := newScene(t, testdb.SQLite(t), map[string]string{"export.yaml": `
job: export
flow:
- step: out
  chunk:
    size: 100
    reader: {csv: {path: in.csv, item: {id: int, name: string}}}
    writer: {csv: disk/out.csv}
    retry: {limit: 2, errors: [transient, io]}
    skip: {limit: 100000, errors: [invalid_item, constraint, transient, io]}
    isolate: bisect
`})
	in := []string{"id,name"}
	for range 5000 {
		in = append(in, "1,a row of some thirty characters")
	}
	text := strings.Join(in, "\n") + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "in.csv"), []byte(text), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(s.dir, "disk"), 0o755))
	out, err := s.script(`
mount -t tmpfs -o size=64k none disk
"$SURFIN" run export.yaml; echo "first: $?"
"$SURFIN" run export.yaml; echo "second: $?"
mount -o remount,size=1m disk
"$SURFIN" run export.yaml; echo "third: $?"
"$SURFIN" sql "select count(*) as skipped from surfin_skipped_item"
cp disk/out.csv out.csv
ls disk
`)
	require.NoError(t, err, out)
	require.Contains(t, out, "no space left on device")
	for _, line := range []string{"first: 1\n", "second: 1\n", "third: 0\n", "skipped\n───────\n      0\n"} {
		require.Contains(t, out, line)
	}
	require.Regexp(t, `\nout\.csv\n$`, out, "no part is left")
	got, err := os.ReadFile(filepath.Join(s.dir, "out.csv"))
	require.NoError(t, err)
	require.Equal(t, text, string(got))
}

func (s *scene) script(text string) (string, error) {
	cmd := testtree.Command(s.t.Context(), "unshare", "--user", "--map-root-user", "--mount", "sh", "-c", text)
	cmd.Dir = s.dir
	cmd.Env = append(ofTheMachine(os.Environ()), "DATABASE_URL="+s.url, "SURFIN_AUTO_MIGRATE=true", "SURFIN="+surfin, "NO_COLOR=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
