package table

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

var rekeyed = map[string]string{
	"a table":           `create table target (id text primary key, v bigint check (v < 1000)); create trigger lower before insert or update on target for each row execute function lower_id()`,
	"a view":            `create table base (id text primary key, v bigint check (v < 1000)); create view target as select * from base; create trigger lower before insert or update on base for each row execute function lower_id()`,
	"a partition":       `create table target (id text primary key, v bigint check (v < 1000)) partition by list (id); create table part partition of target default; create trigger lower before insert on part for each row execute function lower_id()`,
	"a type of numbers": `create table target (id numeric primary key, v bigint check (v < 1000)); create trigger whole before insert on target for each row execute function whole_id()`,
}

// Rule D8.
func TestKeysThatATriggerMakesEqualAreWrittenOneByOne(t *testing.T) {
	t.Parallel()
	db := open(t, testdb.Postgres(t))
	exec(t, db, `create function lower_id() returns trigger language plpgsql as $$ begin new.id = lower(new.id); return new; end $$;
create function whole_id() returns trigger language plpgsql as $$ begin new.id = trunc(new.id); return new; end $$`)
	for name, statements := range rekeyed {
		text, keys := row.Field{Name: "id", Kind: row.String}, []row.Value{row.StringValue("A"), row.StringValue("b"), row.StringValue("a"), row.StringValue("B"), row.StringValue("c")}
		if name == "a type of numbers" {
			text, keys = row.Field{Name: "id", Kind: row.DecimalKind}, []row.Value{dec("1.5"), dec("2"), dec("1"), dec("2.7"), dec("3")}
		}
		s := schema(t, text, row.Field{Name: "v", Kind: row.Int})
		var records [][]row.Value
		for i := range int64(20) {
			records = append(records, []row.Value{keys[i%5], row.IntValue(i)})
		}
		for _, size := range []int{1, 3, 20} {
			exec(t, db, statements)
			w := writerTo(t, db, s, config{Name: "target", Mode: modeUpsert, Key: []string{"id"}})
			require.NoError(t, writeAll(db, w, s, size, records), "%s, chunks of %d", name, size)
			var got []string
			for _, r := range readAll(t, db, s, "select * from target", "id") {
				got = append(got, fmt.Sprint(r[0].String(), r[1].Int()))
			}
			want := []string{"a17", "b18", "c19"}
			if name == "a type of numbers" {
				want = []string{"117", "218", "319"}
			}
			require.Equal(t, want, got, "%s, chunks of %d", name, size)

			bad := append(records[:len(records):len(records)], []row.Value{keys[0], row.IntValue(5000)})
			require.ErrorContains(t, writeAll(db, w, s, len(bad), bad), "violates check constraint", name)
			require.NoError(t, writeAll(db, w, s, size, records), "%s: the writer can be used again", name)
			if name == "a view" {
				exec(t, db, "drop table base cascade")
				continue
			}
			exec(t, db, "drop table target")
		}
	}
}
