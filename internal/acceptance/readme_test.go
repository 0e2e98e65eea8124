package acceptance

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestTheTenSecondsOfTheReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, part, found := strings.Cut(string(text), "## Ten seconds\n")
	require.True(t, found)
	part, _, found = strings.Cut(strings.ReplaceAll(part, "\\\n", ""), "\n## ")
	require.True(t, found)
	lines := strings.Split(part, "\n")
	command := func(prefix string) string {
		i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, prefix) })
		require.GreaterOrEqual(t, i, 0, "no line begins with %q", prefix)
		line := lines[i]
		lines = lines[i+1:]
		return line
	}
	data, err := filepath.Abs("../../example")
	require.NoError(t, err)
	s := newScene(t, testdb.SQLite(t), nil)
	require.NoError(t, os.Symlink(data, filepath.Join(s.dir, "example")))
	s.shell(strings.Replace(command("awk "), "i<120", "i<12", 1))

	killed, _, found := strings.Cut(command("surfin copy "), " & sleep 3; kill -9 $!")
	require.True(t, found)
	first := s.start(strings.Fields(killed)[1:]...)
	db, _ := s.open()
	require.Eventually(t, func() bool {
		var n int64
		return db.Conn().QueryRowContext(t.Context(), "select count(*) from strikes").Scan(&n) == nil && n > 0
	}, time.Minute, 5*time.Millisecond)
	first.signal(syscall.SIGKILL)
	first.wait()
	_, out := s.run(strings.Fields(command("surfin explain "))[1:]...)
	require.Contains(t, out, "committed up to line ")
	code, out := s.run(strings.Fields(command("surfin copy "))[1:]...)
	require.True(t, isComplete(code, out), out)
	words := strings.SplitN(command("surfin sql "), `"`, 3)
	code, out = s.run("sql", words[1])
	require.Equal(t, 0, code, out)
	require.Regexp(t, `(?m)^ *120000 +120000$`, out)
}
