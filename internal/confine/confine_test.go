package confine_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/confine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// folders are a folder that clients may name, and one that they may not, with a link from the first to the other.
func folders(t *testing.T) (root, outside string, f *confine.Files) {
	t.Helper()
	base := t.TempDir()
	root, outside = filepath.Join(base, "in"), filepath.Join(base, "outside")
	for _, dir := range []string{root, outside, filepath.Join(root, "sub")} {
		require.NoError(t, os.Mkdir(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte(dir), 0o600))
	}
	require.NoError(t, os.Symlink(outside, filepath.Join(root, "folder")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "a.txt"), filepath.Join(root, "file")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "new.txt"), filepath.Join(root, "dangling")))
	require.NoError(t, os.Symlink("sub/a.txt", filepath.Join(root, "inside")))
	return root, outside, confine.New(&core.Confinement{Roots: confine.Roots(root), Given: []string{"input"}})
}

// Rule SE3.
func TestAPathIsJudgedByWhereItReallyIs(t *testing.T) {
	t.Parallel()
	root, outside, f := folders(t)
	for _, good := range []string{"a.txt", "sub/a.txt", "sub/../a.txt", "inside", "not/there.txt", "*.txt", "sub/[a]*"} {
		require.NoError(t, f.Check(filepath.Join(root, good)), good)
	}
	for _, bad := range []string{
		filepath.Join(outside, "a.txt"), filepath.Join(root, "folder/a.txt"), filepath.Join(root, "file"), filepath.Join(root, "dangling"),
		filepath.Join(root, "folder/*.txt"), filepath.Join(root, "folder/none/none"), root + "/../outside/a.txt", root + "x",
		"/proc/self/environ", "/dev/stdin", "/sys/kernel", "-",
	} {
		require.ErrorContains(t, f.Check(bad), "add it to api.paths", bad)
		_, err := f.Open(bad)
		require.Error(t, err, bad)
		require.True(t, confine.Refused(err) || bad == "-", bad)
	}
	all := confine.New(&core.Confinement{Roots: []string{"/"}, Given: []string{"input"}})
	require.ErrorContains(t, all.Check("/proc/self/environ"), "/proc", "whatever the folders are")
	require.NoError(t, (*confine.Files)(nil).Check("/proc/self/environ"), "without restrictions")
}

func TestWhatLeadsOutIsNeitherWrittenNorRemovedNorRenamed(t *testing.T) {
	t.Parallel()
	root, outside, f := folders(t)
	_, err := f.OpenFile(filepath.Join(root, "dangling"), os.O_CREATE|os.O_WRONLY, 0o600)
	require.Error(t, err)
	require.NoFileExists(t, filepath.Join(outside, "new.txt"))
	require.Error(t, f.Remove(filepath.Join(root, "folder/a.txt")))
	require.Error(t, f.Rename(filepath.Join(root, "a.txt"), filepath.Join(root, "folder/b.txt")))
	require.Error(t, f.Link(filepath.Join(outside, "a.txt"), filepath.Join(root, "b.txt")))
	require.Error(t, f.Mkdir(filepath.Join(root, "folder/new"), 0o700))
	require.FileExists(t, filepath.Join(outside, "a.txt"))
	require.NoError(t, f.Rename(filepath.Join(root, "a.txt"), filepath.Join(root, "sub/b.txt")))
	require.NoError(t, f.Link(filepath.Join(root, "sub/b.txt"), filepath.Join(root, "c.txt")))
	require.NoError(t, f.Remove(filepath.Join(root, "c.txt")))
	require.FileExists(t, filepath.Join(root, "sub/b.txt"))
}

func TestPathsOfTheJobFileItselfPass(t *testing.T) {
	t.Parallel()
	root, outside, f := folders(t)
	f.Free(filepath.Join(outside, "*.txt"))
	file, err := f.Open(filepath.Join(outside, "a.txt"))
	require.NoError(t, err)
	require.NoError(t, file.Close())
	_, err = f.Open(filepath.Join(outside, "a.csv"))
	require.True(t, confine.Refused(err))
	f.Free(root) // a folder of the job file does not open what a link in it leads to
	_, err = f.Open(filepath.Join(root, "folder/other"))
	require.Error(t, err)
}
