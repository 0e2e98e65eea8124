package table

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func oddOnly(t *testing.T, db tx.Database, name string) {
	t.Helper()
	if db.Dialect() == tx.SQLite {
		exec(t, db, "create trigger "+name+"_odd before insert on "+name+" when new.id % 2 = 0 begin select raise(ignore); end")
		return
	}
	exec(t, db, "create or replace function odd_only() returns trigger language plpgsql as $$ begin if new.id % 2 = 0 then return null; end if; return new; end $$")
	exec(t, db, "create trigger odd before insert on "+name+" for each row execute function odd_only()")
}

// Rule C11a.
func TestRowsThatTheTableLeavesOutAreNotWritten(t *testing.T) {
	t.Parallel()
	eachMode(t, each, func(t *testing.T, db tx.Database, mode writeMode) {
		s := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "v", Kind: row.Int})
		exec(t, db, "create table half (id integer primary key, v integer)")
		oddOnly(t, db, "half")
		cfg := config{Name: "half", Mode: mode, Key: []string{"id"}}
		w := writerTo(t, db, s, cfg)
		for _, size := range []int64{1, 2, 100} {
			var records [][]row.Value
			for i := range size {
				records = append(records, ints(2*i+2-i%2, i)) // 2, 3, 6, 7, ...
			}
			err := write(db, w, s, records...)
			require.ErrorContains(t, err, fmt.Sprintf("the table took %d of %d rows: a trigger", size/2, size))
			require.False(t, exception.IsSkippable(err))
			require.Empty(t, readAll(t, db, s, "select * from half", "id"))
		}
		require.NoError(t, write(db, w, s, ints(1, 1), ints(3, 3)))
		cfg.LeftOut = leftOutIgnore
		require.NoError(t, write(db, writerTo(t, db, s, cfg), s, ints(2, 2), ints(5, 5)))
		require.Equal(t, [][]row.Value{ints(1, 1), ints(3, 3), ints(5, 5)}, readAll(t, db, s, "select * from half", "id"))
	})
}

func TestRowsThatPartitionsRulesAndConflictClausesLeaveOutAreNotWritten(t *testing.T) {
	t.Parallel()
	s := schema(t, row.Field{Name: "id", Kind: row.Int})
	lite, pg := open(t, testdb.SQLite(t)), open(t, testdb.Postgres(t))
	exec(t, lite, "create table once (id integer primary key on conflict ignore)")
	exec(t, lite, "insert into once values (2)")
	exec(t, pg, "create table parts (id integer, k numeric default 1) partition by range (id); create table low partition of parts for values from (0) to (100); create unique index on parts (id)")
	oddOnly(t, pg, "low")
	exec(t, pg, "create table ruled (id integer); create rule odd as on insert to ruled where new.id % 2 = 0 do instead nothing")
	exec(t, pg, "create table exact (id numeric primary key, v integer)")
	oddOnly(t, pg, "exact")
	for _, c := range []struct {
		db  tx.Database
		cfg config
	}{
		{lite, config{Name: "once"}}, {pg, config{Name: "parts"}}, {pg, config{Name: "ruled"}},
	} {
		err := write(c.db, writerTo(t, c.db, s, c.cfg), s, ints(1), ints(2))
		require.ErrorContains(t, err, "the table took 1 of 2 rows", c.cfg.Name)
	}
	s = schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "v", Kind: row.Int})
	w := writerTo(t, pg, s, config{Name: "exact", Mode: modeUpsert, Key: []string{"id"}})
	require.NoError(t, write(pg, w, s, ints(1, 1), ints(1, 2), ints(3, 3)), "one key twice is one row")
	require.ErrorContains(t, write(pg, w, s, ints(1, 1), ints(2, 2)), "the table took 1 of 2 rows")
}

func TestAnExchangeThatLeavesRowsOutFails(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		s := schema(t, row.Field{Name: "id", Kind: row.Int})
		exec(t, db, "create table half (id integer primary key)")
		exec(t, db, "insert into half values (9)")
		oddOnly(t, db, "half")
		r, err := newRefill(db, config{Name: "half", Mode: modeReplace}, s, of)
		require.NoError(t, err)
		require.NoError(t, r.Open(context.Background(), item.Position(nil)))
		require.NoError(t, tx.NewManager(db).Do(context.Background(), tx.Attr{}, func(ctx context.Context) error {
			return r.WriteRecords(ctx, s, [][]row.Value{ints(1), ints(2)})
		}))
		err = tx.NewManager(db).Do(context.Background(), tx.Attr{}, r.Complete)
		require.ErrorContains(t, err, "exchange its rows: the table took 1 of 2 rows")
		require.Equal(t, [][]row.Value{ints(9)}, readAll(t, db, s, "select * from half", "id"))
	})
}
