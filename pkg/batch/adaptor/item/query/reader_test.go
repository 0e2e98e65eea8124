package query

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"

	"github.com/surfin-batch/surfin/internal/testdb"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

func open(t testing.TB, url string) tx.Database {
	t.Helper()
	p, err := gormdb.Open(context.Background(), map[string]gormdb.Config{tx.Default: {URL: url}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	db, err := p.Database("")
	require.NoError(t, err)
	return db
}

// each runs f on an empty database of every kind.
func each(t *testing.T, f func(t *testing.T, db tx.Database)) {
	t.Helper()
	on(t, f, tx.SQLite, tx.Postgres)
}

// everywhere also runs f on MariaDB.
func everywhere(t *testing.T, f func(t *testing.T, db tx.Database)) {
	t.Helper()
	on(t, f, tx.SQLite, tx.Postgres, tx.MySQL)
}

func on(t *testing.T, f func(t *testing.T, db tx.Database), dialects ...tx.Dialect) {
	t.Helper()
	for _, dialect := range dialects {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			url := testdb.SQLite
			switch dialect {
			case tx.Postgres:
				url = testdb.Postgres
			case tx.MySQL:
				url = testdb.MySQL
			case tx.SQLite:
			}
			f(t, open(t, url(t)))
		})
	}
}

func exec(t require.TestingT, db tx.Database, statement string, args ...any) {
	_, err := db.Conn().ExecContext(context.Background(), statement, args...)
	require.NoError(t, err)
}

func statement(text string, args ...any) registry.SQL {
	return registry.SQL{Parts: strings.Split(text, "${}"), Args: args}
}

func unknown(t require.TestingT) *row.Schema {
	s, err := row.Open()
	require.NoError(t, err)
	return s
}

func schema(t require.TestingT, fields ...row.Field) *row.Schema {
	s, err := row.NewSchema(fields...)
	require.NoError(t, err)
	return s
}

func rest(r *reader) ([]string, error) {
	var all []string
	for {
		record := make([]row.Value, r.Schema().Len())
		err := r.ReadRecord(context.Background(), record)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		texts := make([]string, len(record))
		for i, v := range record {
			texts[i] = v.String()
		}
		all = append(all, strings.Join(texts, "|"))
	}
}

func opened(t require.TestingT, db tx.Database, c config, s *row.Schema, at item.Position) *reader {
	r, err := newReader(db, c, s)
	require.NoError(t, err)
	require.NoError(t, r.Open(context.Background(), at))
	return r
}

func TestATwoColumnKeyWithTiesOnTheFirstIsReadOnceAndResumedAnywhere(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		exec(t, db, "create table entry (account text not null, pos integer not null, amount integer, primary key (account, pos))")
		rapid.Check(t, func(t *rapid.T) {
			exec(t, db, "delete from entry")
			type entry struct {
				account string
				pos     int64
			}
			entries := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) entry {
				return entry{rapid.SampledFrom([]string{"a", "A", "b", "é", ""}).Draw(t, "account"), rapid.Int64Range(-9, 9).Draw(t, "pos")}
			}), 0, 40, rapid.ID[entry]).Draw(t, "entries")
			for _, e := range entries {
				exec(t, db, fmt.Sprintf("insert into entry values ('%s', %d, 1)", e.account, e.pos))
			}
			c := config{SQL: statement("select * from entry where amount = ${};", int64(1)), Key: []string{"account", "pos"}, Fetch: rapid.IntRange(1, 9).Draw(t, "fetch")}
			r := opened(t, db, c, unknown(t), nil)
			all, err := rest(r)
			require.NoError(t, err)
			require.Len(t, all, len(entries))
			sorted := slices.Clone(all)
			slices.Sort(sorted)
			require.Len(t, slices.Compact(sorted), len(entries), "every row once")

			stop := rapid.IntRange(0, len(all)).Draw(t, "stop")
			r = opened(t, db, c, unknown(t), nil)
			for range stop {
				require.NoError(t, r.ReadRecord(context.Background(), make([]row.Value, 3)))
			}
			at, err := r.Position()
			require.NoError(t, err)
			r = opened(t, db, c, unknown(t), at)
			again, err := r.Position()
			require.NoError(t, err)
			require.Equal(t, at, again)
			tail, err := rest(r)
			require.NoError(t, err)
			require.Equal(t, strings.Join(all[stop:], "\n"), strings.Join(tail, "\n"))
			require.EqualValues(t, len(all), r.Meta().Line)
		})
	})
}

