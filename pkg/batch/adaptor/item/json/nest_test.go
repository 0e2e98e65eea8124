package json

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func places(t *testing.T, values ...row.Value) (item.Type, item.Items) {
	t.Helper()
	schema, err := row.NewSchema(
		row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "city", Kind: row.String, Nullable: true, From: "at.city"},
		row.Field{Name: "mag", Kind: row.Float}, row.Field{Name: "geometry", Kind: row.String, Nullable: true},
	)
	require.NoError(t, err)
	items := item.NewSlice[item.Row](1)
	items.Append(row.New(schema, values), item.Meta{})
	return item.RowOf("place", schema), items
}

// Rule D9c.
func TestFieldsAreWrittenWhereTheirKeysSay(t *testing.T) {
	t.Parallel()
	in, items := places(t, row.IntValue(7), row.StringValue("Å\"b"), row.FloatValue(4.5), row.StringValue(`{"type":"Point", "x":[1,2]}`))
	for _, c := range []struct {
		cfg  writerConfig
		want string
	}{
		{writerConfig{Keys: map[string]string{"properties.mag": "mag", "properties.where.city": "city", "id": "id", "geometry": "geometry"}, Raw: []string{"geometry"}},
			`{"id":7,"properties":{"where":{"city":"Å\"b"},"mag":4.5},"geometry":{"type":"Point", "x":[1,2]}}`},
		{writerConfig{Keys: map[string]string{`["a.b"].c`: "id"}}, `{"a.b":{"c":7}}`},
		{writerConfig{Raw: []string{"geometry"}}, `{"id":7,"at.city":"Å\"b","mag":4.5,"geometry":{"type":"Point", "x":[1,2]}}`},
	} {
		c.cfg.Path = filepath.Join(t.TempDir(), "out.jsonl")
		w, err := newLinesWriter(c.cfg, registry.BuildContext{In: in, FileMode: 0o600})
		require.NoError(t, err)
		require.NoError(t, w.Component().(item.Opener).Open(t.Context(), nil))
		require.NoError(t, w.Write(t.Context(), items))
		require.NoError(t, w.Component().(item.Preparer).Prepare(t.Context()))
		files, err := filepath.Glob(c.cfg.Path + ".part.*")
		require.NoError(t, err)
		require.Len(t, files, 1)
		text, err := os.ReadFile(files[0])
		require.NoError(t, err)
		require.NoError(t, w.Component().(item.Closer).Close(t.Context()))
		require.Equal(t, c.want+"\n", string(text))
	}
	in, items = places(t, row.IntValue(7), row.Value{}, row.FloatValue(1), row.StringValue("{"))
	w, err := newArrayWriter(writerConfig{Path: filepath.Join(t.TempDir(), "out.json"), Raw: []string{"geometry"}}, registry.BuildContext{In: in, FileMode: 0o600})
	require.NoError(t, err)
	require.NoError(t, w.Component().(item.Opener).Open(t.Context(), nil))
	err = w.Write(t.Context(), items)
	require.ErrorContains(t, err, "field geometry is not JSON text (raw): the text ends inside a value")
	require.True(t, exception.IsSkippable(err))
	require.NoError(t, w.Component().(item.Closer).Close(t.Context()))
}

func TestKeysThatCannotBeAreRefusedAtLoad(t *testing.T) {
	t.Parallel()
	in, _ := places(t)
	for _, c := range []struct {
		cfg  writerConfig
		want string
	}{
		{writerConfig{Keys: map[string]string{"a": "id", "a.b": "mag"}}, "a is defined already, as a value or as an object"},
		{writerConfig{Keys: map[string]string{"a": "citty"}}, "the item has no field citty (did you mean city?)"},
		{writerConfig{Keys: map[string]string{"a[0]": "id"}}, `"a[0]" has an index: only keys are allowed here`},
		{writerConfig{Raw: []string{"geom"}}, "the item has no field geom"},
	} {
		_, err := newLayout(&c.cfg, in)
		require.ErrorContains(t, err, c.want)
	}
	_, err := newLayout(&writerConfig{Keys: map[string]string{"a": "ID"}}, item.TypeOf[thing]("thing"))
	require.ErrorContains(t, err, "it is for rows with known fields, not for thing")
}
