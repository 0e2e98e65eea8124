package console_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/console"
)

func TestFilesOfOthersAreThosePublished(t *testing.T) {
	t.Parallel()
	listed := map[string]bool{}
	for _, f := range console.Foreigners() {
		content, err := os.ReadFile(filepath.Join("static", "vendor", f.File))
		require.NoError(t, err)
		sum := sha256.Sum256(content)
		require.Equal(t, f.SHA256, hex.EncodeToString(sum[:]), f.File)
		require.NotEmpty(t, f.Version)
		listed[f.File] = true
	}
	entries, err := os.ReadDir(filepath.Join("static", "vendor"))
	require.NoError(t, err)
	for _, e := range entries {
		require.True(t, listed[e.Name()], "%s is not listed", e.Name())
	}
	text, err := console.Licenses()
	require.NoError(t, err)
	require.Contains(t, text, "htmx.org 4.0.1 (0BSD)")
	require.Contains(t, text, "Zero-Clause BSD")
}