func TestThePositionIsTheRawKeyHoweverTheFieldReadsIt(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		exec(t, db, "create table log (at text primary key, n text not null)")
		// Stored texts that sort differently from the values' canonical texts.
		for i, at := range []string{"2026-01-02 10:00:00", "2026-01-02 10:00:00.5", "2026-01-02T09:00:00Z", "2026-01-03 00:00:00+02:00"} {
			exec(t, db, fmt.Sprintf("insert into log values ('%s', '0%d')", at, i))
		}
		s := schema(t, row.Field{Name: "when", From: "at", Kind: row.Timestamp}, row.Field{Name: "n", Kind: row.Int})
		for _, key := range []string{"when", "n"} {
			r := opened(t, db, config{SQL: statement("select * from log"), Key: []string{key}, Fetch: 1}, s, nil)
			all, err := rest(r)
			require.NoError(t, err)
			require.Len(t, all, 4)
			require.Equal(t, "2026-01-02T10:00:00Z|0", all[0])
			require.Contains(t, all, "2026-01-02T22:00:00Z|3")
		}
	})
}

func TestEveryTypeOfKeyIsReadPageByPage(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		exec(t, db, "create table k (i bigint, x double precision, d date, ts timestamp, s text, n numeric(20,3))")
		for i := range 10 {
			day := time.Date(2026, 1, 1+i, 3, 4, 5, 6000, time.UTC)
			exec(t, db, fmt.Sprintf("insert into k values (%d, %d.25, '%s', '%s', 'k%d', %d.125)", i-5, i-5, day.Format(time.DateOnly), day.Format("2006-01-02T15:04:05.000000Z"), i, i-5))
		}
		for _, key := range []string{"i", "x", "d", "ts", "s", "n"} {
			c := config{SQL: statement("select * from k"), Key: []string{key}, Fetch: 3}
			all, err := rest(opened(t, db, c, unknown(t), nil))
			require.NoError(t, err, key)
			require.Len(t, all, 10, key)
			require.Equal(t, "-5|-5.25|2026-01-01|2026-01-01T03:04:05.000006Z|k0|-5.125", all[0])
			r := opened(t, db, c, unknown(t), nil)
			for range 4 {
				require.NoError(t, r.ReadRecord(context.Background(), make([]row.Value, 6)))
			}
			at, err := r.Position()
			require.NoError(t, err)
			tail, err := rest(opened(t, db, c, unknown(t), at))
			require.NoError(t, err)
			require.Equal(t, all[4:], tail, key)
		}
	})
}

func TestAKeyThatIsNotUniqueFailsWhereverTheDuplicatesAre(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db tx.Database) {
		exec(t, db, "create table d (k integer, v integer)")
		for i := range 12 {
			exec(t, db, fmt.Sprintf("insert into d values (%d, %d)", min(i, 8), i)) // 8 is there four times
		}
		for fetch := 1; fetch < 14; fetch++ {
			_, err := rest(opened(t, db, config{SQL: statement("select * from d"), Key: []string{"k"}, Fetch: fetch}, unknown(t), nil))
			require.ErrorContains(t, err, "the key (k) is not unique: more than one row has k 8", "fetch %d", fetch)
		}
		all, err := rest(opened(t, db, config{SQL: statement("select * from d"), Key: []string{"k", "v"}, Fetch: 3}, unknown(t), nil))
		require.NoError(t, err)
		require.Len(t, all, 12)
	})
}

func TestKeysThatOnlyTheDatabaseTakesAsEqualAreDuplicates(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		create := "create table w (s text collate nocase)"
		if db.Dialect() == tx.Postgres {
			exec(t, db, "create collation nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
		}
		exec(t, db, create)
		exec(t, db, "create table plain (s text)")
		for _, table := range []string{"w", "plain"} {
			exec(t, db, "insert into "+table+" values ('a'), ('B'), ('b'), ('C')")
		}
		for fetch := 1; fetch < 5; fetch++ {
			_, err := rest(opened(t, db, config{SQL: statement("select * from w"), Key: []string{"s"}, Fetch: fetch}, unknown(t), nil))
			require.ErrorContains(t, err, "is not unique", "fetch %d", fetch)
			all, err := rest(opened(t, db, config{SQL: statement("select * from plain"), Key: []string{"s"}, Fetch: fetch}, unknown(t), nil))
			require.NoError(t, err)
			require.Len(t, all, 4)
		}
	})
}

func TestANullInTheKeyIsRefusedBeforeTheFirstRow(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db tx.Database) {
		exec(t, db, "create table n (a integer, b integer)")
		exec(t, db, "insert into n values (1, 1), (2, null)")
		r, err := newReader(db, config{SQL: statement("select * from n -- with a comment"), Key: []string{"a", "b"}}, unknown(t))
		require.NoError(t, err)
		require.ErrorContains(t, r.Open(context.Background(), nil), "the key (a, b) is null in some rows")
	})
}

