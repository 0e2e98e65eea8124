package table

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type fitting struct {
	typ    string
	value  row.Value
	stored string
}

func text(s string) row.Value { return row.StringValue(s) }

// checkFitting writes each value by COPY, by arrays (a view) and by upsert, each alone: all have one outcome.
func checkFitting(t *testing.T, db tx.Database, cases []fitting) {
	t.Helper()
	for n, c := range cases {
		name := fmt.Sprintf("fit%d", n)
		exec(t, db, fmt.Sprintf("create table %s (id integer primary key, x %s)", name, c.typ))
		targets := []config{{Name: name}, {Name: name, Mode: modeUpsert, Key: []string{"id"}}}
		if db.Dialect() == tx.Postgres {
			exec(t, db, fmt.Sprintf("create view %s_v as select * from %s", name, name))
			targets = append(targets, config{Name: name + "_v"})
		}
		for i, target := range targets {
			label := fmt.Sprintf("%#v into %s, %s %s", c.value, c.typ, target.Mode, target.Name)
			s := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "x", Kind: c.value.Kind()})
			err := write(db, writerTo(t, db, s, target), s, []row.Value{row.IntValue(int64(i)), c.value})
			if c.stored == "" {
				require.ErrorContains(t, err, "field x", label)
				require.ErrorContains(t, err, "does not fit column x of type", label)
				require.True(t, exception.IsSkippable(err), label)
				continue
			}
			require.NoError(t, err, label)
			var got string
			cast := "cast(x as text)"
			require.NoError(t, db.Conn().QueryRowContext(context.Background(), fmt.Sprintf("select %s from %s where id = %d", cast, name, i)).Scan(&got), label)
			require.Equal(t, c.stored, got, label)
		}
	}
}

