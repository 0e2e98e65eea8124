package table

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func decimal(t *rapid.T) row.Value {
	text := rapid.StringMatching(`-?(0|[1-9][0-9]{0,28}|[1-9]0{3,25})(\.[0-9]{1,30}|\.0{1,9})?`).Draw(t, "decimal")
	d, err := row.ParseDecimal(text)
	require.NoError(t, err)
	return row.DecimalValue(d)
}

func TestABinaryCopyWritesTheSameAsACopyOfTexts(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.Postgres(t))
	types := []string{
		"x double precision", "small smallint", "middle int", "big bigint", "double double precision", "flag boolean", "day date", "instant timestamptz", "local timestamp",
		"word text", "short varchar(40)", "amount numeric", "price numeric(60,30)", "object json", "indexed jsonb", "key uuid", "raw bytea", "padded char(40)",
	}
	for name, of := range map[string]string{"in_binary": types[0], "in_text": "x real"} { // a real has no binary form here
		exec(t, db, fmt.Sprintf("create table %s (id int primary key, %s, %s)", name, of, strings.Join(types[1:], ", ")))
	}
	kinds := map[string]row.Kind{
		"id": row.Int, "x": row.Float, "small": row.Int, "middle": row.Int, "big": row.Int, "double": row.Float, "flag": row.Bool, "day": row.DateKind, "instant": row.Timestamp, "local": row.Timestamp,
		"word": row.String, "short": row.String, "amount": row.DecimalKind, "price": row.DecimalKind, "object": row.JSONKind, "indexed": row.JSONKind, "key": row.UUIDKind, "raw": row.BytesKind, "padded": row.String,
	}
	fields := []row.Field{{Name: "id", Kind: row.Int}}
	var different []string
	for _, of := range types {
		name := strings.Fields(of)[0]
		fields = append(fields, row.Field{Name: name, Kind: kinds[name], Nullable: true})
		different = append(different, fmt.Sprintf("b.%[1]s::text is distinct from t.%[1]s::text", name))
	}
	s := schema(t, fields...)
	binary, texts := writerTo(t, db, s, config{Name: "in_binary"}), writerTo(t, db, s, config{Name: "in_text"})
	rapid.Check(t, func(t *rapid.T) {
		records := make([][]row.Value, rapid.IntRange(1, 20).Draw(t, "rows"))
		for n := range records {
			records[n] = ints(int64(n))
			for i := 1; i < s.Len(); i++ {
				v := value(t, s.Field(i))
				switch name := s.Field(i).Name; {
				case v.IsNull():
				case name == "x":
					v = row.FloatValue(float64(rapid.Int16().Draw(t, name)))
				case name == "small":
					v = row.IntValue(int64(rapid.Int16().Draw(t, name)))
				case name == "middle":
					v = row.IntValue(int64(rapid.Int32().Draw(t, name)))
				case name == "short", name == "padded":
					v = row.StringValue(rapid.StringOfN(rapid.Rune().Filter(func(r rune) bool { return r != 0 }), 0, 40, -1).Draw(t, name))
				case kinds[name] == row.DecimalKind:
					v = decimal(t)
				}
				records[n] = append(records[n], v)
			}
		}
		_, err := db.Conn().ExecContext(context.Background(), "truncate in_binary, in_text")
		require.NoError(t, err)
		require.NoError(t, write(db, binary, s, records...))
		require.NoError(t, write(db, texts, s, records...))
		var same, differ int
		require.NoError(t, db.Conn().QueryRowContext(context.Background(), "select count(*), count(*) filter (where "+strings.Join(different, " or ")+
			") from in_binary b join in_text t using (id)").Scan(&same, &differ))
		require.Equal(t, []int{len(records), 0}, []int{same, differ})
	})
	require.NotEmpty(t, binary.plan.qualified)
	require.Empty(t, texts.plan.qualified)
}

