package filetask_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	filetask "github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/files"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o640))
	}
	return dir
}

func run(t *testing.T, cfg filetask.Config) (*core.StepContribution, error) {
	t.Helper()
	task, err := filetask.New(cfg)
	require.NoError(t, err)
	c := &core.StepContribution{}
	return c, task.Execute(t.Context(), c)
}

func text(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// Rule TL4.
func TestNothingIsReplacedAndNothingDoneWhereOneFileWouldBe(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"a": "1", "b": "2", "to/b": "other", "to/c": "3", "c": "3"})
	for _, cfg := range []filetask.Config{
		{Move: dir + "/?", To: dir + "/to"}, {Copy: dir + "/?", To: dir + "/to"},
		{Copy: dir + "/a", As: dir + "/to/b"}, {Checksum: dir + "/a", As: dir + "/to/b"},
	} {
		_, err := run(t, cfg)
		require.ErrorContains(t, err, filepath.Join(dir, "to", "b")+" exists already")
		require.NoFileExists(t, filepath.Join(dir, "to", "a"), "nothing was done")
	}
	_, err := run(t, filetask.Config{Move: dir + "/?", To: dir + "/to", Overwrite: true})
	require.NoError(t, err)
	require.Equal(t, "2", text(t, dir+"/to/b"))
	require.NoFileExists(t, dir+"/c", "its content exists already, so it has moved")
	info, err := os.Stat(dir + "/to/b")
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o640), info.Mode().Perm())
}

func TestACompressedFileThatIsCutIsNotTakenForTheResult(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"a": "text", "in/b": "x"})
	_, err := run(t, filetask.Config{Gzip: dir + "/a", Keep: true})
	require.NoError(t, err)
	whole := text(t, dir+"/a.gz")
	require.NoError(t, os.WriteFile(dir+"/a.gz", []byte(whole[:len(whole)-4]), 0o600)) // without the length that ends it
	_, err = run(t, filetask.Config{Gzip: dir + "/a"})
	require.ErrorContains(t, err, "exists already, with other content")
	require.FileExists(t, dir+"/a")
	_, err = run(t, filetask.Config{Gunzip: dir + "/a.gz", As: dir + "/b"})
	require.ErrorContains(t, err, "unexpected EOF")
	require.NoFileExists(t, dir+"/b")
	require.FileExists(t, dir+"/a.gz")
	_, err = run(t, filetask.Config{Gzip: dir + "/a", Overwrite: true})
	require.NoError(t, err)
	require.NoFileExists(t, dir+"/a")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2, "nothing half-written is left")
}

func TestChecksumsAreComparedAndListed(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"in/a": "hello\n", "in/b": "", "sums": "old"})
	const hello = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
	c, err := run(t, filetask.Config{Checksum: dir + "/in/a", Equals: hello})
	require.NoError(t, err)
	require.Equal(t, hello, c.Out["checksum"])
	_, err = run(t, filetask.Config{Checksum: dir + "/in/a", Algorithm: "md5", Equals: hello})
	require.ErrorContains(t, err, "has the md5 checksum b1946ac92492d2347c6235b4d2611184")
	_, err = run(t, filetask.Config{Checksum: dir + "/in/*", As: dir + "/sums", Overwrite: true})
	require.NoError(t, err)
	require.Equal(t, hello+"  in/a\ne3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  in/b\n", text(t, dir+"/sums"))
}