// Rule D8a.
func TestPostgresStoresAValueAsItIsOrTheItemIsInvalid(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.Postgres(t))
	exec(t, db, "create domain day as date")
	exec(t, db, `create domain letter as "char"`)
	exec(t, db, "create domain cents as numeric(10,2)")
	exec(t, db, "create domain price as cents not null")
	checkFitting(t, db, []fitting{
		{"date", text("03/02/2026"), ""}, {"date", text("2026-01-31 23:59:59"), ""}, {"date", text("now"), ""}, {"date", text("infinity"), ""},
		{"date", text("2026-01-31"), "2026-01-31"}, {"date", text("2026-01-31 00:00:00"), "2026-01-31"}, {"day", text("03/02/2026"), ""}, {"day", text("2026-02-03"), "2026-02-03"},
		{"date", text("20260-01-31"), ""}, {"date[]", text("{03/02/2026}"), ""}, {"date[]", text("{2026-02-03}"), "{2026-02-03}"}, {"int[]", text("{{1,2},{3,4}}"), "{{1,2},{3,4}}"},
		{"timestamp", text("2026-01-31T10:00:00+02:00"), "2026-01-31 08:00:00"}, {"timestamp", text("yesterday"), ""}, {"timestamp", text("2026-01-31"), "2026-01-31 00:00:00"},
		{"timestamp", text("2026-01-31 10:00"), "2026-01-31 10:00:00"}, {"timestamp", text("2026-01-31T10:00:00.123456789"), ""}, {"timestamp", text("2026-01-31T10:00:00.123456000Z"), "2026-01-31 10:00:00.123456"},
		{"timestamp", text("03/02/2026 10:00:00"), ""}, {"timestamp(0)", at("2026-01-31T10:00:00.1Z"), ""}, {"timestamp(0)", at("2026-01-31T10:00:00Z"), "2026-01-31 10:00:00"},
		{"timestamptz(3)", text("2026-01-31T10:00:00.1234Z"), ""}, {"timestamptz(3)[]", text("{2026-01-31T10:00:00.1234Z}"), ""},
		{"numeric(10,2)", text("12.345"), ""}, {"numeric(10,2)", text("12.340"), "12.34"}, {"numeric(10,2)", row.FloatValue(12.345), ""}, {"numeric", text("NaN"), ""}, {"price", text("12.345"), ""}, {"price", dec("12.34"), "12.34"},
		{"numeric(10,2)[]", text("{12.345}"), ""}, {"numeric(3,-2)", row.IntValue(123), ""}, {"numeric(3,-2)", row.IntValue(1200), "1200"},
		{"real", row.FloatValue(0.1), "0.1"}, {"real", row.FloatValue(0.10000000001), ""}, {"real", text("16777217"), ""}, {"real", text("1.5"), "1.5"}, {"real", row.IntValue(16777217), ""}, {"real[]", text("{0.1,16777217}"), ""},
		{"double precision", text("12345678901234567890"), ""}, {"double precision", text("0.10000000000000001"), "0.1"}, {"double precision", text("1e400"), ""}, {"double precision", text("infinity"), ""},
		{"int", text("1.5"), ""}, {"int", text("x1"), ""}, {"int", text(" 12 "), "12"}, {"boolean", text("t"), "true"}, {"boolean", text("No"), "false"}, {"boolean", text("maybe"), ""},
		{"time", text("10:00"), "10:00:00"}, {"time", text("10:00:00.1234567"), ""}, {"time", text("2026-01-31 10:00"), ""}, {"time", text("now"), ""}, {"time", text("10:00+02"), ""}, {"time", text("10:30 PM"), "22:30:00"},
		{"time(0)", text("10:00:00.5"), ""}, {"time", at("2026-01-31T10:00:00Z"), ""}, {"time", text("24:00:00"), "24:00:00"}, {"timetz", text("10:00"), ""}, {"timetz", text("10:00:00+02"), "10:00:00+02"},
		{"interval", text("1 day 00:00:00.1234567"), ""}, {"interval(0)", text("1.5 seconds"), ""}, {"interval", text("P1DT2H"), "1 day 02:00:00"}, {"interval year to month", text("1 year 2 mons 3 days"), ""}, {"interval year to month", text("1 year 2 mons"), "1 year 2 mons"},
		{"varchar(2)", text("ab "), ""}, {"varchar(2)", text("abc"), ""}, {"varchar(2)", text("éé"), "éé"}, {"char(2)", text("ab "), "ab"}, {"char(2)", text("abc"), ""}, {"varchar(2)[]", text(`{"ab "}`), ""},
		{"jsonb", text(`{"a":1,"a":2}`), ""}, {"json", text(`{ "a": 1.10 }`), `{ "a": 1.10 }`},
		{"uuid", text("C0FFEE00-0000-4000-8000-00000000000a"), "c0ffee00-0000-4000-8000-00000000000a"}, {"bytea", text(`a\101`), ""}, {"bytea", text("abc"), `\x616263`}, {"bytea", text(`\xZZ`), ""},
		{"daterange", text("[03/02/2026,04/02/2026)"), ""}, {"daterange", text("[2026-02-03,2026-02-04)"), "[2026-02-03,2026-02-04)"}, {"tsrange", text(`["2026-01-31 10:00:00+02",]`), ""}, {"tstzrange", text(`["2026-01-31 10:00:00",]`), ""},
		{"point", text("(0.1,9007199254740993)"), ""}, {"point", text("(0.1,-1e3)"), "(0.1,-1000)"}, {"circle", text("<(1,2),12345678901234567890>"), ""}, {"box", text("(3,4),(1,2.5)"), "(3,4),(1,2.5)"},
		{"polygon", text("((0,0),(0.1,9007199254740993))"), ""}, {"line", text("{1,-1,0.5}"), "{1,-1,0.5}"}, {"box[]", text("{(1,1),(0,0);(2,2),(1,1)}"), "{(1,1),(0,0);(2,2),(1,1)}"}, {"point[]", text(`{"(1,9007199254740993)"}`), ""},
		{"money", text("12.345"), ""}, {"money", text(""), ""}, {"money", text("1,5"), ""}, {"money", text("(1.239)"), ""}, {"money", text("(1.23)"), ""}, {"money", text("$1.239"), ""}, {"money", text("$1"), "$1.00"},
		{"money", text("-12.5"), "-$12.50"}, {"money", text("-$1,234.56"), "-$1,234.56"}, {"money", text("$1,23"), ""}, {"money", dec("12.340"), "$12.34"}, {"money", row.FloatValue(1.239), ""},
		{`"char"`, text("ab"), ""}, {`"char"`, text("ü"), ""}, {`"char"`, text("a"), "a"}, {"letter", text("ab"), ""}, {`"char"`, row.IntValue(12), ""},
		{"oid", text("-1"), ""}, {"oid", row.IntValue(-1), ""}, {"oid", text("42"), "42"}, {"xid", text("-1"), ""}, {"xid", text("010"), ""}, {"xid", row.IntValue(7), "7"}, {"xid8", text("-1"), ""},
		{"interval", text("0.1 years"), ""}, {"interval", text("0.5 years"), "6 mons"}, {"interval", text("0.12345 centuries"), ""}, {"interval", text("0.5 us"), ""}, {"interval", text("1.5 us"), ""}, {"interval", text("1.2345 ms"), ""},
		{"interval", text("1.234 ms"), "00:00:00.001234"}, {"interval", text("1.5 hours"), "01:30:00"}, {"interval", text("P0.1Y"), ""}, {"interval", text("PT1.5M"), "00:01:30"}, {"interval", text("P0.01M"), ""}, {"interval", text("PT1e-7S"), ""},
		{"interval", text("-1 days +02:03:04.123456"), "-1 days +02:03:04.123456"}, {"interval(0)", text("1500 ms"), ""}, {"interval(0)", text("2000 ms"), "00:00:02"}, {"interval", text("1-2 3 4:05:06.5"), "1 year 2 mons 3 days 04:05:06.5"},
	})
}

