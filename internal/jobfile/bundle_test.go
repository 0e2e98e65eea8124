package jobfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

const (
	bundleMain = "job: all\nflow:\n- {job: one, file: parts/one.yaml}\n- {job: two, file: ./parts/../two.yaml}\n- {step: s, tasklet: {note: {path: data.csv}}}\n"
	bundleOne  = "job: one\nflow: [{job: two, file: ../two.yaml}, {step: s, tasklet: {note: {path: data.csv}}}]\n"
	bundleTwo  = "job: two\nflow: [{step: s, tasklet: {note: {path: data.csv}}}]\n"
)

func bundleTexts() map[string]string {
	return map[string]string{"all.yaml": bundleMain, "parts/one.yaml": bundleOne, "two.yaml": bundleTwo}
}

func bundleDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "parts"), 0o755))
	for name, text := range bundleTexts() {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// Rule F4.
func TestADefinitionHasTheFilesOfAllChildJobs(t *testing.T) {
	t.Parallel()
	dir := bundleDir(t)
	file, err := jobfile.Load(filepath.Join(dir, "all.yaml"), described(t))
	require.NoError(t, err)
	onDisk := file.Definition()
	require.Equal(t, []core.DefinitionFile{
		{Name: "parts/one.yaml", Text: bundleOne, Path: filepath.Join(dir, "parts/one.yaml")},
		{Name: "two.yaml", Text: bundleTwo, Path: filepath.Join(dir, "two.yaml")},
	}, onDisk.Files)
	require.Equal(t, bundleMain, onDisk.Text)

	file, err = jobfile.LoadFS(inMemory(bundleTexts()), "all.yaml", described(t))
	require.NoError(t, err)
	require.Equal(t, onDisk.Hash, file.Definition().Hash)
	require.Empty(t, file.Definition().Files[0].Path)

	child, err := jobfile.Load(filepath.Join(dir, "parts/one.yaml"), described(t))
	require.NoError(t, err)
	require.Equal(t, []core.DefinitionFile{{Name: "../two.yaml", Text: bundleTwo, Path: filepath.Join(dir, "two.yaml")}}, child.Definition().Files)
	require.NotEqual(t, onDisk.Hash, child.Definition().Hash)
}

func TestAStoredDefinitionIsReadWithoutItsFiles(t *testing.T) {
	t.Parallel()
	dir := bundleDir(t)
	load := func(from jobfile.Source, reg *registry.Registry) core.Definition {
		file, err := from.Load(reg)
		require.NoError(t, err)
		return file.Definition()
	}
	definitions := []core.Definition{
		load(jobfile.Path(filepath.Join(dir, "all.yaml")), described(t)),
		load(jobfile.FS(inMemory(bundleTexts()), "all.yaml"), described(t)),
	}
	require.NoError(t, os.RemoveAll(dir))
	for _, d := range definitions {
		file, err := jobfile.ParseStored(d, "all.yaml", described(t))
		require.NoError(t, err)
		require.Equal(t, d, file.Definition())
		require.Equal(t, d.Path != "", file.Source().OnDisk())
		require.Equal(t, d, load(jobfile.Stored(d, "all.yaml"), described(t)), "all of it is right")

		lacking := ports.NewDefinition(d.Text, d.Path, d.Files[:1])
		_, err = jobfile.Stored(lacking, "all.yaml").Load(described(t))
		require.ErrorContains(t, err, "file: two.yaml is not stored with the execution")
	}
}

// Rule F4.
func TestAChangedFileOfAChildIsAChangeOfTheParent(t *testing.T) {
	t.Parallel()
	load := func(one, two string) *jobfile.File {
		file, err := jobfile.LoadFS(inMemory(map[string]string{"all.yaml": bundleMain, "parts/one.yaml": one, "two.yaml": two}), "all.yaml", described(t))
		require.NoError(t, err)
		return file
	}
	before, after := load(bundleOne, bundleTwo), load(bundleOne, bundleTwo+"# more\n")
	require.NotEqual(t, before.Definition().Hash, after.Definition().Hash)
	earlier, err := after.Earlier(before.Definition(), described(t))
	require.NoError(t, err)
	const what = "has a changed job file, which the launch of that job checks"
	require.Equal(t, []jobfile.Change{{Step: "one", What: what + "; it has completed and does not run again"}, {Step: "two", What: what}},
		jobfile.Compare(earlier, after, core.Parameters{}, history("one COMPLETED", "two FAILED")))
	require.Empty(t, jobfile.Compare(earlier, load(bundleOne, bundleTwo), core.Parameters{}, history("one COMPLETED", "two FAILED")))
}