func TestRowsWrittenBehindTheKeyWhileItIsReadAreReadToo(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db tx.Database) {
		exec(t, db, "create table q (id integer primary key)")
		exec(t, db, "insert into q values (1), (2), (3)")
		r := opened(t, db, config{SQL: statement("select id from q"), Key: []string{"id"}, Fetch: 2}, unknown(t), nil)
		value := make([]row.Value, 1)
		// The chunk's transaction is on another connection, and holds the writer.
		err := tx.NewManager(db).Do(context.Background(), tx.Attr{}, func(ctx context.Context) error {
			for range 2 {
				if err := r.ReadRecord(ctx, value); err != nil {
					return err
				}
				if _, err := tx.ConnOf(ctx, db).ExecContext(ctx, "delete from q where id = "+value[0].String()); err != nil {
					return err
				}
			}
			return nil
		})
		require.NoError(t, err)
		exec(t, db, "insert into q values (0), (9)")
		all, err := rest(r)
		require.NoError(t, err)
		require.Equal(t, []string{"3", "9"}, all)
	})
}

func TestTheDatabaseDescribesWhatHasNoItem(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		exec(t, db, "create table b (id integer primary key, name varchar(20), ok boolean, price double precision, born date, seen timestamp)")
		exec(t, db, "insert into b values (1, null, null, null, null, null), (2, 'x', true, 2, '2026-01-01', '2026-01-01T00:00:00Z')")
		c := config{SQL: statement("select b.*, id * 2 as twice, price / 4 as part, 'v' || id as label from b"), Key: []string{"id"}}
		r := opened(t, db, c, unknown(t), nil)
		require.Equal(t, "{id: int null, name: string null, ok: bool null, price: float null, born: date null, seen: timestamp null, twice: int null, part: float null, label: string null}", r.Schema().String())
		all, err := rest(r)
		require.NoError(t, err)
		require.Equal(t, []string{"1|null|null|null|null|null|2|null|v1", "2|x|true|2|2026-01-01|2026-01-01T00:00:00Z|4|0.5|v2"}, all)
	})
}

func TestAResultThatDoesNotFitTheItemIsRefusedWhenItIsOpened(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db tx.Database) {
		exec(t, db, "create table c (id integer primary key, email text)")
		s := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "emial", Kind: row.String})
		r, err := newReader(db, config{SQL: statement("select * from c"), Key: []string{"id"}}, s)
		require.NoError(t, err)
		require.ErrorContains(t, r.Open(context.Background(), nil), "field emial has no column (did you mean email?)")
		r, err = newReader(db, config{SQL: statement("select * from c"), Key: []string{"di"}}, unknown(t))
		require.NoError(t, err)
		require.ErrorContains(t, r.Open(context.Background(), nil), "key di is not a column of the result (did you mean id?)")
		r, err = newReader(db, config{SQL: statement("select * from absent"), Key: []string{"id"}}, unknown(t))
		require.NoError(t, err)
		require.ErrorContains(t, r.Open(context.Background(), nil), "absent")
	})
	db := open(t, testdb.Postgres(t))
	s := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "d", Kind: row.Bool})
	r, err := newReader(db, config{SQL: statement("select 1 id, current_date d"), Key: []string{"id"}}, s)
	require.NoError(t, err)
	require.ErrorContains(t, r.Open(context.Background(), nil), "column d is of type date, which does not fit field d: bool")
}

func TestARowThatDoesNotFitIsAnInvalidItemAndIsPassed(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db tx.Database) {
		exec(t, db, "create table v (id integer primary key, n text)")
		exec(t, db, "insert into v values (1, '12'), (2, 'twelve'), (3, '')")
		s := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "n", Kind: row.Int, Nullable: true})
		r := opened(t, db, config{SQL: statement("select * from v"), Key: []string{"id"}}, s, nil)
		all, err := rest(r)
		require.ErrorContains(t, err, `row with id 2: field n: "twelve" is not an int`)
		require.True(t, exception.IsSkippable(err))
		require.True(t, item.IsConsumed(err), "reading it again would not mend it")
		require.Len(t, all, 1)
		all, err = rest(r)
		require.NoError(t, err)
		require.Len(t, all, 1)
		at, err := r.Position()
		require.NoError(t, err)
		require.Contains(t, string(at), `"3"`)
	})
	db := open(t, testdb.SQLite(t))
	exec(t, db, "create table v (id integer primary key, n integer, b boolean, s text)")
	s := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "n", Kind: row.Int, Nullable: true}, row.Field{Name: "b", Kind: row.Bool, Nullable: true}, row.Field{Name: "s", Kind: row.String, Nullable: true})
	for _, bad := range []string{"1.5, null, null", "'x', null, null", "null, 7, null", "null, null, x'00'", "1e300, null, null"} {
		exec(t, db, "delete from v")
		exec(t, db, "insert into v values (1, "+bad+")")
		_, err := rest(opened(t, db, config{SQL: statement("select * from v"), Key: []string{"id"}}, s, nil))
		require.True(t, exception.IsSkippable(err), "%s: %v", bad, err)
	}
}