// Rule D8a.
func TestPostgresStoresThePartsOfAValueAsTheyAre(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.Postgres(t))
	exec(t, db, "create domain day as date; create domain days as date[]; create type part as (d date, at timestamp(0), v varchar(2), n numeric(5,2)); create type whole as (p part, list time[], t text)")
	checkFitting(t, db, []fitting{
		{"time[]", text("{now}"), ""}, {"time[]", text("{10:00:00,NULL}"), "{10:00:00,NULL}"}, {"timetz[]", text("{10:00}"), ""}, {"time(0)[]", text("{10:00:00.5}"), ""}, {"interval(0)[]", text("{1.5 s}"), ""},
		{"interval[]", text("{1 day,0.1 years}"), ""}, {"interval[]", text(`{"1 day",NULL}`), `{"1 day",NULL}`}, {"money[]", text("{1.239}"), ""}, {"money[]", text(`{"1,5"}`), ""}, {`"char"[]`, text("{ab}"), ""},
		{"date[]", text("{{now}}"), ""}, {"date[]", text("[0:0]={now}"), ""}, {"date[]", text("{{01/02/2024}}"), ""}, {"date[]", text("[0:1]={2024-01-02,2024-01-03}"), "[0:1]={2024-01-02,2024-01-03}"},
		{"days", text("{{now}}"), ""}, {"days", text("{01/02/2024}"), ""}, {"days", text("{2024-01-02}"), "{2024-01-02}"}, {"day[]", text("{01/02/2024}"), ""}, {"day[]", text("{2024-01-02}"), "{2024-01-02}"},
		{"timestamp[]", text(`{{"2024-01-02 10:00:00+02"}}`), `{{"2024-01-02 08:00:00"}}`}, {"numeric(5,2)[]", text("{{1.239}}"), ""}, {"numeric(5,2)[]", text("{{1.230}}"), "{{1.23}}"}, {"real[]", text("{{16777217}}"), ""},
		{"varchar(2)[]", text(`{{"ab "}}`), ""}, {"int[]", text("[5:5]={1}"), "[5:5]={1}"}, {"float8[]", text("{9007199254740993}"), ""}, {"float8[]", text("{{0.5},{NULL}}"), "{{0.5},{NULL}}"},
		{"float8[]", text("[9007199254740993]"), ""}, {"text[]", text(`{{"a,b","\""},{NULL,"NULL"}}`), `{{"a,b","\""},{NULL,"NULL"}}`}, {"varchar(4)[]", text(`{{"a,\"b"},{"NULL"}}`), `{{"a,\"b"},{"NULL"}}`},
		{"part", text(`(01/02/2024,,,)`), ""}, {"part", text(`(,"2024-01-02 03:04:05.6",,)`), ""}, {"part", text(`(,,"ab  ",)`), ""}, {"part", text(`(,,,1.239)`), ""}, {"part", text("(,,)"), ""},
		{"part", text(`(2024-01-02,"2024-01-02 03:04:05","a""",1.5)`), `(2024-01-02,"2024-01-02 03:04:05","a""",1.50)`}, {"part", text(`(,,"",)`), `(,,"",)`}, {"part[]", text(`{"(now,,,)"}`), ""}, {"part[]", text(`{"(,,,1.5)",NULL}`), `{"(,,,1.50)",NULL}`},
		{"whole", text(`("(now,,,)",,)`), ""}, {"whole", text(`(,"{now}",)`), ""}, {"whole", text(`("(2024-01-02,,,)","{10:00:00}","a\\b")`), `("(2024-01-02,,,)",{10:00:00},"a\\b")`},
	})
}

