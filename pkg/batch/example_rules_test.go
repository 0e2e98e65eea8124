package batch_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An example shows what an application can write: it imports nothing internal but the kits that give it a
// database.
func TestExamplesImportPublicPackagesOnly(t *testing.T) {
	t.Parallel()
	sources, err := readSources(root(t))
	require.NoError(t, err)
	n := 0
	for _, s := range sources {
		if !strings.HasPrefix(s.name, "example") || !strings.HasSuffix(s.name, "_test.go") || !strings.HasPrefix(s.dir, "pkg/") {
			continue
		}
		n++
		for _, i := range s.imports {
			if dir, ours := strings.CutPrefix(i, module+"/internal/"); ours {
				require.True(t, isTestKit("internal/"+dir), "%s/%s imports internal/%s, which no application can", s.dir, s.name, dir)
			}
		}
	}
	require.Greater(t, n, 20)
}
