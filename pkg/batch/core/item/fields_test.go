package item_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// libraryUUID is like the uuid types of libraries.
type libraryUUID [16]byte

type document struct {
	ID    row.UUID
	Other *libraryUUID
	Doc   json.RawMessage
	Text  row.JSON
	Data  []byte
}

type records struct{ values [][]row.Value }

func (r *records) WriteRecords(_ context.Context, _ *row.Schema, records [][]row.Value) error {
	r.values = append(r.values, records...)
	return nil
}

func (r *records) ReadRecord(_ context.Context, dst []row.Value) error {
	copy(dst, r.values[0])
	return nil
}

func (r *records) Schema() *row.Schema { return nil }

// Rule D12.
func TestGoFieldsOfJSONUUIDsAndBytesAreValues(t *testing.T) {
	t.Parallel()
	typ := item.TypeOf[document]("document")
	require.Equal(t, "{id: uuid, other: uuid null, doc: json null, text: json, data: bytes null}", typ.Schema().String())
	one := document{ID: row.UUID{1}, Other: &libraryUUID{2}, Doc: json.RawMessage(`{"a":[1]}`), Text: `"x"`, Data: []byte{0, 255}}
	for _, want := range []document{one, {Text: `{}`}} {
		kept := &records{}
		w, err := typ.ToRecords(kept)
		require.NoError(t, err)
		items := item.NewSlice[document](1)
		items.Append(want, item.Meta{})
		require.NoError(t, w.Write(t.Context(), items))
		r, err := typ.FromRecords(kept)
		require.NoError(t, err)
		again := item.NewSlice[document](1)
		require.NoError(t, r.Fill(t.Context(), again, 1))
		require.Equal(t, want, again.Items[0])
	}
	_, docs, err := writeItems(t, one)
	require.NoError(t, err)
	require.Equal(t, `{"ID":"01000000-0000-0000-0000-000000000000","Other":[2,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],"Doc":{"a":[1]},"Text":"x","Data":"AP8="}`, docs[0])
	type nested struct {
		ID  row.UUID        `from:"in.id"`
		Doc json.RawMessage `from:"in.doc"`
		B   []byte          `from:"in.b"`
	}
	read := again(t, item.TypeOf[nested](""), []byte(`{"in":{"id":"{01000000-0000-0000-0000-000000000000}","doc":{"a":1},"b":"AP8="}}`))
	require.Equal(t, nested{row.UUID{1}, json.RawMessage(`{"a":1}`), []byte{0, 255}}, read)
	w, err := typ.ToRecords(&records{})
	require.NoError(t, err)
	items := item.NewSlice[document](1)
	items.Append(document{Text: "{", Doc: one.Doc}, item.Meta{})
	err = w.Write(t.Context(), items)
	require.ErrorContains(t, err, "field text: it is not json")
	require.True(t, exception.IsSkippable(err))
}
