package table

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/dberr"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func of(context.Context) (core.Attempt, error) {
	return core.Attempt{Repository: "r", Instance: 1, Step: "load"}, nil
}

func refilling(t testing.TB, db tx.Database, s *row.Schema, mode writeMode, at item.Position) *refillWriter {
	t.Helper()
	r, err := newRefill(db, config{Name: "stock", Mode: mode}, s, of)
	require.NoError(t, err)
	require.NoError(t, r.Open(context.Background(), at))
	return r
}

// committed does f in a transaction, and returns the position committed with it.
func committed(t testing.TB, db tx.Database, r *refillWriter, f func(ctx context.Context) error) (at item.Position) {
	t.Helper()
	require.NoError(t, tx.NewManager(db).Do(context.Background(), tx.Attr{}, func(ctx context.Context) (err error) {
		if err := f(ctx); err != nil {
			return err
		}
		at, err = r.Position()
		return err
	}))
	return at
}

func adding(r *refillWriter, s *row.Schema, records ...[]row.Value) func(ctx context.Context) error {
	return func(ctx context.Context) error { return r.WriteRecords(ctx, s, records) }
}

var errBroken = errors.New("broken")

func brokenOff(t testing.TB, db tx.Database, f func(ctx context.Context) error) {
	t.Helper()
	require.ErrorIs(t, tx.NewManager(db).Do(context.Background(), tx.Attr{}, func(ctx context.Context) error {
		require.NoError(t, f(ctx))
		return errBroken
	}), errBroken)
}

func stock(t testing.TB, db tx.Database) *row.Schema {
	t.Helper()
	exec(t, db, "create table kind (id integer primary key)")
	exec(t, db, "insert into kind values (1), (2), (3), (4), (5)")
	exec(t, db, "create table stock (id integer primary key references kind (id), n integer not null check (n > 0), note text default 'new')")
	exec(t, db, "create index by_n on stock (n)")
	exec(t, db, "create unique index one_n on stock (n)")
	exec(t, db, "create view many as select id from stock where n > 10")
	exec(t, db, "insert into stock values (1, 10, 'old'), (2, 20, 'old')")
	return schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "n", Kind: row.Int})
}

// Rules TW1 and TW3.
func TestReplaceShowsTheOldRowsUntilItExchangesAllOfThem(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db tx.Database) {
		s := stock(t, db)
		old := [][]row.Value{ints(1, 10), ints(2, 20)}
		seen := func() [][]row.Value { return readAll(t, db, s, "select id, n from stock", "id") }
		r := refilling(t, db, s, modeReplace, nil)
		brokenOff(t, db, adding(r, s, ints(5, 50)))
		require.NoError(t, r.Rewind(t.Context(), nil))
		at := committed(t, db, r, adding(r, s, ints(2, 11), ints(3, 30)))
		brokenOff(t, db, adding(r, s, ints(4, 40)))
		require.NoError(t, r.Rewind(t.Context(), at))
		require.Equal(t, old, seen())
		bad := [][]row.Value{ints(4, 0), ints(3, 31), ints(4, 30), ints(9, 90)} // check, key, unique, foreign key
		if db.Dialect() == tx.MySQL {
			bad = bad[:3]
		}
		for _, bad := range bad {
			err := tx.NewManager(db).Do(t.Context(), tx.Attr{}, adding(r, s, bad))
			require.True(t, dberr.IsConstraintViolation(err), "%v: %v", bad, err)
		}

		next := refilling(t, db, s, modeReplace, at)
		at = committed(t, db, next, adding(next, s, ints(4, 40)))
		brokenOff(t, db, next.Complete)
		require.Equal(t, old, seen())
		next = refilling(t, db, s, modeReplace, at)
		at = committed(t, db, next, next.Complete)
		want := [][]row.Value{ints(2, 11), ints(3, 30), ints(4, 40)}
		require.Equal(t, want, seen())
		require.Len(t, readAll(t, db, nil, "select id from many where id > 0", "id"), 3, "the view is there")
		require.Equal(t, []row.Value{row.StringValue("new")}, readAll(t, db, nil, "select distinct note from stock", "note")[0])

		require.NoError(t, mysqlRefill{next}.Finish(t.Context()))
		require.Error(t, tx.NewManager(db).Do(t.Context(), tx.Attr{}, adding(r, s, ints(5, 50))), "an attempt that wakes")
		require.Error(t, tx.NewManager(db).Do(t.Context(), tx.Attr{}, r.Complete), "an attempt that wakes")
		next = refilling(t, db, s, modeReplace, at)
		require.Equal(t, at, committed(t, db, next, next.Complete), "again after a crash")
		require.Equal(t, want, seen())
	})
}

