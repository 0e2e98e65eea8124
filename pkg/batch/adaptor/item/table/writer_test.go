package table

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/testdb"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// eachMode is each for the modes insert and upsert, which are COPY and arrays on PostgreSQL.
func eachMode(t *testing.T, each func(*testing.T, func(*testing.T, tx.Database)), f func(t *testing.T, db tx.Database, mode writeMode)) {
	t.Helper()
	for _, mode := range []writeMode{modeInsert, modeUpsert} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, db tx.Database) { f(t, db, mode) })
		})
	}
}

func TestEveryKindOfValueComesBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	eachMode(t, everywhere, func(t *testing.T, db tx.Database, mode writeMode) {
		s := everyKind(t)
		w := writerTo(t, db, s, config{Name: "everything", Mode: mode, Create: true, Key: []string{"id"}})
		null := row.Value{}
		var want [][]row.Value
		for i, v := range [][]row.Value{
			{row.StringValue(""), row.IntValue(0), row.FloatValue(0), dec("0.00"), row.BoolValue(false), row.DateValue(0), at("1970-01-01T00:00:00Z"), js(`{}`), id("00000000-0000-0000-0000-000000000000"), row.BytesText("")},
			{row.StringValue(`\N`), row.IntValue(math.MaxInt64), row.FloatValue(math.MaxFloat64), dec("9223372036854775807"), row.BoolValue(true), row.DateValue(row.NewDate(9999, 12, 31)), at("9999-12-31T23:59:59.999999Z"), js(`[1,-2.50,"x",null,true]`), id("ffffffff-ffff-ffff-ffff-ffffffffffff"), row.BytesText("\x00\xff\\x")},
			{row.StringValue("a\\b\tc\nd\re\\.\n\"{,}' \v\b\f"), row.IntValue(math.MinInt64), row.FloatValue(-math.SmallestNonzeroFloat64), dec("-9999999999999.99"), row.BoolValue(true), row.DateValue(row.NewDate(1, 1, 1)), at("0001-01-01T00:00:00Z"), js(`"a\\b\"\t\n{,}'"`), id("c0ffee00-0000-4000-8000-00000000000a"), row.BytesText("\t\n\r\\N\\.")},
			{row.StringValue("日本語 Größe 🐟 NULL null \u00a0"), row.IntValue(-1), row.FloatValue(0.1), dec("1.50"), row.BoolValue(false), row.DateValue(row.NewDate(2024, 2, 29)), at("2026-11-21T12:20:00.000001Z"), js(`{"b":1,"a":{"é":"🐟"}}`), id("01234567-89ab-cdef-0123-456789abcdef"), row.BytesText("日本語")},
			{row.StringValue("\\."), row.IntValue(1), row.FloatValue(1e21), dec("0.00000000000001"), row.BoolValue(false), row.DateValue(-1), at("1969-12-31T23:59:59.999999Z"), js(`12.50`), id("11111111-2222-3333-4444-555555555555"), row.BytesText("YWJj")},
		} {
			full, empty := ints(int64(2*i)), ints(int64(2*i+1))
			for _, list := range listNames() { // of the value of the kind, and of none
				elem, _ := row.KindByName(strings.TrimPrefix(list, "list of "))
				var elements []row.Value
				for _, x := range v {
					if x.Kind() == elem && i > 0 {
						elements = append(elements, x, null, x)
					}
				}
				of, err := row.ListValue(elem, elements)
				require.NoError(t, err)
				v = append(v, of)
			}
			for _, x := range v {
				full, empty = append(full, x, x), append(empty, x, null)
			}
			want = append(want, full, empty)
		}
		require.NoError(t, write(db, w, s, want...), "a small chunk")
		requireSame(t, want, readAll(t, db, s, "select * from everything", "id"))

		var many [][]row.Value // enough for COPY
		for n := range int64(100) {
			record := append([]row.Value(nil), want[n%int64(len(want))]...)
			record[0] = row.IntValue(1000 + n)
			many = append(many, record)
		}
		require.NoError(t, write(db, w, s, many...))
		requireSame(t, many, readAll(t, db, s, "select * from everything where id >= 1000", "id"))
		described := readAll(t, db, nil, "select * from everything where id >= 1000", "id")
		if db.Dialect() != tx.MySQL { // which describes a bool as an int, and others as texts
			requireSame(t, many, described) // the database describes the created table
		}
	})
}

