package jsonl

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func TestTheModuleProvidesReaderAndWriter(t *testing.T) {
	t.Parallel()
	type groups struct {
		fx.In
		Components []core.Component `group:"surfin.components"`
		Factories  []core.Factory   `group:"surfin.factories"`
	}
	var got groups
	require.NoError(t, fx.New(Module(), fx.NopLogger, fx.Invoke(func(g groups) { got = g })).Err())
	registry, err := core.NewRegistry(got.Components, nil)
	require.NoError(t, err)
	registry, err = registry.WithFactories(got.Factories)
	require.NoError(t, err)

	schema, err := row.NewSchema(row.Field{Name: "id", Kind: row.Int})
	require.NoError(t, err)
	item := core.RowOf("", schema)
	path := filepath.Join(t.TempDir(), "file")
	ctx := context.Background()

	writer, _ := registry.Component(core.KindWriter, "jsonl")
	taken, err := writer.Types(&WriterConfig{Path: path}, item)
	require.NoError(t, err)
	make1, _ := registry.Factory(core.KindWriter, "jsonl")
	w, err := make1.New(ctx, &WriterConfig{Path: path}, core.Use{In: taken})
	require.NoError(t, err)
	require.Implements(t, (*core.Writer)(nil), w)
	for _, role := range []any{(*core.Opener)(nil), (*core.Positioner)(nil), (*core.Preparer)(nil), (*core.Rewinder)(nil), (*core.Finisher)(nil), (*core.Closer)(nil)} {
		require.Implements(t, role, w.(core.Writer).Component())
	}

	reader, _ := registry.Component(core.KindReader, "jsonl")
	out, err := reader.Types(&ReaderConfig{Path: path, Item: item}, nil)
	require.NoError(t, err)
	require.Equal(t, item, out)
	make1, _ = registry.Factory(core.KindReader, "jsonl")
	r, err := make1.New(ctx, &ReaderConfig{Path: path, Item: item}, core.Use{Out: out})
	require.NoError(t, err)
	require.Implements(t, (*core.Reader)(nil), r)
	for _, role := range []any{(*core.Opener)(nil), (*core.Positioner)(nil), (*core.MetaReader)(nil), (*core.Closer)(nil)} {
		require.Implements(t, role, r.(core.Reader).Component())
	}
}
