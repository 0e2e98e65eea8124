package csv

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func TestTheComponentsAreReaderAndWriter(t *testing.T) {
	t.Parallel()
	components, err := registry.New(Components(), nil, nil)
	require.NoError(t, err)

	schema, err := row.NewSchema(row.Field{Name: "id", Kind: row.Int})
	require.NoError(t, err)
	item := core.RowOf("", schema)
	path := filepath.Join(t.TempDir(), "file")
	ctx := context.Background()

	writer, _ := components.Component(registry.KindWriter, "csv")
	taken, err := writer.Types(&WriterConfig{Path: path}, item)
	require.NoError(t, err)
	w, err := writer.New(ctx, &WriterConfig{Path: path}, registry.BuildContext{In: taken})
	require.NoError(t, err)
	require.Implements(t, (*core.Writer)(nil), w)
	for _, role := range []any{(*core.Opener)(nil), (*core.Positioner)(nil), (*core.Preparer)(nil), (*core.Rewinder)(nil), (*core.Finisher)(nil), (*core.Closer)(nil)} {
		require.Implements(t, role, w.(core.Writer).Component())
	}

	reader, _ := components.Component(registry.KindReader, "csv")
	out, err := reader.Types(&ReaderConfig{Path: path, Item: item}, nil)
	require.NoError(t, err)
	require.Equal(t, item, out)
	r, err := reader.New(ctx, &ReaderConfig{Path: path, Item: item}, registry.BuildContext{Out: out})
	require.NoError(t, err)
	require.Implements(t, (*core.Reader)(nil), r)
	for _, role := range []any{(*core.Opener)(nil), (*core.Positioner)(nil), (*core.MetaReader)(nil), (*core.Closer)(nil)} {
		require.Implements(t, role, r.(core.Reader).Component())
	}
}
