package csv

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func TestTheComponentsAreReaderAndWriter(t *testing.T) {
	t.Parallel()
	components, err := registry.New(Components(), nil, nil)
	require.NoError(t, err)

	schema, err := row.NewSchema(row.Field{Name: "id", Kind: row.Int})
	require.NoError(t, err)
	itemType := item.RowOf("", schema)
	path := filepath.Join(t.TempDir(), "file")
	ctx := context.Background()

	writer, _ := components.Component(registry.KindWriter, "csv")
	taken, err := writer.Types(&writerConfig{Path: path}, itemType)
	require.NoError(t, err)
	w, err := writer.New(ctx, &writerConfig{Path: path}, registry.BuildContext{In: taken})
	require.NoError(t, err)
	require.Implements(t, (*item.Writer)(nil), w)
	for _, role := range []any{(*item.Opener)(nil), (*item.Positioner)(nil), (*item.Preparer)(nil), (*item.Rewinder)(nil), (*item.Finisher)(nil), (*item.Closer)(nil)} {
		require.Implements(t, role, w.(item.Writer).Component())
	}

	reader, _ := components.Component(registry.KindReader, "csv")
	out, err := reader.Types(&readerConfig{Path: path, Item: itemType}, nil)
	require.NoError(t, err)
	require.Equal(t, itemType, out)
	r, err := reader.New(ctx, &readerConfig{Path: path, Item: itemType}, registry.BuildContext{Out: out})
	require.NoError(t, err)
	require.Implements(t, (*item.Reader)(nil), r)
	for _, role := range []any{(*item.Opener)(nil), (*item.Positioner)(nil), (*item.MetaReader)(nil), (*item.Closer)(nil)} {
		require.Implements(t, role, r.(item.Reader).Component())
	}
}
