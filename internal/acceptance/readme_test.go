package acceptance

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

// The ten seconds of the README, with a tenth of the rows: a copy is killed, explained, and continued, and
// each row is there once.
func TestTheTenSecondsOfTheReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, text2, found := strings.Cut(string(text), "## Ten seconds\n")
	require.True(t, found)
	var commands []string
	for range 2 {
		_, after, found := strings.Cut(text2, "```sh\n")
		require.True(t, found)
		block, rest, found := strings.Cut(after, "```\n")
		require.True(t, found)
		commands, text2 = append(commands, strings.Split(strings.ReplaceAll(block, "\\\n", ""), "\n")...), rest
	}
	require.Len(t, commands, 7, "%q", commands) // each block ends with an empty one
	data, err := filepath.Abs("../../example")
	require.NoError(t, err)
	s := newScene(t, testdb.SQLite(t), nil)
	require.NoError(t, os.Symlink(data, filepath.Join(s.dir, "example")))
	s.shell(strings.Replace(commands[0], "i<120", "i<12", 1))

	killed, _, found := strings.Cut(commands[1], " & sleep 5; kill -9 $!")
	require.True(t, found)
	first := s.start(strings.Fields(killed)[1:]...)
	db, _ := s.open()
	require.Eventually(t, func() bool {
		var n int64
		return db.Conn().QueryRowContext(t.Context(), "select count(*) from strikes").Scan(&n) == nil && n > 0
	}, time.Minute, 5*time.Millisecond)
	first.signal(syscall.SIGKILL)
	first.wait()
	_, out := s.run(strings.Fields(commands[2])[1:]...)
	require.Contains(t, out, "committed up to line ")
	code, out := s.run(strings.Fields(commands[4])[1:]...)
	require.True(t, isComplete(code, out), out)
	words := strings.SplitN(commands[5], `"`, 3)
	code, out = s.run("sql", words[1])
	require.Equal(t, 0, code, out)
	require.Regexp(t, `(?m)^ *120000 +120000$`, out)
}
