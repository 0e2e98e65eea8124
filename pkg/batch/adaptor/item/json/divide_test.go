package json

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testkit/itemkit"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Rule P9.
func TestLinesAreReadInParts(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 500 {
		fmt.Fprintf(&text, "{\"id\": %d, \"name\": \"a\"}\n%s", i, []string{"", "\r\n", "  \n", "{\"id\": \n", `{"id": "x", "name": "` + strings.Repeat("y", 60) + "\"}\r\n"}[i%5])
	}
	path := file(t, "in.jsonl", text.String()+`{"id": 7, "name": "last"}`)
	require.Equal(t, 6, itemkit.Divided(t, func() item.Reader {
		r, err := newLinesReader(linesReaderConfig{Path: path, MaxLine: 50}, rows(t))
		require.NoError(t, err)
		return r
	}))
	path = file(t, "rows.jsonl", strings.Repeat(`{"at": [{"id": 1}, {"id": 2}, {"id": 3}]}`+"\n", 20))
	schema, err := row.NewSchema(row.Field{Name: "id", Kind: row.Int, From: "at.id"})
	require.NoError(t, err)
	itemkit.Divided(t, func() item.Reader {
		r, err := newLinesReader(linesReaderConfig{Path: path, Explode: "at"}, item.RowOf("", schema))
		require.NoError(t, err)
		return r
	})
}
