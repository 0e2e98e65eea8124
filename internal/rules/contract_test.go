package rules_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/assembly"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

func TestEveryShippedReaderAndWriterIsCheckedAgainstItsContract(t *testing.T) {
	t.Parallel()
	reg, err := assembly.NewRegistry()
	require.NoError(t, err)
	calls := map[registry.Kind]string{registry.KindReader: "itemtest.Reader(", registry.KindWriter: "itemtest.Writer("}
	checked := 0
	for _, c := range reg.Components() {
		call, is := calls[c.Kind]
		if !is {
			continue
		}
		_, folder, inside := strings.Cut(c.Config.PkgPath(), "/pkg/batch/")
		require.True(t, inside, c.Name)
		files, err := filepath.Glob(filepath.Join("..", "..", "pkg", "batch", filepath.FromSlash(folder), "*_test.go"))
		require.NoError(t, err)
		called := false
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			called = called || strings.Contains(string(text), call)
		}
		require.True(t, called, "no test of %s calls %s...) for the %s %s", folder, call, c.Kind, c.Name)
		checked++
	}
	require.Greater(t, checked, 15)
}
