// Package guide keeps the documentation true: the tables of docs/fault-tolerance.md are the data of these
// tests, the examples of it and of the readme are run as they are printed, and the names in
// docs/architecture.md, docs/sources.md and the files of deploy/ exist.
//
// It imports batchtest and the kits for tests; nothing imports it.
package guide

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "go.mod"))
	return dir
}

func page(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(path)))
	require.NoError(t, err)
	return string(text)
}

func section(t *testing.T, text, heading string) string {
	t.Helper()
	_, below, found := strings.Cut(text, "\n"+heading+"\n")
	require.True(t, found, "there is no heading %q", heading)
	level, _, _ := strings.Cut(heading, " ")
	below, _, _ = strings.Cut(below, "\n"+level+" ")
	return below
}

func table(t *testing.T, text string, heading ...string) [][]string {
	t.Helper()
	var rows [][]string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if len(rows) > 0 {
				break
			}
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		require.Len(t, cells, len(heading), line)
		rows = append(rows, cells)
	}
	require.Greater(t, len(rows), 2, "there is no table")
	require.Equal(t, heading, rows[0])
	return rows[2:]
}

func block(t *testing.T, text, language string) string {
	t.Helper()
	_, below, found := strings.Cut(text, "\n```"+language+"\n")
	require.True(t, found, "there is no block of %s", language)
	code, _, found := strings.Cut(below, "\n```")
	require.True(t, found)
	return code + "\n"
}
