package query_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/query"
	"github.com/surfin-batch/surfin/pkg/batch/chunk/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Rows of several pages, of one, and none; some of them do not fit their type.
func TestTheReaderKeepsTheContractOfReaders(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		exec(t, db, "create table entry (id integer primary key, amount text)")
		for n := range 12 {
			exec(t, db, fmt.Sprintf("insert into entry values (%d, '%d')", n*3, n))
		}
		exec(t, db, "update entry set amount = 'much' where id in (3, 18)")
		s := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "amount", Kind: row.Int})
		for _, text := range []string{"select * from entry", "select * from entry where id = 0", "select * from entry where id < 0"} {
			for _, fetch := range []int{1, 5} {
				itemtest.Reader(t, itemtest.ReaderConfig{New: func(t testing.TB) item.Reader {
					r, err := query.New(db, query.Config{SQL: statement(text), Key: []string{"id"}, Fetch: fetch}, s)
					require.NoError(t, err)
					reader, err := item.RowOf("", s).FromRecords(r)
					require.NoError(t, err)
					return reader
				}})
			}
		}
	})
}
