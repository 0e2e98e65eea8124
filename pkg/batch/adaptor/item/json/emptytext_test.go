package json

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Rule D11b.
func TestAnEmptyTextOfJSONIsNotNull(t *testing.T) {
	t.Parallel()
	read := func(f row.Field) (row.Value, error) {
		s, err := row.NewSchema(f)
		require.NoError(t, err)
		r, err := newLinesReader(linesReaderConfig{Path: file(t, "in.jsonl", `{"a":""}`)}, item.RowOf("", s))
		require.NoError(t, err)
		require.NoError(t, r.Component().(item.Opener).Open(t.Context(), nil))
		defer func() { require.NoError(t, r.Component().(item.Closer).Close(t.Context())) }()
		items := r.NewItems(1)
		if err := r.Fill(t.Context(), items, 1); err != nil {
			return row.Value{}, err
		}
		return items.At(0).(item.Row).At(0), nil
	}
	for _, kind := range []row.Kind{row.Int, row.Float, row.DecimalKind, row.Bool, row.DateKind, row.Timestamp, row.UUIDKind, row.ListOf(row.String)} {
		_, err := read(row.Field{Name: "a", Kind: kind, Nullable: true})
		require.ErrorContains(t, err, `field a: "" is not of type `+kind.String()+` null; null_if: [""] reads it as null`)
		_, err = read(row.Field{Name: "a", Kind: kind, Nullable: true, Coerce: row.CoerceConvert})
		require.ErrorContains(t, err, `"" is not of type`)
		for _, f := range []row.Field{{Name: "a", Kind: kind, Nullable: true, Nulls: []string{""}}, {Name: "a", Kind: kind, Nullable: true, Coerce: row.CoerceNull}} {
			v, err := read(f)
			require.NoError(t, err)
			require.True(t, v.IsNull())
		}
	}
	for kind, want := range map[row.Kind]row.Value{row.String: row.StringValue(""), row.BytesKind: row.BytesText(""), row.JSONKind: row.JSONValue(`""`)} {
		v, err := read(row.Field{Name: "a", Kind: kind, Nullable: true})
		require.NoError(t, err)
		require.Equal(t, want, v)
	}
}
