package csv

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/chunk/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// badTexts returns the texts of the records that could not be read.
func badTexts(t *testing.T, cfg ReaderConfig, itemType item.Type) (list []item.RawText) {
	t.Helper()
	r, err := NewReader(cfg, itemType)
	require.NoError(t, err)
	require.NoError(t, r.Component().(item.Opener).Open(t.Context(), nil))
	defer func() { require.NoError(t, r.Component().(item.Closer).Close(context.Background())) }()
	for {
		err := r.Fill(t.Context(), r.NewItems(1), 1)
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			require.True(t, item.IsConsumed(err), err)
			list = append(list, r.Component().(item.RawReader).RawText())
		}
	}
}

func TestARecordThatCannotBeReadHasItsText(t *testing.T) {
	t.Parallel()
	content := "id,note\r\n1,a\r\n\r\n# no\r\nx,\"two\r\nlines\"\r\n2,b\r\n3,c,d\r\n4,e\"f\r\n5,\"open\r\n6," + strings.Repeat("y", 300) + "\r\n\xff,g\r\n7,h"
	ids := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "note", Kind: row.String})
	for _, name := range []string{"in.csv", "in.csv.gz"} {
		path := file(t, name, content)
		if name != "in.csv" {
			path = file(t, name, zip(t, content))
		}
		cfg := ReaderConfig{Path: path, Header: true, Comment: "#", MaxLine: 100}
		found := badTexts(t, cfg, ids)
		var texts []string
		for _, raw := range found {
			texts = append(texts, raw.Text)
			require.Equal(t, []string{"id", "note"}, raw.Columns)
			require.Equal(t, content[raw.Offset:raw.Offset+raw.Length], raw.Text)
		}
		require.Equal(t, []string{"x,\"two\r\nlines\"", "3,c,d", `4,e"f`, `5,"open`, "6," + strings.Repeat("y", 300), "\xff,g"}, texts)
		itemtest.Reader(t, itemtest.ReaderConfig{New: func(t testing.TB) item.Reader {
			r, err := NewReader(cfg, ids)
			require.NoError(t, err)
			return r
		}})
	}
}

func TestACorrectedTextIsReadWithoutTheFile(t *testing.T) {
	t.Parallel()
	ids := schema(t, row.Field{Name: "note", Kind: row.String}, row.Field{Name: "id", Kind: row.Int, From: "Number"})
	r, err := NewReader(ReaderConfig{Path: "gone.csv", Header: true, Delimiter: ";"}, ids)
	require.NoError(t, err)
	opener := r.Component().(item.RawOpener)
	raw := item.RawText{Text: "12;\"a;b\"", Offset: 70, Length: 9, Columns: []string{"Number", "note"}}
	items := r.NewItems(2)
	for range 2 {
		require.NoError(t, opener.OpenRaw(t.Context(), item.Meta{Path: "in.csv", Line: 9}, raw))
		require.NoError(t, r.Fill(t.Context(), items, items.Len()+1))
		require.ErrorIs(t, r.Fill(t.Context(), r.NewItems(1), 1), io.EOF)
	}
	require.Equal(t, item.Meta{Path: "in.csv", Line: 9}, items.Meta(1))
	require.Equal(t, "a;b 12", items.At(1).(item.Row).Values()[0].String()+" "+items.At(1).(item.Row).Values()[1].String())
	require.Same(t, items.At(0).(item.Row).Schema(), items.At(1).(item.Row).Schema())

	raw.Columns = nil
	other, err := NewReader(ReaderConfig{Path: "gone.csv", Header: true}, ids)
	require.NoError(t, err)
	require.ErrorContains(t, other.Component().(item.RawOpener).OpenRaw(t.Context(), item.Meta{}, raw), "gone.csv")
}