func value(t *rapid.T, f *row.Field) row.Value {
	if f.Nullable && rapid.Bool().Draw(t, "null") {
		return row.Value{}
	}
	low, high := row.NewDate(1, 1, 1), row.NewDate(9999, 12, 31)
	if elem, ok := f.Kind.Elem(); ok {
		elements := make([]row.Value, rapid.IntRange(0, 3).Draw(t, "elements"))
		for i := range elements {
			elements[i] = value(t, &row.Field{Name: f.Name, Kind: elem, Nullable: true})
		}
		list, err := row.ListValue(elem, elements)
		require.NoError(t, err)
		return list
	}
	switch f.Kind {
	case row.Int:
		return row.IntValue(rapid.Int64().Draw(t, f.Name))
	case row.Float:
		x := rapid.Float64().Draw(t, f.Name)
		return row.FloatValue(x + 0) // SQLite has no negative zero
	case row.DecimalKind: // of as many digits as SQLite keeps
		d, err := row.NewDecimal(rapid.Int64Range(-999_999_999_999_999, 999_999_999_999_999).Draw(t, f.Name), rapid.IntRange(0, 20).Draw(t, "scale"))
		require.NoError(t, err)
		return row.DecimalValue(d)
	case row.JSONKind:
		return js(rapid.SampledFrom([]string{`{"a":[1,2.50,{"b":null}],"c":"\\\"\t{}"}`, `[]`, `1e3`, `false`, `"text"`}).Draw(t, f.Name))
	case row.UUIDKind:
		return row.UUIDValue(row.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, f.Name)))
	case row.BytesKind:
		return row.BytesValue(rapid.SliceOf(rapid.Byte()).Draw(t, f.Name))
	case row.Bool:
		return row.BoolValue(rapid.Bool().Draw(t, f.Name))
	case row.DateKind:
		return row.DateValue(row.Date(rapid.Int32Range(int32(low), int32(high)).Draw(t, f.Name)))
	case row.Timestamp:
		return row.TimestampValue(time.UnixMicro(rapid.Int64Range(low.Time().UnixMicro(), high.Time().UnixMicro()).Draw(t, f.Name)))
	case row.String, row.Null:
	}
	runes := rapid.OneOf(rapid.Rune().Filter(func(r rune) bool { return r != 0 }), rapid.SampledFrom([]rune("\\\t\n\r\"',{}N.\u2028é")))
	return row.StringValue(rapid.StringOf(runes).Draw(t, f.Name))
}

func TestWhatTableWritesIsWhatQueryReads(t *testing.T) {
	t.Parallel()
	eachMode(t, everywhere, func(t *testing.T, db tx.Database, mode writeMode) {
		s := everyKind(t)
		w := writerTo(t, db, s, config{Name: "anything", Mode: mode, Create: true, Key: []string{"id"}})
		rapid.Check(t, func(t *rapid.T) {
			size := rapid.SampledFrom([]int{1, 3, 49, 50, 65, 130}).Draw(t, "size")
			want := make([][]row.Value, size)
			for n := range want {
				want[n] = ints(int64(n))
				for i := 1; i < s.Len(); i++ {
					want[n] = append(want[n], value(t, s.Field(i)))
				}
			}
			_, err := db.Conn().ExecContext(context.Background(), "delete from anything")
			require.NoError(t, err)
			require.NoError(t, write(db, w, s, want...))
			requireSame(t, want, readAll(t, db, s, "select * from anything", "id"))
		})
	})
}

