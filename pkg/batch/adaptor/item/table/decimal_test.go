package table

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Rule D10.
func TestAColumnTakesADecimalWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db tx.Database) {
		long := strings.Repeat("9", 30) + ".25"
		exec(t, db, "create table money (id integer primary key, amount numeric(12,2), exact text, wide double precision, whole bigint)")
		sqlite := db.Dialect() == tx.SQLite
		for n, c := range []struct {
			column, value, problem string
			sqlite                 bool
		}{
			{column: "amount", value: "1.50"}, {column: "amount", value: "-0.01"}, {column: "amount", value: "1.500"}, {column: "amount", value: "9999999999.99"},
			{column: "amount", value: "1.505", problem: "the column has 2 digits after the point"},
			{column: "amount", value: long, problem: "SQLite keeps 15 digits in a column of this type", sqlite: true},
			{column: "exact", value: long},
			{column: "wide", value: "0.1"}, {column: "wide", value: long, problem: "does not fit column wide"},
			{column: "whole", value: "12.00"}, {column: "whole", value: "12.5", problem: "does not fit column whole"},
		} {
			if sqlite != c.sqlite && (c.sqlite || strings.Contains(c.problem, "after the point")) {
				continue
			}
			s := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: c.column, Kind: row.DecimalKind})
			w := writerTo(t, db, s, config{Name: "money"})
			err := write(db, w, s, []row.Value{row.IntValue(int64(n)), dec(c.value)})
			if c.problem != "" {
				require.ErrorContains(t, err, c.problem, c.value)
				require.True(t, exception.IsSkippable(err))
				continue
			}
			require.NoError(t, err, c.value)
			got := readAll(t, db, s, "select id, "+c.column+" from money where id = "+row.IntValue(int64(n)).String(), "id")
			require.True(t, dec(c.value).Equal(got[0][1]), "%s came back as %s", c.value, got[0][1])
		}
	})
}

func TestAColumnOfFloatsGivesADecimalOnlyWhereItIsExact(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.SQLite(t))
	exec(t, db, "create table f (id integer primary key, x real)")
	exec(t, db, "insert into f values (1, 0.1), (2, 0.1 + 0.2)")
	s := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "x", Kind: row.DecimalKind})
	require.Equal(t, dec("0.1"), readAll(t, db, s, "select * from f where id = 1", "id")[0][1])
	_, err := readSome(t, db, s, "select * from f where id = 2", "id")
	require.ErrorContains(t, err, "the float 0.30000000000000004, which has more digits than a float can store exactly")
}