func TestBindVariablesOfEveryTypeReachTheStatement(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		exec(t, db, "create table a (id integer primary key, s text, x double precision, ok boolean, d date, ts timestamp)")
		exec(t, db, "insert into a values (1, 'it''s; $1 ?', 1.5, true, '2026-01-02', '2026-01-02T03:04:05.000000Z')")
		c := config{
			SQL: statement("select id from a where s = ${} and x = ${} and ok = ${} and d = ${} and ts = ${} and id + ${} = 3 and coalesce(${}, 1) = 1",
				"it's; $1 ?", 1.5, true, row.NewDate(2026, 1, 2), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), int64(2), nil),
			Key: []string{"id"},
		}
		all, err := rest(opened(t, db, c, unknown(t), nil))
		require.NoError(t, err)
		require.Equal(t, []string{"1"}, all)
	})
}

func TestAColumnThatChangesItsTypeBetweenPagesIsNotMisread(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.Postgres(t))
	exec(t, db, "create table m (id bigint primary key, v integer)")
	exec(t, db, "insert into m select n, n from generate_series(1, 100) n")
	c := config{SQL: statement("select * from m"), Key: []string{"id"}, Fetch: 2}
	r := opened(t, db, c, unknown(t), nil)
	value := make([]row.Value, 2)
	for range 10 { // the statement of the pages is prepared by now
		require.NoError(t, r.ReadRecord(context.Background(), value))
	}
	exec(t, db, "alter table m add column w integer")
	require.NoError(t, r.ReadRecord(context.Background(), value), "an added column changes nothing")
	require.NoError(t, r.ReadRecord(context.Background(), value))
	exec(t, db, "alter table m alter column v type text")
	require.ErrorContains(t, r.ReadRecord(context.Background(), value), "column v changed its type")
	at, err := r.Position()
	require.NoError(t, err)
	all, err := rest(opened(t, db, c, unknown(t), at))
	require.NoError(t, err)
	require.Len(t, all, 88)
}

func TestWrongConfigurationsAreRefusedAtTheirKey(t *testing.T) {
	t.Parallel()
	itemType := item.RowOf("", schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "ok", Kind: row.Bool}))
	component := Components()[0]
	text := statement("select 1")
	for _, c := range []struct {
		config config
		key    string
		text   string
	}{
		{config{Key: []string{"id"}}, "sql", "the statement is missing"},
		{config{SQL: text}, "key", "a query needs a key"},
		{config{SQL: text, Key: []string{"id", "id"}}, "key", "twice"},
		{config{SQL: text, Key: []string{"id"}, Fetch: -1}, "fetch", "less than 0"},
		{config{SQL: text, Key: []string{"di"}, Item: itemType}, "key", "did you mean id?"},
		{config{SQL: text, Key: []string{"ok"}, Item: itemType}, "key", "no order"},
		{config{SQL: text, Key: []string{"id"}, Item: item.TypeOf[[]int]("list")}, "item", "list"},
	} {
		err := c.config.Validate()
		if err == nil {
			_, err = component.Types(&c.config, nil)
		}
		var at *registry.ConfigError
		require.ErrorAs(t, err, &at, "%+v", c.config)
		require.Equal(t, c.key, at.Key)
		require.Contains(t, err.Error(), c.text)
	}
	out, err := component.Types(&config{SQL: text, Key: []string{"id"}}, nil)
	require.NoError(t, err)
	require.True(t, out.Schema().IsOpen())
}

func TestAPositionOfAnotherKeyIsRefused(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db tx.Database) {
		exec(t, db, "create table p (id integer primary key, no integer)")
		exec(t, db, "insert into p values (1, 1)")
		c := config{SQL: statement("select * from p"), Key: []string{"id"}}
		r := opened(t, db, c, unknown(t), nil)
		require.NoError(t, r.ReadRecord(context.Background(), make([]row.Value, 2)))
		at, err := r.Position()
		require.NoError(t, err)
		require.JSONEq(t, `{"read": 1, "key": [{"name": "id", "kind": "int", "value": "1"}]}`, string(at))
		c.Key = []string{"no"}
		r, err = newReader(db, c, unknown(t))
		require.NoError(t, err)
		require.ErrorContains(t, r.Open(context.Background(), at), "the last commit was at key id, not no")
		require.ErrorContains(t, r.Open(context.Background(), item.Position("{")), "unreadable")
	})
}