func TestUpsertsAreWhatOneUpsertPerItemInOrderWouldBe(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db tx.Database) {
		s := schema(t, row.Field{Name: "a", Kind: row.Int}, row.Field{Name: "b", Kind: row.String}, row.Field{Name: "v", Kind: row.Int, Nullable: true})
		w := writerTo(t, db, s, config{Name: "pairs", Mode: modeUpsert, Create: true, Key: []string{"a", "b"}})
		want := map[string][]row.Value{}
		rapid.Check(t, func(t *rapid.T) {
			chunk := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) []row.Value {
				return []row.Value{
					row.IntValue(rapid.Int64Range(0, 5).Draw(t, "a")), row.StringValue(rapid.SampledFrom([]string{"x", "X", "", "1"}).Draw(t, "b")),
					value(t, s.Field(2)),
				}
			}), 1, 120).Draw(t, "chunk")
			for _, r := range chunk {
				want[r[0].String()+"/"+r[1].Str()] = r
			}
			require.NoError(t, write(db, w, s, chunk...))
			got := map[string][]row.Value{}
			for _, r := range readAll(t, db, s, "select * from pairs", "a", "b") {
				got[r[0].String()+"/"+r[1].Str()] = r
			}
			require.Equal(t, want, got)
		})
	})
}

func TestAnUpsertOfAKeyAloneLeavesRowsThatAreThere(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db tx.Database) {
		exec(t, db, "create table seen (id integer primary key, note text default 'new')")
		exec(t, db, "insert into seen values (1, 'old')")
		s := schema(t, row.Field{Name: "id", Kind: row.Int})
		w := writerTo(t, db, s, config{Name: "seen", Mode: modeUpsert, Key: []string{"id"}})
		require.NoError(t, write(db, w, s, ints(1), ints(2), ints(2)))
		got := readAll(t, db, nil, "select id, note from seen", "id")
		require.Equal(t, [][]row.Value{{row.IntValue(1), row.StringValue("old")}, {row.IntValue(2), row.StringValue("new")}}, got)
	})
}

func TestKeysThatOnlyPostgresKnowsToBeEqualAreUpsertedOnce(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.Postgres(t))
	exec(t, db, "create table money (amount numeric primary key, v bigint)")
	exec(t, db, "create collation nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
	exec(t, db, "create table words (word text collate nocase primary key, v bigint)")
	s := schema(t, row.Field{Name: "amount", Kind: row.String}, row.Field{Name: "v", Kind: row.Int})
	w := writerTo(t, db, s, config{Name: "money", Mode: modeUpsert, Key: []string{"amount"}})
	require.NoError(t, write(db, w, s, []row.Value{row.StringValue("1.0"), row.IntValue(1)}, []row.Value{row.StringValue("1.00"), row.IntValue(2)}))
	require.Equal(t, [][]row.Value{{dec("1.00"), row.IntValue(2)}}, readAll(t, db, nil, "select * from money", "amount"))
	require.NoError(t, write(db, w, s, []row.Value{row.StringValue("1.000"), row.IntValue(3)}))
	require.Equal(t, [][]row.Value{{dec("1.000"), row.IntValue(3)}}, readAll(t, db, nil, "select * from money", "amount"), "as in one chunk")

	s = schema(t, row.Field{Name: "word", Kind: row.String}, row.Field{Name: "v", Kind: row.Int})
	for _, mode := range []writeMode{modeUpsert, modeUpdate} {
		w = writerTo(t, db, s, config{Name: "words", Mode: mode, Key: []string{"word"}})
		require.NoError(t, write(db, w, s, []row.Value{row.StringValue("Ä"), row.IntValue(1)}, []row.Value{row.StringValue("ä"), row.IntValue(2)}), "%s", mode)
		got := readAll(t, db, nil, "select v from words", "v")
		require.Equal(t, [][]row.Value{ints(2)}, got)
	}
}

