//test:plain

package logfolder_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/logfolder"
)

func TestALogIsWrittenOnceAndNeverReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "logs")
	folder := logfolder.New(path)
	for range 2 { // a process that was killed before it stored the reference puts it again
		ref, err := folder.Put(t.Context(), "attempt-1-0-Stdout.log", "hello\n")
		require.NoError(t, err)
		text, err := folder.Get(t.Context(), ref)
		require.NoError(t, err)
		require.Equal(t, "hello\n", text)
	}
	_, err := folder.Put(t.Context(), "attempt-1-0-Stdout.log", "of another repository\n")
	require.ErrorIs(t, err, logfolder.ErrOtherText)
	text, err := folder.Get(t.Context(), "attempt-1-0-Stdout.log")
	require.NoError(t, err)
	require.Equal(t, "hello\n", text)
	files, err := os.ReadDir(path)
	require.NoError(t, err)
	require.Len(t, files, 1, "nothing else is left")
	_, err = folder.Put(t.Context(), "../x", "")
	require.ErrorContains(t, err, "it must be a file name")
	_, err = folder.Get(t.Context(), "../x")
	require.ErrorContains(t, err, "it must be a file name")
}
