//test:plain

package testtree

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheSumIsThatOfWhatGitHasOrWouldAdd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	sum := func() string {
		s, err := Sum(t.Context(), dir)
		require.NoError(t, err)
		return s
	}
	git := func(args ...string) {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	_, err := Sum(t.Context(), filepath.Join(dir, "absent"))
	require.Error(t, err)
	git("init", "-q")
	write(".gitignore", "/bin/\n")
	write("a.txt", "a")
	first := sum()
	write("bin/a", "built")
	require.Equal(t, first, sum(), "ignored")
	git("add", ".")
	require.Equal(t, first, sum(), "what is staged is the same text")
	for _, change := range []struct {
		name string
		do   func()
		undo func()
	}{
		{"another text", func() { write("a.txt", "b") }, func() { write("a.txt", "a") }},
		{"a new file", func() { write("b/b.txt", "") }, func() { require.NoError(t, os.RemoveAll(filepath.Join(dir, "b"))) }},
		{"a file less", func() { require.NoError(t, os.Remove(filepath.Join(dir, "a.txt"))) }, func() { write("a.txt", "a") }},
		{"another mode", func() { require.NoError(t, os.Chmod(filepath.Join(dir, "a.txt"), 0o700)) }, func() { require.NoError(t, os.Chmod(filepath.Join(dir, "a.txt"), 0o600)) }},
	} {
		change.do()
		require.NotEqual(t, first, sum(), change.name)
		change.undo()
		require.Equal(t, first, sum(), change.name)
	}
}
