package rules_test

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A small job needs package batch, and one more at most: cli, tx, batchtest, ...
func TestAFileOfASmallJobImportsTwoPackagesOfOurs(t *testing.T) {
	t.Parallel()
	var files []string
	for _, pattern := range []string{"example/hello/*.go", "example/birdstrikes/*.go", "example/embed/*.go", "example/weaver/*.go", "internal/draft/app/*.go.txt"} {
		found, err := filepath.Glob(filepath.Join(root(t), pattern))
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		files = append(files, found...)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue // such as of the example itself, with our own kits
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		parsed, err := parser.ParseFile(token.NewFileSet(), file, strings.ReplaceAll(string(text), "{{name}}", "app"), parser.ImportsOnly)
		require.NoError(t, err)
		var ours []string
		for _, i := range parsed.Imports {
			if path := strings.Trim(i.Path.Value, `"`); strings.HasPrefix(path, module) {
				ours = append(ours, path)
			}
		}
		require.LessOrEqual(t, len(ours), 2, "%s: %s", file, ours)
	}
}