// Rule TW2.
func TestTruncateEmptiesTheTableOnceWithItsFirstRows(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db tx.Database) {
		s := stock(t, db)
		seen := func() [][]row.Value { return readAll(t, db, s, "select id, n from stock", "id") }
		r := refilling(t, db, s, modeTruncate, nil)
		brokenOff(t, db, adding(r, s, ints(5, 50)))
		require.Len(t, seen(), 2)
		require.NoError(t, r.Rewind(t.Context(), nil))
		at := committed(t, db, r, adding(r, s, ints(5, 50)))
		require.Equal(t, [][]row.Value{ints(5, 50)}, seen())
		next := refilling(t, db, s, modeTruncate, at)
		committed(t, db, next, adding(next, s, ints(4, 40)))
		at = committed(t, db, next, next.Complete)
		require.Equal(t, [][]row.Value{ints(4, 40), ints(5, 50)}, seen())
		for _, mode := range []writeMode{modeTruncate, modeReplace} {
			again := refilling(t, db, s, mode, at)
			committed(t, db, again, again.Complete)
			require.Len(t, seen(), 2, "a restart empties nothing")
			anew := refilling(t, db, s, mode, nil)
			committed(t, db, anew, anew.Complete)
			require.Empty(t, seen(), "a step without items")
			exec(t, db, "insert into stock values (1, 10, 'old'), (2, 20, 'old')")
		}
	})
}

func TestTruncateOfATableThatAForeignKeyRefersToIsADelete(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db tx.Database) {
		s := stock(t, db)
		exec(t, db, "create table shelf (stock integer references stock (id))")
		r := refilling(t, db, s, modeTruncate, nil)
		committed(t, db, r, adding(r, s, ints(4, 40)))
		require.Len(t, readAll(t, db, s, "select id, n from stock", "id"), 1)
		exec(t, db, "insert into shelf values (4)")
		r = refilling(t, db, s, modeTruncate, nil)
		require.True(t, dberr.IsForeignKeyViolation(tx.NewManager(db).Do(t.Context(), tx.Attr{}, adding(r, s, ints(5, 50)))))
	})
}

// Rule TW4.
func TestATableThatCannotBeFilledAnewIsRefusedBeforeAnything(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		s := stock(t, db)
		exec(t, db, "create table shelf (stock integer references stock (id))")
		exec(t, db, "create table tree (id integer primary key, n integer references tree (id))")
		open := func(name string, mode writeMode) error {
			r, err := newRefill(db, config{Name: name, Mode: mode}, s, of)
			require.NoError(t, err)
			return r.Open(t.Context(), nil)
		}
		require.ErrorContains(t, open("stock", modeReplace), "table stock: mode replace would remove rows that a foreign key of shelf refers to: use mode upsert")
		for _, mode := range []writeMode{modeTruncate, modeReplace} {
			exec(t, db, "drop view many")
			exec(t, db, "create view many as select id, n from stock")
			require.ErrorContains(t, open("many", mode), "table many: mode "+string(mode)+" needs a table, but this is not one")
			require.ErrorContains(t, open("absent", mode), "table absent does not exist; set `create: true`")
		}
		if err := open("tree", modeReplace); db.Dialect() == tx.SQLite {
			require.EqualError(t, err, "table tree: mode replace cannot check its foreign key to itself on SQLite: use mode truncate")
		} else {
			require.NoError(t, err)
		}
		lost, err := newRefill(db, config{Name: "tree", Mode: modeReplace}, s, of)
		require.NoError(t, err)
		require.ErrorContains(t, lost.Open(t.Context(), item.Position(`{"shadow":"surfin_gone"}`)), "table surfin_gone with the rows of earlier attempts is missing")
		_, err = newWriter(db, config{Name: "tree", Mode: modeReplace}, s)
		require.EqualError(t, err, "table: mode replace needs a position: use NewRefill")
	})
}

