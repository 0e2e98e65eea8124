// Package itemkit helps the tests of the shipped readers and writers. Applications have itemtest.
//
// It imports core/item and the standard library. Only tests import it.
package itemkit

import (
	"os"
	"path/filepath"
	"testing"
)

// Parts returns the unpublished files to path, one for each attempt that left one.
func Parts(t testing.TB, path string) []string {
	t.Helper()
	names, err := filepath.Glob(path + ".part.*")
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// RemoveParts removes the files of Parts.
func RemoveParts(t testing.TB, path string) {
	t.Helper()
	for _, name := range Parts(t, path) {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}
