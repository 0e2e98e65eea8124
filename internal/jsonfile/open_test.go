package jsonfile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/jsonfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// framings are how a test's documents become a file.
var framings = []string{"json", "items", "jsonl"}

// newReader returns the reader of a framing.
func newReader(t testing.TB, framing, path string, itemType item.Type) item.Reader {
	t.Helper()
	cfg := jsonfile.Config{Name: framing, Path: path, MaxLine: 1 << 20}
	documents := jsonfile.NewLines(cfg)
	switch framing {
	case "json":
		documents = jsonfile.NewArray(cfg, nil)
	case "items":
		documents = jsonfile.NewArray(cfg, []string{"items"})
	}
	r, err := itemType.FromDocuments(documents)
	require.NoError(t, err)
	return r
}
