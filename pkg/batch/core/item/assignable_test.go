package item_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func TestAGoTypeBehindRowsIsToldOfTheTypeOfRows(t *testing.T) {
	t.Parallel()
	schema, err := row.NewSchema(row.Field{Name: "line", Kind: row.String})
	require.NoError(t, err)
	type entry struct{ Text string }
	rows, entries := item.RowOf("", schema), item.TypeOf[entry]("entry")
	require.ErrorContains(t, item.Assignable(rows, entries), "which are rows: let the Go component take batch.Row, or let the reader return a registered Go type (item: NAME)")
	require.NotContains(t, item.Assignable(entries, rows).Error(), "batch.Row")
	require.NoError(t, item.Assignable(rows, rows))
}