// Rule D8a.
func TestKeysThatTheColumnRoundsToOneAreUpsertedOnce(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.Postgres(t))
	for n, c := range []struct {
		typ      string
		one, two row.Value
		want     string
	}{
		{"timestamptz(0)", at("2026-01-01T10:00:00.1Z"), at("2026-01-01T10:00:00.2Z"), "2026-01-01 10:00:00+00"},
		{"timestamp(3)", at("1999-01-01T10:00:00.0005Z"), at("1999-01-01T10:00:00.0001Z"), "1999-01-01 10:00:00"},
		{"real", row.FloatValue(0.1), row.FloatValue(0.10000000001), "0.1"},
		{"varchar(2)", text("ab"), text("ab "), "ab"},
		{"char(5)", text("ab"), text("ab "), "ab"},
		{"timestamp", text("2026-01-01T10:00:00Z"), text("2026-01-01 12:00:00+02:00"), "2026-01-01 10:00:00"},
	} {
		for _, size := range []int{1, 2} {
			name := fmt.Sprintf("rounded%d_%d", n, size)
			exec(t, db, fmt.Sprintf("create table %s (k %s primary key, v integer)", name, c.typ))
			s := schema(t, row.Field{Name: "k", Kind: c.one.Kind()}, row.Field{Name: "v", Kind: row.Int})
			w := writerTo(t, db, s, config{Name: name, Mode: modeUpsert, Key: []string{"k"}})
			records := [][]row.Value{{c.one, row.IntValue(1)}, {c.two, row.IntValue(2)}}
			if size == 1 {
				require.NoError(t, write(db, w, s, records[0]), c.typ)
				records = records[1:]
			}
			require.NoError(t, write(db, w, s, records...), c.typ)
			var key string
			var v int
			require.NoError(t, db.Conn().QueryRowContext(context.Background(), "select k::text, v from "+name).Scan(&key, &v), c.typ)
			require.Equal(t, c.want, key)
			require.Equal(t, 2, v, c.typ)
		}
	}
}

// Rule D8a.
func TestSQLiteStoresATextAsItIsOrTheItemIsInvalid(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.SQLite(t))
	checkFitting(t, db, []fitting{
		{"string", text("01569"), ""}, {"string", text("1569"), "1569"}, {"string", text("1e5"), ""}, {"string", text(" 12"), ""}, {"string", text("1.50"), ""}, {"string", text("1.5"), "1.5"},
		{"string", text("12345678901234567890"), ""}, {"string", text("x01"), "x01"}, {"string", text("+5"), ""}, {"string", text("5."), ""}, {"string", text("1e999"), ""},
		{"string", dec("12345678901234567.89"), ""}, {"bytea", text("007"), ""}, {"any thing", text("0012"), ""}, {"", text("01569"), "01569"}, {"blob", text("01569"), "01569"}, {"varchar(9)", text("01569"), "01569"},
		{"integer", text("1e5"), ""}, {"integer", text("1.5"), ""}, {"real", text("12345678901234567890"), ""}, {"real", text("0.1"), "0.1"}, {"date", text("2026-01-31 10:00:00"), ""},
		{"timestamp", text("2026-01-31T10:00:00.123456789"), ""}, {"timestamp", text("2026-01-31"), "2026-01-31T00:00:00.000000Z"}, {"boolean", text("yes"), "1"},
	})
}

// Rule D8a.
func TestAnyOfAStrictTableKeepsTexts(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.SQLite(t))
	exec(t, db, "create table strict_any (id integer primary key, x any) strict")
	s := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "x", Kind: row.String})
	require.NoError(t, write(db, writerTo(t, db, s, config{Name: "strict_any"}), s, []row.Value{row.IntValue(1), text("007")}))
	var got, typ string
	require.NoError(t, db.Conn().QueryRowContext(context.Background(), "select x, typeof(x) from strict_any").Scan(&got, &typ))
	require.Equal(t, []string{"007", "text"}, []string{got, typ})
}
