package table

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Rule MY5: ON DUPLICATE KEY would change the row of the other index.
func TestAnUpsertIntoMySQLNeverChangesTheRowOfAnotherIndex(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.MySQL(t))
	exec(t, db, "create table member (id int primary key, email varchar(50) unique, n int)")
	exec(t, db, "insert into member values (1, 'one', 1), (2, 'two', 2)")
	s := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "email", Kind: row.String}, row.Field{Name: "n", Kind: row.Int})
	of := func(id int64, email string, n int64) []row.Value {
		return []row.Value{row.IntValue(id), row.StringValue(email), row.IntValue(n)}
	}
	w := writerTo(t, db, s, config{Name: "member", Mode: modeUpsert, Key: []string{"id"}})
	for _, taken := range [][]row.Value{of(3, "two", 9), of(1, "two", 9)} {
		err := write(db, w, s, of(2, "two", 3), taken)
		require.True(t, dberr.IsUniqueViolation(err), "%v", err)
		require.ErrorContains(t, err, "email")
	}
	require.Equal(t, [][]row.Value{of(1, "one", 1), of(2, "two", 2)}, readAll(t, db, s, "select * from member", "id"))
	require.NoError(t, write(db, w, s, of(1, "first", 1), of(3, "three", 3), of(3, "third", 4), of(2, "two", 2)))
	require.Equal(t, [][]row.Value{of(1, "first", 1), of(2, "two", 2), of(3, "third", 4)}, readAll(t, db, s, "select * from member", "id"))

	_, err := newWriter(db, config{Name: "member", Mode: modeReplace}, s)
	require.Error(t, err)
	w, err = newWriter(db, config{Name: "member", Mode: modeUpsert, Key: []string{"n"}}, s)
	require.NoError(t, err)
	require.ErrorContains(t, w.Open(t.Context(), nil), "no unique index on the key (n)")
	exec(t, db, "create table old (id int primary key) engine = MyISAM")
	w, err = newWriter(db, config{Name: "old"}, schema(t, row.Field{Name: "id", Kind: row.Int}))
	require.NoError(t, err)
	require.ErrorContains(t, w.Open(t.Context(), nil), "of the engine MyISAM, which has no transactions")
}

// Rule MY6.
func TestAColumnOfMySQLChangesNoValue(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.MySQL(t))
	exec(t, db, `create table narrow (v varchar(3), c char(3), tiny tinytext, e enum('a', 'b''c'), s set('x', 'y'), at datetime(3), clock time, f float, n decimal(5, 2),
		big bigint unsigned, y year, bits bit(4), flag tinyint(1), raw binary(2), id smallint)`)
	texts := func(column string, values ...string) (list [][2]string) {
		for _, v := range values {
			list = append(list, [2]string{column, v})
		}
		return list
	}
	for kept, cells := range map[bool][][2]string{
		true: append(append(texts("v", "abc", "ab ", "äöü"), texts("e", "a", "b'c")...), [][2]string{
			{"c", "abc"}, {"s", ""}, {"s", "x,y"}, {"at", "2026-01-02T03:04:05.123Z"}, {"clock", "-101:02:03"}, {"f", "0.1"}, {"n", "999.99"},
			{"big", "18446744073709551615"}, {"y", "2026"}, {"bits", "15"}, {"flag", "true"}, {"id", "-32768"},
		}...),
		false: append(append(texts("v", "abcd", "abc "), texts("e", "A", "2", "1", "")...), [][2]string{
			{"c", "ab "}, {"tiny", strings.Repeat("ä", 128)}, {"s", "y,x"}, {"s", "x,x"}, {"s", "z"}, {"at", "2026-01-02T03:04:05.1234Z"}, {"clock", "10:00:00.5"}, {"f", "16777217"}, {"n", "1.005"},
			{"n", "1000"}, {"big", "18446744073709551616"}, {"big", "-1"}, {"y", "5"}, {"bits", "16"}, {"flag", "2"}, {"raw", "a"}, {"id", "32768"},
		}...),
	} {
		for _, c := range cells {
			s := schema(t, row.Field{Name: c[0], Kind: row.String})
			w := writerTo(t, db, s, config{Name: "narrow"})
			err := write(db, w, s, []row.Value{row.StringValue(c[1])})
			if kept {
				require.NoError(t, err, c)
				continue
			}
			require.Error(t, err, c)
			require.True(t, exception.IsSkippable(err) || dberr.IsInvalidData(err), "%v: %v", c, err)
		}
	}
}

func TestStatementsStayBelowThePacketOfTheServer(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.MySQL(t))
	exec(t, db, "create table big (id int primary key, doc longtext)")
	s := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "doc", Kind: row.String})
	var chunk [][]row.Value
	for n := range 40 {
		chunk = append(chunk, []row.Value{row.IntValue(int64(n)), row.StringValue(strings.Repeat(`'\`, 300_000))})
	}
	w := writerTo(t, db, s, config{Name: "big"})
	require.NoError(t, write(db, w, s, chunk...))
	require.Equal(t, [][]row.Value{{row.IntValue(40), row.IntValue(600_000)}}, readAll(t, db, nil, "select count(*) n, min(length(doc)) m from big", "n"))
	err := write(db, w, s, []row.Value{row.IntValue(99), row.StringValue(strings.Repeat("x", 17<<20))})
	require.True(t, exception.IsSkippable(err), "%v", err)
	require.ErrorContains(t, err, "max_allowed_packet")

	fields := make([]row.Field, 200)
	columns := make([]string, len(fields))
	for i := range fields {
		fields[i] = row.Field{Name: fmt.Sprintf("c%d", i), Kind: row.Int}
		columns[i] = fields[i].Name + " int"
	}
	exec(t, db, "create table wide ("+strings.Join(columns, ", ")+")")
	s, chunk = schema(t, fields...), nil
	for range 400 { // more than 65,535 variables
		chunk = append(chunk, ints(make([]int64, len(fields))...))
	}
	require.NoError(t, write(db, writerTo(t, db, s, config{Name: "wide"}), s, chunk...))
}

// Rule MY3: CREATE would commit, so it runs before, and stays.
func TestATableOfMySQLIsCreatedOutsideOfTheTransaction(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.MySQL(t))
	s := schema(t, row.Field{Name: "name", Kind: row.String}, row.Field{Name: "n", Kind: row.DecimalKind, Scale: new(2)})
	w, err := newWriter(db, config{Name: "made", Mode: modeUpsert, Key: []string{"name"}, Create: true}, s)
	require.NoError(t, err)
	require.NoError(t, w.Open(t.Context(), nil))
	record := func(name, n string) []row.Value { return []row.Value{row.StringValue(name), dec(n)} }
	require.NoError(t, write(db, w, s, record("a", "1.25"), record("A", "2.25"), record("a", "3.25")))
	require.Equal(t, [][]row.Value{record("A", "2.25"), record("a", "3.25")}, readAll(t, db, s, "select * from made", "name"))
	require.Equal(t, tx.MySQL, db.Dialect())
}