// A value that does not fit its column makes its chunk a COPY of texts, which names the record.
func TestAChunkWithoutABinaryFormNamesItsRecord(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.Postgres(t))
	exec(t, db, "create table numbers (n int primary key check (n <> 7))")
	s := schema(t, row.Field{Name: "n", Kind: row.Int})
	w := writerTo(t, db, s, config{Name: "numbers"})
	for index, records := range map[int][][]row.Value{1: {ints(1), ints(1 << 40), ints(3)}, 2: {ints(1), ints(2), ints(7)}, 3: {ints(1), ints(2), ints(3), ints(2)}} {
		var of *item.RecordError
		require.ErrorAs(t, write(db, w, s, records...), &of)
		require.Equal(t, index, of.Index)
	}
	require.NoError(t, write(db, w, s, ints(1), ints(2), ints(3)))
}

// Eight bytes of a bigint would be a time, or another number, to another type.
func TestATableThatChangesUnderABinaryCopyGetsTexts(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct{ change, says, reads string }{
		"another type":      {"alter table changing alter n type varchar", "", "1"},
		"a wider one":       {"alter table changing alter n type numeric(20, 1)", "", "1.0"},
		"not a number":      {"alter table changing alter n type timestamp using to_timestamp(n)", `invalid input syntax for type timestamp: "1"`, ""},
		"a domain":          {"create domain small as bigint check (value < 1)", `value for domain small violates check constraint`, ""},
		"another table":     {`drop table changing; create table changing ("it's" text, n double precision)`, "", "1"},
		"another schema":    {`create schema elsewhere; alter table changing set schema elsewhere;`, "does not exist", ""},
		"a renamed column":  {`alter table changing rename "it's" to other`, "does not exist", ""},
		"a dropping rule":   {"create rule leave as on insert to changing where n > 0 do instead nothing", "", "1"}, // which COPY does not apply
		"a trigger":         {"create function leave() returns trigger language plpgsql as $$ begin return null; end $$; create trigger leave before insert on changing for each row execute function leave()", "the table took 0 of 2 rows", ""},
		"a failing trigger": {"create function leave() returns trigger language plpgsql as $$ begin perform * from gone; return null; end $$; create trigger leave before insert on changing for each statement execute function leave()", `relation "gone" does not exist`, ""},
		"partitions by now": {`drop table changing; create table changing ("it's" text, n bigint) partition by range (n); create table all_of_it partition of changing default`, "", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t, testdb.Postgres(t))
			exec(t, db, `create table changing ("it's" text, n bigint)`)
			s := schema(t, row.Field{Name: "it's", Kind: row.String}, row.Field{Name: "n", Kind: row.Int})
			w := writerTo(t, db, s, config{Name: "changing"})
			record := []row.Value{row.StringValue("a"), row.IntValue(1)}
			require.NoError(t, write(db, w, s, record))
			require.NotEmpty(t, w.plan.qualified)
			if name == "a domain" {
				exec(t, db, "truncate changing")
				of.change += "; alter table changing alter n type small"
			}
			exec(t, db, of.change)
			for range 2 {
				err := write(db, w, s, record, record)
				if of.says != "" {
					require.ErrorContains(t, err, "table changing: ")
					require.ErrorContains(t, err, of.says)
					continue
				}
				require.NoError(t, err)
			}
			if of.says == "" {
				texts := readAll(t, db, nil, "select n::text as t, count(*)::text as n from changing group by 1 order by 1", "t")
				require.Equal(t, of.reads, texts[len(texts)-1][0].Str())
			}
		})
	}
}

// LOCK needs more than INSERT on some columns.
func TestAUserWhoMayInsertColumnsOnlyCopiesTexts(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.Postgres(t))
	exec(t, db, `create table granted (n bigint, other text)`)
	s := schema(t, row.Field{Name: "n", Kind: row.Int})
	role := fmt.Sprintf("columns_%d", time.Now().UnixNano())
	exec(t, db, "create role "+role+"; grant insert (n), select (n) on granted to "+role)
	w := writerTo(t, db, s, config{Name: "granted"})
	require.NotEmpty(t, w.plan.qualified)
	ctx := context.Background()
	require.NoError(t, tx.NewManager(db).Do(ctx, tx.Attr{}, func(ctx context.Context) error {
		conn := db.Conn()
		if current, in := tx.From(ctx, db.Name()); in {
			conn = current.Conn()
		}
		_, err := conn.ExecContext(ctx, "set local role "+role)
		require.NoError(t, err)
		found, err := (&postgres{}).describe(ctx, conn, "granted")
		require.NoError(t, err)
		require.Empty(t, found.qualified)
		return nil
	}))
}