func TestUpdateChangesEveryRowAndNamesTheOneThatIsNotThere(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db tx.Database) {
		exec(t, db, "create table stock (id integer primary key, n integer not null, note text not null)")
		exec(t, db, "insert into stock values (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'c')")
		s := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "n", Kind: row.Int})
		w := writerTo(t, db, s, config{Name: "stock", Mode: modeUpdate, Key: []string{"id"}})
		require.NoError(t, write(db, w, s, ints(1, 11), ints(3, 31), ints(1, 12)))
		want := [][]row.Value{ints(1, 12), ints(2, 20), ints(3, 31)}
		require.Equal(t, want, readAll(t, db, s, "select id, n from stock", "id"))
		err := write(db, w, s, ints(2, 21), ints(7, 70), ints(8, 80))
		require.ErrorContains(t, err, "there is no row with id 7")
		require.True(t, exception.IsSkippable(err))
		require.Equal(t, want, readAll(t, db, s, "select id, n from stock", "id"), "all or nothing")
	})
}

func TestDeleteRemovesByKeyAndDoesNotMindWhatIsGone(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db tx.Database) {
		exec(t, db, "create table line (bill integer, pos integer, primary key (bill, pos))")
		exec(t, db, "insert into line values (1, 1), (1, 2), (2, 1)")
		s := schema(t, row.Field{Name: "text", Kind: row.String}, row.Field{Name: "pos", Kind: row.Int}, row.Field{Name: "bill", Kind: row.Int})
		w := writerTo(t, db, s, config{Name: "line", Mode: modeDelete, Key: []string{"bill", "pos"}})
		x := row.StringValue("has no column, and needs none")
		require.NoError(t, write(db, w, s, append([]row.Value{x}, ints(1, 1)...), append([]row.Value{x}, ints(1, 2)...), append([]row.Value{x}, ints(9, 9)...)))
		require.Equal(t, [][]row.Value{ints(1, 2)}, readAll(t, db, nil, "select * from line", "bill", "pos"))
	})
}

func TestAUniqueViolationIsInTheChainAndTheTransactionIsUndone(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db tx.Database) {
		s := schema(t, row.Field{Name: "id", Kind: row.Int})
		w := writerTo(t, db, s, config{Name: "once", Create: true, Key: []string{"id"}})
		var chunk [][]row.Value
		for n := range int64(200) {
			chunk = append(chunk, ints(n))
		}
		require.NoError(t, write(db, w, s, chunk[150:151]...))
		for range 20 { // more often than there are connections
			err := write(db, w, s, chunk...)
			require.True(t, dberr.IsUniqueViolation(err), "%v", err)
			if db.Dialect() == tx.Postgres {
				var pg *pgconn.PgError
				require.ErrorAs(t, err, &pg)
				require.Equal(t, "23505", pg.Code)
			}
		}
		require.NoError(t, write(db, w, s, chunk[:150]...), "the connection serves on")
		require.Len(t, readAll(t, db, s, "select * from once", "id"), 151)
	})
}

func TestAfterAFailedCopyTheSameTransactionCanOnlyRollBack(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.Postgres(t))
	s := schema(t, row.Field{Name: "id", Kind: row.Int})
	w := writerTo(t, db, s, config{Name: "once", Create: true, Key: []string{"id"}})
	var twice [][]row.Value
	for range 100 {
		twice = append(twice, ints(1))
	}
	var before, after int
	pid := func(ctx context.Context, into *int) {
		require.NoError(t, tx.ConnOf(ctx, db).QueryRowContext(ctx, "select pg_backend_pid()").Scan(into))
	}
	m := tx.NewManager(db)
	err := m.Do(context.Background(), tx.Attr{}, func(ctx context.Context) error {
		pid(ctx, &before)
		nested := m.Do(ctx, tx.Attr{Propagation: tx.Nested}, func(ctx context.Context) error {
			return w.WriteRecords(ctx, s, twice)
		})
		require.True(t, dberr.IsUniqueViolation(nested))
		pid(ctx, &after)
		return w.WriteRecords(ctx, s, [][]row.Value{ints(1), ints(2)})
	})
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.Len(t, readAll(t, db, s, "select * from once", "id"), 2)
}

