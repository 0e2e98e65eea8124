package browser

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Files of others, as they were published in the npm registry. None is in the program.
func TestFilesOfOthersAreThosePublished(t *testing.T) {
	t.Parallel()
	const name, version, license = "axe-core", "4.14.1", "MPL-2.0"
	sums := map[string]string{
		"axe.min.js":            "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c",
		"LICENSE":               "af175b9d96ee93c21a036152e1b905b0b95304d4ae8c2c921c7609100ba8df7e",
		"LICENSE-3RD-PARTY.txt": "4f8563870d0fca38bbc3e00b6f670cb7fa9f380ba9f26a7f7d1184a6b18b1653",
	}
	files, err := os.ReadDir("axe")
	require.NoError(t, err)
	require.Len(t, files, len(sums))
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join("axe", f.Name()))
		require.NoError(t, err)
		sum := sha256.Sum256(text)
		require.Equal(t, sums[f.Name()], hex.EncodeToString(sum[:]), "%s of %s %s (%s)", f.Name(), name, version, license)
	}
}
