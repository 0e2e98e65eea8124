package rules_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func walkModule(dir string, visit func(file string, d fs.DirEntry) error) error {
	return fs.WalkDir(os.DirFS(dir), ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			if err == nil && file != ".git" { // a file in a second working tree
				err = visit(file, d)
			}
			return err
		}
		name := d.Name()
		hidden := len(name) > 1 && name[0] == '.' && name != ".ci"
		if hidden || name == "testdata" || name == "vendor" || file == "bin" {
			return fs.SkipDir
		}
		if _, err := os.Stat(filepath.Join(dir, file, "go.mod")); err == nil && file != "." && file != "contrib" {
			return fs.SkipDir
		}
		return nil
	})
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "go.mod"))
	return dir
}
