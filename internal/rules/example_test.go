package rules_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Applications get the repository from package batch: its own examples show the engine's types as well.
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
			if slices.Contains([]string{module + "/internal/model", module + "/internal/ports", module + "/internal/ports/taskports"}, i) &&
				slices.Contains([]string{"pkg/batch/chunk", "pkg/batch/step", "pkg/batch/repository", "pkg/batch/repository/tasks"}, s.dir) {
				continue
			}
			if dir, ours := strings.CutPrefix(i, module+"/internal/"); ours {
				require.True(t, isTestKit("internal/"+dir), "%s/%s imports internal/%s, which no application can", s.dir, s.name, dir)
			}
		}
	}
	require.Greater(t, n, 20)
}
