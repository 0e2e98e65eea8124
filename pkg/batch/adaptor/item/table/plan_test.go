package table

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestTextMustFitTheDeclaredTypeOfItsColumn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		exec(t, db, "create table typed (n integer, x double precision, d date, b boolean)")
		names := []string{"n", "x", "d", "b"}
		fields := make([]row.Field, len(names))
		for i, n := range names {
			fields[i] = row.Field{Name: n, Kind: row.String}
		}
		s := schema(t, fields...)
		w := writerTo(t, db, s, config{Name: "typed"})
		texts := func(list ...string) []row.Value {
			values := make([]row.Value, len(list))
			for i, x := range list {
				values[i] = row.StringValue(x)
			}
			return values
		}
		require.NoError(t, write(db, w, s, texts("12", "0.5", "2026-11-21", "true")))
		want := [][]row.Value{{row.IntValue(12), row.FloatValue(0.5), row.DateValue(row.NewDate(2026, 11, 21)), row.BoolValue(true)}}
		require.Equal(t, want, readAll(t, db, nil, "select * from typed", "n"))
		for i, bad := range []string{"twelve", "much", "21.13.2026", "maybe"} {
			record := texts("12", "0.5", "2026-11-21", "true")
			record[i] = row.StringValue(bad)
			require.ErrorContains(t, write(db, w, s, record), bad)
		}
	})
}

func TestArrayColumnsAndLongTypesAreFilledFromText(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.Postgres(t))
	exec(t, db, `create type mood as enum ('ok', 'bad');
		create table odd (id bigint primary key, tags text[], short varchar(3), letters char(3), price numeric(10,2), mood mood, doc jsonb, code uuid)`)
	var fields []row.Field
	for _, n := range []string{"tags", "short", "letters", "price", "mood", "doc", "code"} {
		fields = append(fields, row.Field{Name: n, Kind: row.String})
	}
	s := schema(t, append(fields, row.Field{Name: "id", Kind: row.Int})...)
	record := func(id int64, short string) []row.Value {
		var r []row.Value
		for _, x := range []string{`{"a b","c,\"d\""}`, short, "abc", "1.25", "bad", `{"a": [1, "x\\y"]}`, "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"} {
			r = append(r, row.StringValue(x))
		}
		return append(r, row.IntValue(id))
	}
	for _, mode := range []writeMode{modeInsert, modeUpsert, modeUpdate} {
		c := config{Name: "public.odd", Mode: mode, Key: []string{"id"}}
		w := writerTo(t, db, s, c)
		for _, size := range []int64{1, 60} {
			var chunk [][]row.Value
			for n := range size {
				chunk = append(chunk, record(size*1000+n, "xyz"))
			}
			require.NoError(t, write(db, w, s, chunk...), "%s %d", mode, size)
			chunk[0][1] = row.StringValue("too long")
			chunk[0][7] = row.IntValue(size * 1000)
			if mode == modeInsert {
				chunk = chunk[:1]
				chunk[0][7] = row.IntValue(-1)
			}
			err := write(db, w, s, chunk...)
			require.ErrorContains(t, err, `"too long" does not fit column short of type character varying(3)`, "a text is never cut short: %s %d", mode, size)
		}
	}
	got := readAll(t, db, nil, "select count(*) n, min(tags[2]) tag, min(doc->'a'->>1) x, min(letters) letters, min(price) price, min(code::text) code from odd", "n")
	require.Equal(t, []row.Value{
		row.IntValue(61), row.StringValue(`c,"d"`), row.StringValue(`x\y`), row.StringValue("abc"), dec("1.25"),
		row.StringValue("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
	}, got[0])
}
