package jsonfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/jsonfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

var framings = []string{"json", "items", "jsonl"}

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

func TestADocumentThatWasNotCompleteAtOpenFailsTheStep(t *testing.T) {
	t.Parallel()
	for framing, c := range map[string][3]string{
		"jsonl": {"{\"id\":1}\n{\"id\":2", "0}\n", ":2: the file grew while it was read"},
		"json":  {"[{\"id\":1},\n{\"id\":2", "0}]\n", "the file grew while it was read"},
		"items": {"{\"items\":[{\"id\":1}],\n\"n\":", "0}\n", "the file grew while it was read"},
	} {
		path := filepath.Join(t.TempDir(), "in."+framing)
		require.NoError(t, os.WriteFile(path, []byte(c[0]), 0o600))
		r := newReader(t, framing, path, rowsOf(t, row.Field{Name: "id", Kind: row.Int}))
		require.NoError(t, r.Component().(item.Opener).Open(t.Context(), nil))
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		require.NoError(t, err)
		_, err = f.WriteString(c[1])
		require.NoError(t, errors.Join(err, f.Close()))
		items := r.NewItems(1)
		require.NoError(t, r.Fill(t.Context(), items, 1))
		err = r.Fill(t.Context(), r.NewItems(1), 1)
		require.ErrorContains(t, err, c[2], framing)
		require.ErrorContains(t, err, path+":", framing)
		require.False(t, exception.IsSkippable(err), framing)
		require.NoError(t, r.Component().(item.Closer).Close(t.Context()))
	}
}
