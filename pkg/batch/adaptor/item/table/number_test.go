package table

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/testdb"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Rule D7.
func TestANumberHasTheSameTextInEveryColumnOfEveryDatabase(t *testing.T) {
	t.Parallel()
	dbs := []tx.Database{open(t, testdb.SQLite(t)), open(t, testdb.Postgres(t))}
	s := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "wide", Kind: row.Float}, row.Field{Name: "text", Kind: row.Float},
		row.Field{Name: "small", Kind: row.Float}, row.Field{Name: "whole", Kind: row.Float, Nullable: true},
		row.Field{Name: "flag", Kind: row.Bool}, row.Field{Name: "n", Kind: row.Int})
	writers := make([]*writer, len(dbs))
	for i, db := range dbs {
		exec(t, db, "create table numbers (id bigint, wide double precision, text text, small real, whole bigint, flag text, n text)")
		writers[i] = writerTo(t, db, s, config{Name: "numbers"})
	}
	rapid.Check(t, func(t *rapid.T) {
		var chunk [][]row.Value
		for id := range rapid.SampledFrom([]int64{1, 30}).Draw(t, "size") {
			x := rapid.OneOf(rapid.Float64(), rapid.Float64Range(-1e22, 1e22), rapid.Map(rapid.Int32(), func(n int32) float64 { return float64(n) }),
				rapid.SampledFrom([]float64{1e6, 1e-7, 1e15, math.Copysign(0, -1), 1 << 62, 0.1})).Draw(t, "x")
			whole := row.Value{}
			if _, ok := row.IntOf(x); ok {
				whole = row.FloatValue(x)
			}
			small := row.FloatValue(row.Real(rapid.Float32().Draw(t, "small")))
			chunk = append(chunk, []row.Value{row.IntValue(id), row.FloatValue(x), row.FloatValue(x), small, whole, row.BoolValue(x > 0), row.IntValue(int64(id))})
		}
		for i, db := range dbs {
			_, err := db.Conn().ExecContext(context.Background(), "delete from numbers")
			require.NoError(t, err)
			require.NoError(t, write(db, writers[i], s, chunk...))
			got := readAll(t, db, nil, "select * from numbers", "id")
			for n, record := range chunk {
				require.Equal(t, record[1], got[n][1])
				require.Equal(t, row.StringValue(record[1].String()), got[n][2], "%s", db.Dialect())
				require.Equal(t, record[3].String(), got[n][3].String(), "%s", db.Dialect())
				if record[4].IsNull() {
					require.True(t, got[n][4].IsNull())
				} else {
					require.Equal(t, record[4].Float(), float64(got[n][4].Int()))
				}
				require.Equal(t, row.StringValue(record[5].String()), got[n][5])
				require.Equal(t, row.StringValue(record[6].String()), got[n][6])
			}
		}
	})
}

func TestAValueThatItsColumnCannotHoldIsAnInvalidItemOnEveryDatabase(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		exec(t, db, "create table narrow (n bigint, flag boolean, day date, at timestamp, wide double precision, exact numeric)")
		for _, c := range []struct {
			column string
			value  row.Value
			text   string // empty means that it fits
		}{
			{"n", row.FloatValue(1_000_000), ""},
			{"n", row.FloatValue(-1 << 63), ""},
			{"n", row.BoolValue(true), ""},
			{"n", row.FloatValue(1.5), "field x: 1.5 does not fit column n of type "},
			{"n", row.FloatValue(1 << 63), "field x: 9223372036854776000 does not fit column n of type "},
			{"n", row.DateValue(0), "field x: 1970-01-01 does not fit column n of type "},
			{"flag", row.IntValue(1), ""},
			{"flag", row.IntValue(2), "field x: 2 does not fit column flag of type boolean"},
			{"day", at("2026-11-22T00:00:00Z"), ""},
			{"day", at("2026-11-22T10:00:00Z"), "field x: 2026-11-22T10:00:00Z does not fit column day of type date"},
			{"at", row.DateValue(1), ""},
			{"wide", row.IntValue(1 << 60), ""},
			{"wide", row.IntValue(1<<53 + 1), "field x: 9007199254740993 does not fit column wide of type double precision"},
			{"exact", row.IntValue(1<<53 + 1), ""},
		} {
			s := schema(t, row.Field{Name: "x", Kind: c.value.Kind()})
			w := writerTo(t, db, s, config{Name: "narrow", Columns: map[string]string{c.column: "x"}})
			for _, size := range []int{1, 50} {
				exec(t, db, "delete from narrow")
				chunk := make([][]row.Value, size)
				for i := range chunk {
					chunk[i] = []row.Value{c.value}
				}
				err := write(db, w, s, chunk...)
				got := readAll(t, db, nil, "select count(*) n, count(n) + count(flag) + count(day) + count(at) + count(wide) + count(exact) v from narrow", "n")
				if c.text == "" {
					require.NoError(t, err, "%s %s", c.column, c.value)
					require.Equal(t, [][]row.Value{ints(int64(size), int64(size))}, got)
					continue
				}
				require.ErrorContains(t, err, c.text)
				require.True(t, exception.IsSkippable(err), "%v", err)
				require.Equal(t, [][]row.Value{ints(0, 0)}, got)
			}
		}
	})
}

func TestANumberBeyondTheTypeOfItsColumnIsNamedByTheServer(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.Postgres(t))
	exec(t, db, "create table small (id int primary key, two smallint, four int, letters varchar(3), at timestamp)")
	s := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "two", Kind: row.Int, Nullable: true}, row.Field{Name: "four", Kind: row.Int, Nullable: true},
		row.Field{Name: "letters", Kind: row.Int, Nullable: true}, row.Field{Name: "at", Kind: row.Timestamp, Nullable: true})
	null := row.Value{}
	good := [][]row.Value{
		{row.IntValue(1), row.IntValue(math.MinInt16), row.IntValue(math.MinInt32), row.IntValue(-12), at("1969-12-31T23:59:59.999999Z")},
		{row.IntValue(2), row.IntValue(math.MaxInt16), row.IntValue(math.MaxInt32), row.IntValue(123), at("2262-04-12T00:00:00Z")},
		{row.IntValue(3), null, null, null, null},
	}
	for _, mode := range []writeMode{modeInsert, modeUpsert} {
		exec(t, db, "delete from small")
		w := writerTo(t, db, s, config{Name: "small", Mode: mode, Key: []string{"id"}})
		require.NoError(t, write(db, w, s, good...))
		require.Equal(t, good, readAll(t, db, s, "select id, two, four, letters::int letters, at from small", "id"))
		for text, bad := range map[string][]row.Value{
			`value "-32769" is out of range for type smallint`:    {row.IntValue(4), row.IntValue(math.MinInt16 - 1), null, null, null},
			`value "2147483648" is out of range for type integer`: {row.IntValue(4), null, row.IntValue(math.MaxInt32 + 1), null, null},
			"value too long for type character varying(3)":        {row.IntValue(4), null, null, row.IntValue(1234), null},
		} {
			err := write(db, w, s, append(good[:2:2], bad)...)
			require.ErrorContains(t, err, text, mode)
		}
	}
}
