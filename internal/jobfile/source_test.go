package jobfile_test

import (
	"bytes"
	"io/fs"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func inMemory(files map[string]string) fs.FS {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

const noteChild = "job: child\nparameters: {day: {type: date}}\nflow: [{step: a, tasklet: {note: {path: data.csv}}}]\n"

func TestAJobFileAndItsChildrenMayBeInAFileSystem(t *testing.T) {
	t.Parallel()
	fsys := inMemory(map[string]string{
		"jobs/all.yaml":           "job: all\nflow:\n- {job: one, file: parts/one.yaml, parameters: {day: 2026-11-20}}\n- {step: b, tasklet: {note: {path: data.csv}}}\n",
		"jobs/parts/one.yaml":     noteChild,
		"jobs/wrong.yaml":         "job: wrong\nflow:\n- {job: one, file: parts/one.yaml, parameters: {dya: 2026-11-20}}\n",
		"jobs/broken-child.yaml":  "job: wrong\nflow: [{job: one, file: parts/broken.yaml}]\n",
		"jobs/parts/broken.yaml":  "job: broken\nflow: [{step: a, tasklet: {nte: x}}]\n",
		"jobs/outside.yaml":       "job: outside\nflow: [{job: one, file: ../../one.yaml}]\n",
		"jobs/missing-child.yaml": "job: missing\nflow: [{job: one, file: parts/two.yaml}]\n",
		"jobs/itself.yaml":        "job: itself\nflow: [{job: one, file: ../jobs/itself.yaml}]\n",
	})
	file, err := jobfile.LoadFS(fsys, "jobs/all.yaml", described(t))
	require.NoError(t, err)
	require.Equal(t, "jobs/all.yaml", file.Path())
	definition := file.Definition()
	require.Empty(t, definition.Path, "it is not on the disk")
	require.NotEmpty(t, definition.Hash)
	require.False(t, file.Source().OnDisk())

	for name, want := range map[string][]string{
		"jobs/wrong.yaml": {
			`jobs/wrong.yaml:3:49: job child has no parameter dya`,
			`jobs/wrong.yaml:3:9: job child needs the parameter day`,
		},
		"jobs/broken-child.yaml":  {`jobs/parts/broken.yaml:2:28: there is no tasklet nte`},
		"jobs/outside.yaml":       {`file: ../../one.yaml is not in the file system of this job file`},
		"jobs/missing-child.yaml": {`file: jobs/parts/two.yaml cannot be read: file does not exist`},
		"jobs/itself.yaml":        {`file: this job would run itself: itself.yaml -> itself.yaml`},
	} {
		_, err := jobfile.LoadFS(fsys, name, described(t))
		var problems jobfile.Problems
		require.ErrorAs(t, err, &problems, name)
		for _, text := range want {
			require.ErrorContains(t, err, text)
		}
	}
	_, err = jobfile.LoadFS(fsys, "jobs/none.yaml", described(t))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "job file: open jobs/none.yaml")
}

func TestAJobFileMayBeBytes(t *testing.T) {
	t.Parallel()
	file, err := jobfile.Bytes("child", []byte(noteChild)).Load(described(t))
	require.NoError(t, err)
	require.Equal(t, "child", file.Name())
	require.Empty(t, file.Definition().Path)
	_, err = jobfile.Bytes("child", []byte("job: child\nflow: {}\n")).Load(described(t))
	require.ErrorContains(t, err, "child:2:7: flow takes a list")
	_, err = jobfile.Bytes("large", bytes.Repeat([]byte("# \n"), 1<<20)).Load(described(t))
	require.ErrorContains(t, err, "the file is too large: large has more than")
	_, err = jobfile.Source{}.Load(described(t))
	require.EqualError(t, err, "job file: no file is named")
}

// Rule F4.
func TestAFileOfAFileSystemIsComparedWithWhatItWas(t *testing.T) {
	t.Parallel()
	text := "job: load\nflow:\n- step: load\n  chunk: {reader: {count: {to: 3}}, writer: {sink: x}}\n"
	before, err := jobfile.LoadFS(inMemory(map[string]string{"jobs/load.yaml": text}), "jobs/load.yaml", described(t))
	require.NoError(t, err)
	after, err := jobfile.LoadFS(inMemory(map[string]string{"jobs/load.yaml": text + "# more\n"}), "jobs/load.yaml", described(t))
	require.NoError(t, err)
	require.NotEqual(t, before.Definition().Hash, after.Definition().Hash)
	require.Empty(t, jobfile.Compare(before, after, core.Parameters{}, history("load FAILED")))
}

func TestAFileOnTheDiskKnowsWhereItIs(t *testing.T) {
	t.Parallel()
	file, err := jobfile.Path("testdata/children/good.yaml").Load(described(t))
	require.NoError(t, err)
	abs, err := filepath.Abs("testdata/children/good.yaml")
	require.NoError(t, err)
	require.Equal(t, abs, file.Definition().Path)
	require.True(t, file.Source().OnDisk())
}