func TestAnInvalidValueNamesItsFieldAndSendsNothing(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db tx.Database) {
		s := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "x", Kind: row.Float, Nullable: true}, row.Field{Name: "s", Kind: row.String, Nullable: true})
		w := writerTo(t, db, s, config{Name: "odd", Create: true})
		for _, c := range []struct {
			record []row.Value
			field  string
		}{
			{[]row.Value{row.IntValue(1), row.FloatValue(math.Inf(1)), {}}, "field x"},
			{[]row.Value{row.IntValue(1), row.FloatValue(math.NaN()), {}}, "field x"},
			{[]row.Value{row.IntValue(1), {}, row.StringValue("a\x00")}, "field s"},
			{[]row.Value{row.IntValue(1), {}, row.StringValue("\xfe")}, "field s"},
			{[]row.Value{{}, {}, {}}, "field id"},
			{[]row.Value{row.StringValue("1"), {}, {}}, "field id"},
		} {
			err := write(db, w, s, c.record)
			require.ErrorContains(t, err, c.field)
			require.True(t, exception.IsSkippable(err), "%v", err)
		}
		require.Empty(t, readAll(t, db, s, "select * from odd", "id"))
	})
}

func TestAnAbsentTableSaysHowToMakeIt(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db tx.Database) {
		s := everyKind(t)
		w, err := newWriter(db, config{Name: "nowhere", Mode: modeUpsert, Key: []string{"id"}}, s)
		require.NoError(t, err)
		err = w.Open(context.Background(), nil)
		var absent *absentTableError
		require.ErrorAs(t, err, &absent)
		require.Contains(t, err.Error(), "create: true")
		require.Contains(t, absent.Statement, `primary key ("id")`)
		exec(t, db, absent.Statement)
		require.NoError(t, w.Open(context.Background(), nil), "the statement does what it says")
	})
}

func TestFieldsAndColumnsThatDoNotMeetAreAllNamed(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db tx.Database) {
		exec(t, db, `create table customer (id integer primary key, email text, twice integer generated always as (id * 2) stored, created text default 'today')`)
		s := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "emial", Kind: row.String}, row.Field{Name: "twice", Kind: row.Int})
		w, err := newWriter(db, config{Name: "customer"}, s)
		require.NoError(t, err)
		err = w.Open(context.Background(), nil)
		require.ErrorContains(t, err, "field emial has no column emial (did you mean email?)")
		require.ErrorContains(t, err, "the database generates column twice")

		w = writerTo(t, db, s, config{Name: "customer", Columns: map[string]string{"id": "id", "email": "emial"}})
		require.NoError(t, write(db, w, s, []row.Value{row.IntValue(4), row.StringValue("a@b"), row.IntValue(0)}))
		got := readAll(t, db, nil, "select id, email, twice, created from customer", "id")
		require.Equal(t, []row.Value{row.IntValue(4), row.StringValue("a@b"), row.IntValue(8), row.StringValue("today")}, got[0])
	})
}

func TestRowsOfAnOpenSchemaCreateTheirTableWithTheFirstChunk(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db tx.Database) {
		unknown, err := row.Open()
		require.NoError(t, err)
		w := writerTo(t, db, unknown, config{Name: "found", Create: true, Key: []string{"id"}})
		s := schema(t, row.Field{Name: "id", Kind: row.String}, row.Field{Name: "v", Kind: row.String})
		one := []row.Value{row.StringValue("a"), row.StringValue("b")}
		require.Error(t, write(db, w, s, one, one), "the table goes with the transaction that created it")
		require.NoError(t, write(db, w, s, one))
		require.NoError(t, write(db, w, s, []row.Value{row.StringValue("b"), row.StringValue("b")}))
		require.Len(t, readAll(t, db, s, "select * from found", "id"), 2)
	})
}

func TestAChunkWithoutATransactionIsRefused(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db tx.Database) {
		s := schema(t, row.Field{Name: "id", Kind: row.Int})
		w := writerTo(t, db, s, config{Name: "alone", Create: true})
		err := w.WriteRecords(context.Background(), s, [][]row.Value{ints(1)})
		require.ErrorContains(t, err, "there is no transaction on database default")
	})
}

