//test:plain

package query

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/batchtest/itemtest"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestTheReaderKeepsTheContractOfReaders(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db tx.Database) {
		exec(t, db, "create table entry (id integer primary key, amount text)")
		for n := range 12 {
			exec(t, db, fmt.Sprintf("insert into entry values (%d, '%d')", n*3, n))
		}
		exec(t, db, "update entry set amount = 'much' where id in (3, 18)")
		s := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "amount", Kind: row.Int})
		for _, text := range []string{"select * from entry", "select * from entry where id = 0", "select * from entry where id < 0"} {
			for _, fetch := range []int{1, 5} {
				itemtest.Reader(t, itemtest.ReaderConfig{New: func(t testing.TB) item.Reader {
					r, err := newReader(db, config{SQL: statement(text), Key: []string{"id"}, Fetch: fetch}, s)
					require.NoError(t, err)
					reader, err := item.RowOf("", s).FromRecords(r)
					require.NoError(t, err)
					return reader
				}})
			}
		}
	})
}

func TestTheReaderKeepsItsContractWhateverTheCellsHold(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db tx.Database) {
		texts := []string{"", " ", "0", "9223372036854775808", "1e400", "NaN", "2026-02-30", "\u00e4\u0301", "\ufeff1", "{}", "[1,", "\\x00", "'", strings.Repeat("x", 3<<20)}
		kind := map[tx.Dialect]string{tx.SQLite: "text", tx.Postgres: "text", tx.MySQL: "mediumtext"}
		exec(t, db, "create table entry (id integer primary key, cell "+kind[db.Dialect()]+")")
		for n, text := range texts {
			_, err := db.Conn().ExecContext(t.Context(), db.Dialect().Bind("insert into entry values (?, ?)"), n, text)
			require.NoError(t, err)
		}
		for kind := row.String; kind <= row.BytesKind; kind++ {
			s := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "cell", Kind: kind, Nullable: true})
			itemtest.Reader(t, itemtest.ReaderConfig{Restarts: 4, New: func(t testing.TB) item.Reader {
				r, err := newReader(db, config{SQL: statement("select * from entry"), Key: []string{"id"}, Fetch: 5}, s)
				require.NoError(t, err)
				reader, err := item.RowOf("", s).FromRecords(r)
				require.NoError(t, err)
				return reader
			}})
		}
	})
}
