package query

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// SQLite renames a column true or false of a nested statement.
func TestAColumnKeepsItsNameWhateverItIs(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db tx.Database) {
		exec(t, db, `create table odd (id bigint not null, "true" text, "FALSE" bigint not null, "null" text, "select" text, column2 text)`)
		for _, values := range []string{"1, 'a', 7, 'n', 's', 'c'", "2, 'b', 8, 'n', 's', 'c'", "3, 'c', 9, 'n', 's', 'c'"} {
			exec(t, db, "insert into odd values ("+values+")")
		}
		const columns = `"id", "true", "FALSE", "null", "select", column2`
		for _, text := range []string{"select * from odd", "select " + columns + " from odd", "select * from odd union select * from odd"} {
			for _, c := range []config{{Key: []string{"id"}}, {Key: []string{"FALSE"}, Since: "FALSE"}, {Snapshot: true}} {
				c.SQL, c.Fetch = statement(text), 2
				r := opened(t, db, c, unknown(t), nil)
				require.Equal(t, []string{"id", "true", "FALSE", "null", "select", "column2"}, r.Schema().Names())
				all, err := rest(r)
				require.NoError(t, err)
				require.ElementsMatch(t, []string{"1|a|7|n|s|c", "2|b|8|n|s|c", "3|c|9|n|s|c"}, all)
				require.NoError(t, r.Close(t.Context()))
			}
		}
		s := schema(t, row.Field{Name: "is_true", From: "true", Kind: row.String}, row.Field{Name: "column2", Kind: row.String})
		all, err := rest(opened(t, db, config{SQL: statement("select * from odd"), Key: []string{"is_true"}}, s, nil))
		require.NoError(t, err)
		require.Equal(t, []string{"a|c", "b|c", "c|c"}, all)
	})
}
