package jobfile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func syncing(name, keys, chunk string) string {
	return fmt.Sprintf("job: %s\nflow:\n- step: load\n  chunk:\n    size: 2\n    reader: {csv: {path: in.csv, item: {id: int, name: string}}}\n    writer: {table: {name: t, mode: upsert, key: [id], %s}}\n    %s\n", name, keys, chunk)
}

func leftOver(e *testengine.Engine) []int64 {
	switch e.Database.Dialect() {
	case tx.MySQL:
		return e.Ints("select count(*) from information_schema.tables where table_schema = database() and table_name like 'surfin|_%|_t|_keys|_%' escape '|'")
	case tx.SQLite:
		return e.Ints("select count(*) from sqlite_master where name like 'surfin\\_%\\_t\\_keys' escape '\\'")
	case tx.Postgres:
		return e.Ints(`select count(*) from pg_tables where tablename like 'surfin\_%\_t\_keys'`)
	}
	return nil
}

// Rule TW7.
func TestRowsWhoseKeysDoNotComeAreDeleted(t *testing.T) {
	t.Parallel()
	testdb.All(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		e.Exec("create table t (id int primary key, name varchar(20), gone boolean, deleted_at timestamp null)")
		e.Exec("insert into t (id, name) values (1, 'a'), (2, 'b'), (3, 'c'), (9, 'i')")
		run := func(name, keys, chunk string, lines ...string) *core.JobExecution {
			exec := runCSV(t, e, syncing(name, keys, chunk), lines)
			require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
			require.Equal(t, []int64{0}, leftOver(e))
			return exec
		}
		alive := "select id from t where deleted_at is null and gone is not true order by id"
		run("soft", "delete_missing: soft", "", "1,x", "4,d", "4,e", "2,b")
		require.Equal(t, []int64{1, 2, 4}, e.Ints(alive))
		require.Equal(t, []int64{5}, e.Ints("select count(*) from t"))
		run("again", "delete_missing: soft", "", "9,i", "1,x")
		require.Equal(t, []int64{1, 9}, e.Ints(alive), "a row that comes again is not deleted any more")
		run("flag", "delete_missing: soft, deleted: gone", "", "9,i")
		require.Equal(t, []int64{9}, e.Ints(alive))
		exec := run("skips", "delete_missing: hard", "skip: 5", "1,x", "y,z")
		require.Equal(t, []int64{5}, e.Ints("select count(*) from t"), "a key is not known")
		require.Equal(t, []string{"table t: no row is deleted: 1 items were skipped, so their keys are unknown"}, e.Step(exec, "load").Warnings())
		run("empty", "delete_missing: hard", "")
		require.Equal(t, []int64{5}, e.Ints("select count(*) from t"), "no row came")
		run("hard", "delete_missing: hard", "", "1,x", "7,y")
		require.Equal(t, []int64{1, 7}, e.Ints("select id from t order by id"))
		run("all", "delete_missing: hard, delete_all: true", "")
		require.Equal(t, []int64{0}, e.Ints("select count(*) from t"))
	})
}

func TestRowsAreMarkedOnlyInAColumnThatCanMark(t *testing.T) {
	t.Parallel()
	testdb.All(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		e.Exec("create table t (id int primary key, name varchar(20))")
		e.Exec("insert into t values (9, 'i')")
		for keys, want := range map[string]string{
			"delete_missing: soft":                "table t: delete_missing: soft needs a column deleted_at of type timestamp, date or boolean: name another by `deleted`",
			"delete_missing: soft, deleted: gone": "table t: delete_missing: soft needs a column gone of type timestamp",
			"delete_missing: soft, deleted: name": "table t: delete_missing: soft: column name is of type",
		} {
			exec := runCSV(t, e, syncing("load", keys, ""), []string{"1,x"})
			require.Equal(t, core.StatusFailed, exec.Status)
			require.Contains(t, exec.Error, want)
			require.Equal(t, []int64{9}, e.Ints("select id from t"), "nothing was written")
		}
	})
}