// Rule MY11.
func TestAShadowOfMySQLIsDroppedOnlyIfNoLaterAttemptHasRowsInIt(t *testing.T) {
	t.Parallel()
	on(t, func(t *testing.T, db tx.Database) {
		exec(t, db, "create table stock (number bigint auto_increment primary key, id integer, n integer, at datetime default '2026-01-01', unique key (n))")
		exec(t, db, "insert into stock (id, n) values (1, 10), (2, 20)")
		s := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "n", Kind: row.Int})
		r := refilling(t, db, s, modeReplace, nil)
		committed(t, db, r, adding(r, s, ints(7, 70)))
		at := committed(t, db, r, r.Complete)
		require.Equal(t, [][]row.Value{ints(3, 7, 70)}, readAll(t, db, nil, "select number, id, n from stock where at = '2026-01-01'", "number"))

		later := refilling(t, db, s, modeReplace, nil)
		require.NoError(t, r.Rewind(t.Context(), at))
		shadow := func() int {
			return len(readAll(t, db, nil, "select table_name as name from information_schema.tables where table_schema = database() and table_name like 'surfin%'", "name"))
		}
		at = committed(t, db, later, adding(later, s, ints(8, 80)))
		require.NoError(t, mysqlRefill{r}.Finish(t.Context()), "it wakes")
		require.Equal(t, 1, shadow())
		exec(t, db, "alter table stock add column more int")
		next := refilling(t, db, s, modeReplace, at)
		committed(t, db, next, next.Complete)
		require.NoError(t, mysqlRefill{next}.Finish(t.Context()))
		require.NoError(t, mysqlRefill{next}.Finish(t.Context()), "again after a crash")
		require.Zero(t, shadow())
		require.Equal(t, [][]row.Value{ints(8, 80)}, readAll(t, db, s, "select id, n from stock", "id"))
	}, tx.MySQL)
}

// Rule MY5.
func TestAColumnIsAddedOutsideOfTheTransactionOnMySQL(t *testing.T) {
	t.Parallel()
	on(t, func(t *testing.T, db tx.Database) {
		exec(t, db, "create table stock (id integer)")
		s := schema(t, row.Field{Name: "id", Kind: row.Int}, row.Field{Name: "n", Kind: row.Int})
		first := writerTo(t, db, s, config{Name: "stock", Schema: schemaAdd})
		second := writerTo(t, db, s, config{Name: "stock", Schema: schemaAdd})
		brokenOff(t, db, func(ctx context.Context) error { return first.WriteRecords(ctx, s, [][]row.Value{ints(1, 10)}) })
		require.NoError(t, write(db, second, s, ints(2, 20)), "it was added meanwhile")
		require.Equal(t, [][]row.Value{ints(2, 20)}, readAll(t, db, s, "select id, n from stock", "id"))
	}, tx.MySQL)
}

func TestNumbersAndQuotedNamesOutliveAReplace(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db tx.Database) {
		number := "id integer primary key autoincrement"
		if db.Dialect() == tx.Postgres {
			number = "id bigint generated always as identity primary key"
		}
		name := "long and \"odd\" (name) of a table, of the sixty-three bytes that fit"
		exec(t, db, "create table "+db.Dialect().Quote(name)+" ("+number+", n integer, double integer generated always as (n * 2) stored, \"sel ect\" text default 'x')")
		exec(t, db, "create unique index \"un ique\" on "+db.Dialect().Quote(name)+" (\"sel ect\", n)")
		exec(t, db, "insert into "+db.Dialect().Quote(name)+" (n) values (1), (2), (3)")
		s := schema(t, row.Field{Name: "n", Kind: row.Int})
		r, err := newRefill(db, config{Name: name, Mode: modeReplace}, s, of)
		require.NoError(t, err)
		require.NoError(t, r.Open(t.Context(), nil))
		committed(t, db, r, adding(r, s, ints(7), ints(8)))
		committed(t, db, r, r.Complete)
		got := readAll(t, db, nil, "select id, n, double from "+db.Dialect().Quote(name), "id")
		require.Equal(t, [][]row.Value{ints(4, 7, 14), ints(5, 8, 16)}, got)
	})
}

func TestAnUpdateMayPassWhatIsNotThere(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, db tx.Database) {
		s := stock(t, db)
		w := writerTo(t, db, s, config{Name: "stock", Mode: modeUpdate, Key: []string{"id"}, Missing: missingIgnore})
		require.NoError(t, write(db, w, s, ints(5, 50), ints(2, 21)))
		require.Equal(t, [][]row.Value{ints(1, 10), ints(2, 21)}, readAll(t, db, s, "select id, n from stock", "id"))
		_, err := newWriter(db, config{Name: "stock", Missing: missingIgnore}, s)
		require.ErrorContains(t, err, "missing: mode insert does not require rows to exist: `missing` is for update")
	})
}
