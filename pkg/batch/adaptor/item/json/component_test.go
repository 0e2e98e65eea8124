package json

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

type family struct {
	name   string
	config func(path string, itemType item.Type, longest registry.Size) any
}

func families() []family {
	return []family{
		{"json", func(path string, itemType item.Type, longest registry.Size) any {
			return &readerConfig{Path: path, Item: itemType, MaxLine: longest}
		}},
		{"jsonl", func(path string, itemType item.Type, longest registry.Size) any {
			return &linesReaderConfig{Path: path, Item: itemType, MaxLine: longest}
		}},
	}
}

func (f family) component(t *testing.T, kind registry.Kind) registry.Component {
	t.Helper()
	all, err := registry.New(Components(), nil, nil)
	require.NoError(t, err)
	c, ok := all.Component(kind, f.name)
	require.True(t, ok)
	return c
}

func file(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if strings.HasSuffix(name, ".gz") {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err := z.Write([]byte(content))
		require.NoError(t, errors.Join(err, z.Close()))
		content = b.String()
	}
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func rows(t require.TestingT) item.Type {
	s, err := row.NewSchema(
		row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "title", Kind: row.String, From: "name", Nullable: true, Optional: true})
	require.NoError(t, err)
	return item.RowOf("", s)
}

func seen(t testing.TB, path string) string {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	require.NoError(t, err)
	if strings.HasSuffix(path, ".gz") {
		z, err := gzip.NewReader(bytes.NewReader(data))
		require.NoError(t, err)
		data, err = io.ReadAll(z)
		require.NoError(t, err)
	}
	return string(data)
}

func TestTheComponentsAreReaderAndWriter(t *testing.T) {
	t.Parallel()
	for _, f := range families() {
		rowType := rows(t)
		path := filepath.Join(t.TempDir(), "file")
		ctx := context.Background()

		writer := f.component(t, registry.KindWriter)
		taken, err := writer.Types(&writerConfig{Path: path}, rowType)
		require.NoError(t, err)
		w, err := writer.New(ctx, &writerConfig{Path: path}, registry.BuildContext{In: taken})
		require.NoError(t, err)
		require.Implements(t, (*item.Writer)(nil), w)
		for _, role := range []any{(*item.Opener)(nil), (*item.Positioner)(nil), (*item.Preparer)(nil), (*item.Rewinder)(nil), (*item.Finisher)(nil), (*item.Closer)(nil)} {
			require.Implements(t, role, w.(item.Writer).Component())
		}

		reader := f.component(t, registry.KindReader)
		out, err := reader.Types(f.config(path, rowType, 0), nil)
		require.NoError(t, err)
		require.Equal(t, rowType, out)
		r, err := reader.New(ctx, f.config(path, rowType, 0), registry.BuildContext{Out: out})
		require.NoError(t, err)
		require.Implements(t, (*item.Reader)(nil), r)
		for _, role := range []any{(*item.Opener)(nil), (*item.Positioner)(nil), (*item.MetaReader)(nil), (*item.Closer)(nil)} {
			require.Implements(t, role, r.(item.Reader).Component())
		}
	}
}

func TestTheItemMustNameItsFields(t *testing.T) {
	t.Parallel()
	open, err := row.Open()
	require.NoError(t, err)
	for _, f := range families() {
		for _, item := range []item.Type{nil, item.RowOf("", open)} {
			_, err := f.component(t, registry.KindReader).Types(f.config("", item, 0), nil)
			var key *registry.ConfigError
			require.ErrorAs(t, err, &key)
			require.Equal(t, "item", key.Key)
		}
		require.ErrorContains(t, f.config("", nil, -1).(interface{ Validate() error }).Validate(), "max_line")
	}
}

func TestANameThatIsMeantAsAPathMustBeOne(t *testing.T) {
	t.Parallel()
	s, err := row.NewSchema(row.Field{Name: "lon", Kind: row.Float, From: "at[0"})
	require.NoError(t, err)
	type place struct {
		Lon float64 `from:"at[-1]"`
		Own string  `json:"own" from:"at[x"`
	}
	for _, f := range families() {
		for want, item := range map[string]item.Type{"field lon: \"at[0\" is not a path": item.RowOf("", s), "field Lon: \"at[-1]\" is not a path": item.TypeOf[place]("")} {
			_, err := f.component(t, registry.KindReader).Types(f.config("", item, 0), nil)
			var key *registry.ConfigError
			require.ErrorAs(t, err, &key)
			require.Equal(t, "item", key.Key)
			require.ErrorContains(t, err, want)
		}
	}
}

func TestAMissingFileIsNamedByItsAbsolutePath(t *testing.T) {
	t.Parallel()
	abs, _ := filepath.Abs("not/there.json")
	for _, f := range families() {
		r, err := f.component(t, registry.KindReader).New(context.Background(), f.config("not/there.json", nil, 0), registry.BuildContext{Out: rows(t)})
		require.NoError(t, err)
		err = r.(item.Reader).Component().(item.Opener).Open(context.Background(), nil)
		require.EqualError(t, err, f.name+": no such file: "+abs)
	}
}