func TestWhatIsMissingOrNoFileIsSaid(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"in/a": "1", "in/deep/a": "2"})
	require.NoError(t, os.Symlink(dir+"/in/a", dir+"/link"))
	for _, c := range []struct {
		config filetask.Config
		want   string
	}{
		{filetask.Config{Delete: dir + "/none"}, "there is no file"},
		{filetask.Config{Delete: dir + "/*.csv"}, "no file matches"},
		{filetask.Config{Delete: dir + "/in"}, "is a folder: write"},
		{filetask.Config{Delete: dir + "/link"}, "is not a regular file"},
		{filetask.Config{Copy: dir + "/in/a", As: dir + "/in"}, "is a folder: name it with `to`"},
		{filetask.Config{Copy: dir + "/in/a", To: dir + "/in"}, "would become itself"},
		{filetask.Config{Copy: dir + "/in/a", To: dir + "/in/a"}, "/in/a is not a folder: name a file with `as`"},
		{filetask.Config{Gunzip: dir + "/in/a"}, "does not end in .gz"},
		{filetask.Config{Gunzip: dir + "/in/a", As: dir + "/b"}, "it is not compressed with gzip"},
		{filetask.Config{Copy: dir + "/in/[ab]", As: dir + "/in/a"}, "would become itself"},
	} {
		_, err := run(t, c.config)
		require.ErrorContains(t, err, c.want)
	}
	_, err := run(t, filetask.Config{Delete: dir + "/none", Missing: "ignore"})
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(dir+"/x/in", 0o700))
	require.NoError(t, os.WriteFile(dir+"/x/in/a", nil, 0o600))
	require.NoError(t, os.WriteFile(dir+"/x/a", nil, 0o600))
	require.NoError(t, os.Mkdir(dir+"/y", 0o700))
	require.NoError(t, os.WriteFile(dir+"/y/a", nil, 0o600))
	_, err = run(t, filetask.Config{Copy: dir + "/[xy]/a", To: dir + "/z"})
	require.ErrorContains(t, err, "would both become")
}

func TestAStopIsHeardBetweenFiles(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"a": "1"})
	task, err := filetask.New(filetask.Config{Move: dir + "/a", To: dir + "/to"})
	require.NoError(t, err)
	stop := make(chan struct{})
	close(stop)
	require.ErrorIs(t, task.Execute(t.Context(), &core.StepContribution{Stop: stop}), core.ErrStopped)
	ctx, cancel := context.WithCancelCause(t.Context())
	lost := errors.New("the lease is lost")
	cancel(lost)
	require.ErrorIs(t, task.Execute(ctx, &core.StepContribution{}), lost)
	require.FileExists(t, dir+"/a")
}

func TestAJobArchivesItsInput(t *testing.T) {
	t.Parallel()
	e := batchtest.New(t)
	e.File("in/a.csv", "id\n1\n")
	e.File("in/b.csv", "id\n2\n")
	r := e.Job(e.File("job.yaml", `job: archive
parameters: {folder: {type: path, default: in}}
flow:
- step: pack
  tasklet: {files: {gzip: "${params.folder}/*.csv", to: "${params.folder}/done"}}
- step: enough
  when: steps.pack.out.files == 2
  tasklet: {files: {checksum: in/done/*.gz, as: in/done/SHA256SUMS}}
`)).Completed()
	require.Equal(t, int64(2), r.Step("enough").Out["files"])
	require.Contains(t, text(t, e.Path("in/done/SHA256SUMS")), "  a.csv.gz\n")
	require.NoFileExists(t, e.Path("in/a.csv"))
}

func TestWrongConfigurationsAreRefusedAtTheirKey(t *testing.T) {
	t.Parallel()
	for key, c := range map[string]filetask.Config{
		"move": {}, "copy": {Move: "a", Copy: "b", To: "c"}, "to": {Move: "a"}, "as": {Copy: "a", To: "b", As: "c"},
		"keep": {Move: "a", To: "b", Keep: true}, "equals": {Delete: "a", Equals: "00"}, "delete": {Delete: "a/**"},
		"gzip": {Gzip: "a["}, "algorithm": {Checksum: "a", Algorithm: "crc"}, "missing": {Delete: "a", Missing: "no"},
	} {
		var at *registry.ConfigError
		require.ErrorAs(t, c.Validate(), &at)
		require.Equal(t, key, at.Key)
	}
}
