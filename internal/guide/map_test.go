package guide

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const maxRooms = 8

var pathOnPage = regexp.MustCompile("`((?:pkg|internal|cmd|example|docs|jobs|deploy|bench|tools)/[^`<>* ]+)`")

// fileInRoom is a file that is named without its folder.
var fileInRoom = regexp.MustCompile("`([a-z]+\\.go)`")

func TestEveryPathOfTheMapExists(t *testing.T) {
	t.Parallel()
	text := page(t, "docs/architecture.md")
	found := pathOnPage.FindAllStringSubmatch(text, -1)
	require.Greater(t, len(found), 40)
	for _, match := range found {
		exists(t, match[1])
	}
	_, folders, ok := strings.Cut(section(t, text, "## Folders"), "```\n")
	require.True(t, ok)
	folders, _, _ = strings.Cut(folders, "```")
	listed := map[string]bool{}
	for line := range strings.Lines(folders) {
		if name, _, _ := strings.Cut(line, " "); name != "" {
			exists(t, name)
			listed[strings.TrimSuffix(name, "/")] = true
		}
	}
	for _, parent := range []string{".", "pkg/batch", "pkg/batch/core", "pkg/batch/adaptor", "internal"} {
		entries, err := os.ReadDir(filepath.Join(root(t), filepath.FromSlash(parent)))
		require.NoError(t, err)
		for _, e := range entries {
			if dir := path.Join(parent, e.Name()); e.IsDir() && hasCode(t, dir) {
				require.True(t, listed[dir] || isListedBelow(listed, dir) || isTestKit(dir), "the map does not have %s", dir)
			}
		}
	}
}

// The walks are tables of rooms: a package, a file in it, and its part in the walk.
func TestEachWalkHasAtMostEightRoomsThatExist(t *testing.T) {
	t.Parallel()
	text := section(t, page(t, "docs/architecture.md"), "## Four walks")
	for _, heading := range []string{"### An item", "### A job file", "### A failure", "### A stop"} {
		rooms := table(t, section(t, text, heading), "", "room", "file", "work")
		require.LessOrEqual(t, len(rooms), maxRooms, heading)
		for _, cells := range rooms {
			exists(t, path.Join(strings.Trim(cells[1], "`"), strings.Trim(cells[2], "`")))
			for _, other := range fileInRoom.FindAllStringSubmatch(cells[3], -1) {
				exists(t, path.Join(strings.Trim(cells[1], "`"), other[1]))
			}
		}
	}
}

func exists(t *testing.T, name string) {
	t.Helper()
	_, err := os.Stat(filepath.Join(root(t), filepath.FromSlash(name)))
	require.NoError(t, err, "docs/architecture.md names %s", name)
}

func hasCode(t *testing.T, dir string) bool {
	t.Helper()
	for _, pattern := range []string{"*.go", "*/*.go", "*/*/*.go"} {
		files, err := filepath.Glob(filepath.Join(root(t), filepath.FromSlash(dir), pattern))
		require.NoError(t, err)
		if len(files) > 0 && !strings.HasPrefix(path.Base(dir), ".") {
			return true
		}
	}
	return false
}

func isListedBelow(listed map[string]bool, dir string) bool {
	for name := range listed {
		if strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return false
}

func isTestKit(dir string) bool { return strings.HasPrefix(dir, "internal/test") }
