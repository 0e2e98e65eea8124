package confine_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/confine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// folders are a folder that clients may name, and one that they may not, with a link from the first to the
// second.
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
	f.Free(root) // a folder of the job file does not open the target of a link in it
	_, err = f.Open(filepath.Join(root, "folder/other"))
	require.Error(t, err)
}

// Files that define jobs lie in the folder of the job file. A client that
// wrote one could run anything.
func TestAClientNeitherWritesNorRemovesAProgram(t *testing.T) {
	t.Parallel()
	root, _, f := folders(t)
	at := func(name string) string { return filepath.Join(root, name) }
	for name, mode := range map[string]os.FileMode{"job.yaml": 0o600, "run": 0o700, "x.SQL": 0o600, "own.sh": 0o600} {
		require.NoError(t, os.WriteFile(at(name), []byte("as it was"), 0o600))
		require.NoError(t, os.Chmod(at(name), mode))
	}
	require.NoError(t, os.Symlink("job.yaml", at("harmless.txt")))
	for _, name := range []string{"job.yaml", "run", "x.SQL", "own.sh", "new.yml", "harmless.txt"} {
		require.ErrorContains(t, f.CheckOutput(at(name)), "clients must not write or remove", name)
		_, err := f.OpenFile(at(name), os.O_WRONLY|os.O_CREATE, 0o600)
		require.True(t, confine.Refused(err), name)
		require.True(t, confine.Refused(f.Rename(at("a.txt"), at(name))), name)
		require.True(t, confine.Refused(f.Rename(at(name), at("b.txt"))), name)
		require.True(t, confine.Refused(f.Link(at("a.txt"), at(name))), name)
		require.True(t, confine.Refused(f.Remove(at(name))), name)
		if name != "new.yml" {
			_, err = f.ReadFile(at(name))
			require.NoError(t, err, "it is read: %s", name)
		}
	}
	require.NoError(t, f.CheckOutput(at("new.txt")))
	f.Free(at("own.sh"))
	require.NoError(t, f.Remove(at("own.sh")), "of the job file itself")
	text, err := os.ReadFile(at("job.yaml"))
	require.NoError(t, err)
	require.Equal(t, "as it was", string(text))
}

// Rule SE3.
func TestOtherFilesAreWrittenInFoldersForDataOnly(t *testing.T) {
	t.Parallel()
	jobs := filepath.Join(t.TempDir(), "jobs")
	below := filepath.Join(jobs, "data")
	require.NoError(t, os.MkdirAll(below, 0o700))
	roots := confine.Roots(jobs, filepath.Dir(jobs), below)
	f := confine.New(&core.Confinement{Roots: roots, Data: roots[1:], Given: []string{"input"}})
	for _, good := range []string{"../a.py", "data/a.py", "a.csv", "a.JSONL.zst", "a.csv.gz.sha256", "sha512sums", "data/a"} {
		require.NoError(t, f.CheckOutput(filepath.Join(jobs, good)), good)
	}
	for _, bad := range []string{"a.py", "a", ".env", "a.gz", "a.csv.py", "a.py.sha256", "a.csv.sh", "../a.sql", "data/a.sh", "data/a.yaml. ", "a.py.part.0123456789ab-1-abcdefgh", ".a.py.surfin-1-ABCDEFGH"} {
		require.ErrorContains(t, f.CheckOutput(filepath.Join(jobs, bad)), "clients must not write or remove", bad)
	}
	old := confine.New(&core.Confinement{Roots: roots, Given: []string{"input"}})
	require.NoError(t, old.CheckOutput(filepath.Join(below, "a.csv")))
	require.ErrorContains(t, old.CheckOutput(filepath.Join(below, "a.py")), "clients must not write or remove")
}

func TestAPathOfTheJobFileIsNotAdmittedForAClient(t *testing.T) {
	t.Parallel()
	root, outside, f := folders(t)
	f.FreeToRead(filepath.Join(root, "*"))
	require.Error(t, f.CheckOutput(filepath.Join(root, "a.py")))
	f.Free(filepath.Join(root, "*.py"))
	f.Free(outside)
	require.NoError(t, f.CheckOutput(filepath.Join(root, "a.py")))
	f.Give(filepath.Join(root, "b.py"))
	require.Error(t, f.CheckOutput(filepath.Join(root, "b.py")))
	require.NoError(t, f.Rename(filepath.Join(root, "a.txt"), filepath.Join(root, "a.py")))
	require.True(t, confine.Refused(f.Rename(filepath.Join(root, "sub/a.txt"), filepath.Join(outside, "x.sh"))), "its name may be of the client")
	require.NoError(t, f.Rename(filepath.Join(root, "sub/a.txt"), filepath.Join(outside, "x.txt")))
}

func TestALinkThatIsSwappedMeanwhileLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	root, outside, f := folders(t)
	link, other := filepath.Join(root, "swapped"), filepath.Join(root, "other")
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			target := outside
			if i%2 == 0 {
				target = "sub"
			}
			if os.Symlink(target, other) == nil {
				_ = os.Rename(other, link) //nolint:errcheck // it is tried again
			}
		}
	}()
	inside := 0
	for range 5000 {
		text, err := f.ReadFile(filepath.Join(link, "a.txt"))
		if err == nil {
			inside++
			require.Equal(t, filepath.Join(root, "sub"), string(text))
		}
	}
	close(stop)
	<-done
	require.Positive(t, inside)
}

func TestAURLOfAClientIsBelowOneOfTheRoots(t *testing.T) {
	t.Parallel()
	f := confine.New(&core.Confinement{Roots: confine.Roots("s3://lake/in", t.TempDir()), Given: []string{"input"}})
	for _, url := range []string{"s3://lake/in/a.csv", "s3://lake/in/deep/*.csv"} {
		require.NoError(t, f.Check(url))
		require.NoError(t, f.CheckOutput(url))
		require.NoError(t, f.URL(url))
	}
	for _, url := range []string{"s3://lake/input/a.csv", "s3://lake/a.csv", "s3://other/in/a.csv"} {
		require.ErrorContains(t, f.Check(url), "is outside the folders that clients may use")
		require.ErrorContains(t, f.CheckOutput(url), "is outside the folders")
		require.ErrorContains(t, f.URL(url), "is outside the folders")
	}
	f.Free("s3://other/own.csv") // of the job file
	require.NoError(t, f.URL("s3://other/own.csv"))
	require.Error(t, f.URL("s3://other/own.csv2"))
}
