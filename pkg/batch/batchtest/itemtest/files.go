package itemtest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Use returns a writer's build context.
func Use(in item.Type, attempt core.Attempt) registry.BuildContext {
	return registry.BuildContext{In: in, Attempt: func(context.Context) (core.Attempt, error) { return attempt, nil }}
}

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