func TestARestartKnowsTheKeysOfTheAttemptBefore(t *testing.T) {
	t.Parallel()
	testdb.All(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		e.Exec("create table src (id int primary key, n int)")
		e.Exec("insert into src values (1, 1), (2, 2), (3, 3), (4, 1000), (5, 5)")
		e.Exec("create table t (id int primary key, n int check (n < 100))")
		e.Exec("insert into t values (8, 8), (1, 0)")
		job := "job: sync\nflow:\n- step: load\n  chunk:\n    size: 2\n    reader: {query: {sql: \"select id, n from src\", key: [id], item: {id: int, n: int}}}\n    writer: {table: {name: t, mode: upsert, key: [id], delete_missing: hard}}\n"
		exec := runCSV(t, e, job, nil)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Equal(t, []int64{1, 2, 8}, e.Ints("select id from t order by id"), "nothing is deleted before the end")
		require.Equal(t, []int64{1}, leftOver(e))
		e.Exec("update src set n = 4 where id = 4")
		exec = runCSV(t, e, job, nil)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, []int64{1, 2, 3, 4, 5}, e.Ints("select id from t order by id"))
		require.Equal(t, []int64{0}, leftOver(e))
	})
}

// Rule TW7.
func TestAnUpsertUsesAPartialUniqueIndex(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		e.Exec("create table t (id int, name varchar(20), deleted_at timestamp)")
		e.Exec("create unique index live on t (id) where deleted_at is null")
		e.Exec("insert into t values (1, 'old', '2026-01-01 00:00:00'), (1, 'live', null), (2, 'x', null)")
		keys := `where: "deleted_at is null", delete_missing: soft`
		exec := runCSV(t, e, syncing("partial", keys, ""), []string{"1,a", "1,b", "3,c"})
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, []int64{1, 3}, e.Ints("select id from t where deleted_at is null order by id"))
		require.Equal(t, []int64{1}, e.Ints("select count(*) from t where name = 'b' and deleted_at is null"))
		require.Equal(t, []int64{1}, e.Ints("select count(*) from t where name = 'old'"))
		require.Equal(t, []int64{4}, e.Ints("select count(*) from t"))
	})
}

// Rule TW7.
func TestKeysThatOnlyTheTableTakesForEqualAreNotDeleted(t *testing.T) {
	t.Parallel()
	e := testengine.New(t, testdb.SQLite(t))
	for n, c := range []struct{ collation, keys, first string }{
		{"nocase", "id", "A,p,2"}, {"rtrim", "id", "a ,p,2"}, {"nocase", "id, part", "A,P,2"}, {"rtrim", "id, part", "a,p ,2"},
	} {
		e.Exec("drop table if exists t")
		e.Exec(fmt.Sprintf("create table t (id text collate %[1]s, part text collate %[1]s, n int, unique (%[2]s))", c.collation, c.keys))
		e.Exec("insert into t values ('a', 'p', 1), ('b', 'p', 1)")
		job := fmt.Sprintf("job: fold%d\nflow:\n- step: load\n  chunk:\n    reader: {csv: {path: in.csv, item: {id: string, part: string, n: int}}}\n    writer: {table: {name: t, mode: upsert, key: [%s], delete_missing: hard}}\n", n, c.keys)
		exec := runLines(t, e, job, "id,part,n", []string{c.first, "c,p,2"})
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, []int64{2, 2}, e.Ints("select n from t"), "%+v", c)
	}
}

// Rule TW7.
func TestNothingIsDeletedIfATriggerGivesRowsOtherKeys(t *testing.T) {
	t.Parallel()
	e := testengine.New(t, testdb.Postgres(t))
	e.Exec("create table t (id text primary key, name text)")
	e.Exec("create function low() returns trigger language plpgsql as $$ begin new.id = lower(new.id); return new; end $$")
	e.Exec("create trigger low before insert on t for each row execute function low()")
	e.Exec("insert into t values ('z', 'old')")
	job := "job: low\nflow:\n- step: load\n  chunk:\n    reader: {csv: {path: in.csv, item: {id: string, name: string}}}\n    writer: {table: {name: t, mode: upsert, key: [id], delete_missing: hard}}\n"
	exec := runCSV(t, e, job, []string{"a,1", "B,2"})
	require.Equal(t, core.StatusFailed, exec.Status)
	require.Contains(t, exec.Error, "no row is deleted: the input has a row with id B, but the table has none with this key")
	require.Equal(t, []int64{3}, e.Ints("select count(*) from t"))
	exec = runCSV(t, e, strings.Replace(job, "low", "lowered", 1), []string{"a,1", "b,2"})
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	require.Equal(t, []int64{2}, e.Ints("select count(*) from t"))
}