func TestWrongConfigurationsAreRefusedAtTheirKey(t *testing.T) {
	t.Parallel()
	s := schema(t, row.Field{Name: "id", Kind: row.Int, Nullable: true}, row.Field{Name: "name", Kind: row.String})
	component := Components()[0]
	for _, c := range []struct {
		config config
		key    string
		text   string
	}{
		{config{}, "name", "needs a name"},
		{config{Name: "t", Mode: "merge"}, "mode", "allowed"},
		{config{Name: "t", Mode: modeUpsert}, "key", "needs a key"},
		{config{Name: "t", Mode: modeDelete, Key: []string{"name"}, Create: true}, "create", "is useless"},
		{config{Name: "t", Key: []string{"name", "name"}}, "key", "twice"},
		{config{Name: "t", Batch: -1}, "batch", "less than 0"},
		{config{Name: "t", Mode: modeUpsert, Key: []string{"nam"}}, "key", "did you mean name?"},
		{config{Name: "t", Mode: modeUpsert, Key: []string{"id"}}, "key", "may be null"},
		{config{Name: "t", Columns: map[string]string{"label": "nmae"}}, "columns.label", "did you mean name?"},
		{config{Name: "t", Key: []string{"id"}, Columns: map[string]string{"label": "name"}}, "key", "no field for column id"},
	} {
		err := c.config.Validate()
		if err == nil {
			_, err = component.Types(&c.config, item.RowOf("", s))
		}
		var at *registry.ConfigError
		require.ErrorAs(t, err, &at, "%+v", c.config)
		require.Equal(t, c.key, at.Key)
		require.Contains(t, err.Error(), c.text)
	}
	_, err := component.Types(&config{Name: "t"}, item.TypeOf[[]int]("list"))
	require.ErrorContains(t, err, "list")
}

type customer struct {
	ID    int64
	Name  string
	Score *float64
	Born  core.Date
}

func TestStructsAreWrittenAndReadThroughTheirItemType(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db tx.Database) {
		itemType := item.TypeOf[customer]("customer")
		w, err := itemType.ToRecords(writerTo(t, db, itemType.Schema(), config{Name: "customer", Create: true, Batch: 2}))
		require.NoError(t, err)
		score := 1.5
		items := &item.Slice[customer]{Items: []customer{{1, "Anne", &score, 0}, {2, "Bob", nil, 1}, {3, "Zoë", nil, 2}}}
		require.NoError(t, tx.NewManager(db).Do(context.Background(), tx.Attr{}, func(ctx context.Context) error { return w.Write(ctx, items) }))
		got := readAll(t, db, itemType.Schema(), "select * from customer", "id")
		require.Equal(t, "[[1 Anne 1.5 1970-01-01] [2 Bob null 1970-01-02] [3 Zoë null 1970-01-03]]", fmt.Sprint(got))
	})
}

func TestStatementsPerChunkDoNotDependOnItsSize(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.Postgres(t))
	exec(t, db, "create table counted (id bigint primary key, v bigint)")
	exec(t, db, `create table statements (text text);
		create function note() returns trigger language plpgsql as $$ begin insert into statements values (current_query()); return null; end $$;
		create trigger note after insert or update or delete on counted for each statement execute function note()`)
	s := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "v", Kind: row.Int})
	var chunk [][]row.Value
	for n := range int64(5000) {
		chunk = append(chunk, ints(n, n))
	}
	for _, c := range []struct {
		mode writeMode
		verb string
	}{{modeInsert, "begin; "}, {modeUpdate, "with "}, {modeUpsert, "insert "}, {modeDelete, "delete "}} {
		exec(t, db, "truncate statements")
		w := writerTo(t, db, s, config{Name: "counted", Mode: c.mode, Key: []string{"id"}})
		require.NoError(t, write(db, w, s, chunk...))
		texts := readAll(t, db, nil, "select min(text) text, count(*) n from statements", "n")
		// An INSERT with ON CONFLICT DO UPDATE runs the triggers of both.
		most := map[writeMode]int64{modeUpsert: 2}[c.mode]
		require.LessOrEqual(t, texts[0][1].Int(), max(most, 1), "%s", c.mode)
		require.True(t, strings.HasPrefix(texts[0][0].Str(), c.verb), texts[0][0].Str())
	}
}
