package core_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func TestAPathHasOneText(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "data"), 0o700))
	require.NoError(t, os.Symlink("data", filepath.Join(dir, "link")))
	for path, want := range map[string]string{
		"":                            "",
		"in.csv":                      "in.csv",
		"./in.csv":                    "in.csv",
		"data/../in.csv":              "in.csv",
		dir + "/in.csv":               "in.csv",
		dir + "//data/":               "data",
		"data/..in.csv":               "data/..in.csv",
		".":                           ".",
		"link/in.csv":                 "link/in.csv", // no link is resolved
		"../in.csv":                   filepath.Join(filepath.Dir(dir), "in.csv"),
		dir + "x/in.csv":              dir + "x/in.csv",
		"/var/./data/in.csv":          "/var/data/in.csv",
		filepath.Dir(dir) + "/in.csv": filepath.Join(filepath.Dir(dir), "in.csv"),
	} {
		text, err := core.PathText(dir, path)
		require.NoError(t, err)
		require.Equal(t, want, text, path)
	}
}

func TestAURLIsNoPath(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"gs://bucket/in.csv": "gs://bucket/in.csv is a URL, but only paths of a disk and s3:// are read and written; copy the file to a disk first",
		"S3://key:secret@host/b/in.csv?X-Amz-Signature=secret": "S3://host/b/in.csv is a URL with a user",
		"s3://b/in.csv?X-Amz-Signature=secret":                 "s3://b/in.csv is signed",
		"s3://bucket":                                          "s3://bucket names no file: it is written s3://bucket/key",
		"file:///data/in.csv":                                  "write the path itself: /data/in.csv",
		"https://host/in.csv":                                  "the reader `http` reads the pages of an API",
	} {
		_, err := core.PathText("", url)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "secret")
		_, err = core.ParameterSpec{Name: "in", Type: core.TypePath}.Place(url)
		require.ErrorContains(t, err, "parameter in: ")
	}
	for _, folder := range []string{"", "/data"} { // a URL has one text (rule L1a)
		text, err := core.PathText(folder, "S3://Bucket/A//../in.csv")
		require.NoError(t, err)
		require.Equal(t, "s3://bucket/A//../in.csv", text)
	}
	for _, path := range []string{"a://b", "./s3://b", "in/s3://b", "://b", "a b://c"} {
		_, err := core.PathText("", path)
		require.NoError(t, err, path)
	}
}

func TestAPathInALinkedFolderHasTheTextOfTheFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "data"), 0o700))
	require.NoError(t, os.Symlink("real", link))
	for path, want := range map[string]string{
		filepath.Join(folder, "in.csv"):       "in.csv",
		filepath.Join(link, "in.csv"):         "in.csv",
		filepath.Join(link, "data", "x.csv"):  "data/x.csv",
		filepath.Join(link, "new", "out.csv"): "new/out.csv", // it does not exist yet
		filepath.Join(dir, "in.csv"):          filepath.Join(dir, "in.csv"),
	} {
		for _, from := range []string{folder, link} {
			text, err := core.PathText(from, path)
			require.NoError(t, err)
			require.Equal(t, want, text, "%s from %s", path, from)
		}
	}
}

func TestAPlacedParameterKnowsWhereItsPathIs(t *testing.T) {
	t.Parallel()
	spec := core.ParameterSpec{Name: "input", Type: core.TypePath, Identifying: true, Folder: "/jobs"}
	p, err := spec.Place("./in.csv")
	require.NoError(t, err)
	require.Equal(t, core.Parameter{Name: "input", Type: core.TypePath, Identifying: true, Value: "in.csv", Path: "/jobs/in.csv"}, p)

	params, err := core.NewParameters(p)
	require.NoError(t, err)
	text, err := json.Marshal(params)
	require.NoError(t, err)
	var read core.Parameters
	require.NoError(t, json.Unmarshal(text, &read))
	require.Equal(t, params, read)
	moved, _ := params.In("/moved").Get("input")
	require.Equal(t, "in.csv", moved.Value)
	require.Equal(t, "/moved/in.csv", moved.Path)

	here, err := os.Getwd()
	require.NoError(t, err)
	p, err = core.ParameterSpec{Name: "input", Type: core.TypePath}.Place("in.csv")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(here, "in.csv"), p.Value, "a job in no file has no folder: a restart may begin elsewhere")

	p, err = core.ParameterSpec{Name: "input", Type: core.TypeString, Folder: "/jobs"}.Place("./in.csv")
	require.NoError(t, err)
	require.Equal(t, "./in.csv", p.Value)
}
