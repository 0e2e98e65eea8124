//test:plain

package files

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

func folder(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	return dir
}

func partition(t *testing.T, cfg config) (names, paths []string, err error) {
	t.Helper()
	p, err := newPartitioner(cfg)
	require.NoError(t, err)
	parts, err := p.Partition(context.Background(), &core.View{})
	for i, part := range parts {
		require.Equal(t, i, part.Index)
		path, _ := part.Context.Get("path")
		names, paths = append(names, part.Name), append(paths, path.(string))
	}
	return names, paths, err
}

func TestEveryFileThatMatchesIsAPartInTheOrderOfThePaths(t *testing.T) {
	t.Parallel()
	dir := folder(t, "b.csv", "a 1.csv", "c.txt", "sub.csv/x", "ü.csv")
	names, paths, err := partition(t, config{Glob: filepath.Join(dir, "*.csv")})
	require.NoError(t, err)
	require.Equal(t, []string{"a_1.csv", "b.csv", "ü.csv"}, names)
	require.Equal(t, []string{filepath.Join(dir, "a 1.csv"), filepath.Join(dir, "b.csv"), filepath.Join(dir, "ü.csv")}, paths)
}

func TestFilesOfOneNameAreToldApartByTheirFolders(t *testing.T) {
	t.Parallel()
	dir := folder(t, "1/in/a.csv", "2/in/a.csv", "2/in/b.csv", "2/on/a.csv", "3/in/a?.csv", "3/in/a*.csv")
	names, _, err := partition(t, config{Glob: filepath.Join(dir, "*", "*", "*.csv")})
	require.NoError(t, err)
	require.Equal(t, []string{"1/in/a.csv", "2/in/a.csv", "b.csv", "on/a.csv", "a_.csv", "a_.csv-2"}, names)
}

func TestNoFileIsNoPartitionUnlessOneIsRequired(t *testing.T) {
	t.Parallel()
	for _, glob := range []string{filepath.Join(folder(t), "*.csv"), filepath.Join(t.TempDir(), "missing", "*.csv")} {
		names, _, err := partition(t, config{Glob: glob})
		require.NoError(t, err)
		require.Empty(t, names)
		_, _, err = partition(t, config{Glob: glob, Required: true})
		require.ErrorContains(t, err, "no file matches "+glob)
	}
}

func TestAPathIsAbsoluteSoThatARestartElsewhereFindsTheFile(t *testing.T) {
	dir := folder(t, "in/a.csv")
	t.Chdir(dir)
	_, paths, err := partition(t, config{Glob: "in/a.csv"})
	require.NoError(t, err)
	require.Len(t, paths, 1)
	require.True(t, filepath.IsAbs(paths[0]))
}

func TestAFolderThatCannotBeReadIsAnErrorAndNotAnEmptyOne(t *testing.T) {
	t.Parallel()
	dir := folder(t, "file")
	_, _, err := partition(t, config{Glob: filepath.Join(dir, "file", "*.csv")})
	require.ErrorContains(t, err, "not a directory")
}

func TestAPatternThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	for glob, want := range map[string]string{"": "the pattern is missing", "a/[x": "is not a pattern", "a/**/b": "** is not supported"} {
		_, err := newPartitioner(config{Glob: glob})
		var at *registry.ConfigError
		require.ErrorAs(t, err, &at)
		require.Equal(t, "glob", at.Key)
		require.ErrorContains(t, err, want)
	}
}
