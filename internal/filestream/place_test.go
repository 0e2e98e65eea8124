package filestream_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testplace"
)

func TestTheDiskIsAPlace(t *testing.T) {
	t.Parallel()
	testplace.Place(t, func(t testing.TB) testplace.Config {
		dir, err := filepath.EvalSymlinks(t.TempDir())
		require.NoError(t, err)
		return testplace.Config{
			In: context.Background(), Folder: dir,
			Put: func(t testing.TB, name, text string) {
				path := filepath.Join(dir, name)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
				require.NoError(t, os.WriteFile(path+".new", []byte(text), 0o600))
				require.NoError(t, os.Rename(path+".new", path))
			},
			Get: func(t testing.TB, name string) string {
				text, err := os.ReadFile(filepath.Join(dir, name))
				if !os.IsNotExist(err) {
					require.NoError(t, err)
				}
				return string(text)
			},
			Names: func(t testing.TB) (list []string) {
				require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
					if err == nil && !d.IsDir() {
						list = append(list, path[len(dir)+1:])
					}
					return err
				}))
				return list
			},
		}
	})
}
