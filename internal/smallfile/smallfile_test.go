//test:plain

package smallfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/smallfile"
)

func TestAFileWithoutAnEndIsTooLarge(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/zero"); err == nil {
		_, err := smallfile.Read("/dev/zero")
		require.ErrorIs(t, err, smallfile.ErrTooLarge)
		require.ErrorContains(t, err, "/dev/zero has more than the allowed 1048576 bytes")
	}
	path := filepath.Join(t.TempDir(), "full")
	require.NoError(t, os.WriteFile(path, make([]byte, smallfile.MaxBytes), 0o600))
	text, err := smallfile.Read(path)
	require.NoError(t, err)
	require.Len(t, text, smallfile.MaxBytes)
	_, err = smallfile.Read(path + "not")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestNestingIsFoundWhereItIsTooDeep(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text         string
		line, column int
	}{
		{"a: [[[]]]", 0, 0},
		{"é: [[[[]]]]", 1, 7},
		{"a: {b: [\n {x: [1]} ]}", 2, 6},
		{"a: []\nb: []\nc: []\nd: []\ne: []", 0, 0},
		{"- - - 1", 0, 0},
		{"x:\n- - - - 1", 2, 7},
		{"a: 1 - 2 - 3 - 4 - 5", 0, 0},
	} {
		line, column, deeper := smallfile.Nested(c.text, 3)
		require.Equal(t, c.line > 0, deeper, c.text)
		require.Equal(t, c.line, line, c.text)
		require.Equal(t, c.column, column, c.text)
	}
	_, _, deeper := smallfile.Nested(strings.Repeat("[", 1000), 1000)
	require.False(t, deeper)
}
