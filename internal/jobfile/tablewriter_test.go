package jobfile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Rule C11a.
func TestRowsThatATriggerDropsAreNotCountedAsWritten(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		e.Exec("create table t (id int primary key, name text)")
		if e.Database.Dialect() == tx.SQLite {
			e.Exec("create trigger odd before insert on t when new.id % 2 = 0 begin select raise(ignore); end")
		} else {
			e.Exec("create function odd() returns trigger language plpgsql as $$ begin if new.id % 2 = 0 then return null; end if; return new; end $$")
			e.Exec("create trigger odd before insert on t for each row execute function odd()")
		}
		job := csvJob("", "skip: 1000\n    read_ahead: true\n  expect: balanced")
		exec := runCSV(t, e, job, thousand(map[int]string{9: "10,again"}))
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Equal(t, core.ExitExpectFailed, exec.ExitCode)
		require.Contains(t, exec.Error, "table t: the table took 499 of 1000 rows: a trigger")
		require.Equal(t, []int64{499}, e.Ints("select count(*) from t"))
		require.EqualValues(t, 499, e.Step(exec, "load").Counters.Write)
	})
}

func TestALookupByPaddedTextsFindsTheSameInMemoryAndInTheTable(t *testing.T) {
	t.Parallel()
	for name, lookup := range map[string]string{
		"memory": `{from: {query: {sql: "select code, n from codes", key: [code], item: {code: string, n: int}}}, key: {code: item.name}, take: [n], missing: null}`,
		"table":  `{table: codes, item: {code: string, n: int}, key: {code: item.name}, take: [n], missing: null}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := testengine.New(t, testdb.Postgres(t))
			e.Exec("create table codes (code char(5) primary key, n int)")
			e.Exec("insert into codes values ('ab', 1), ('abcde', 2)")
			e.Exec("create table t (id int primary key, name text, n int)")
			exec := runCSV(t, e, "job: load\nflow:\n- step: load\n  chunk:\n    reader: {csv: {path: in.csv, item: {id: int, name: string}}}\n    processor: {lookup: "+lookup+"}\n    writer: {table: t}\n",
				[]string{"1,ab", `2,"ab  "`, "3,abcde", "4,a"})
			require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
			require.Equal(t, []int64{1, 1, 2, 0}, e.Ints("select coalesce(n, 0) from t order by id"))
		})
	}
}

func TestMistakesOfTheTableWriterAreReportedWithTheirPlace(t *testing.T) {
	t.Parallel()
	for writer, want := range map[string]string{
		"left_out: warn":                            "job.yaml:6:41: left_out: \"warn\" is not allowed",
		"delete_missing: hard":                      "writer table: delete_missing: mode insert does not collect the keys",
		"mode: update, key: [id], where: x is null": "writer table: where: mode update uses no unique index",
		"mode: upsert, key: [id], delete_all: true": "writer table: delete_all: it needs delete_missing",
		"mode: upsert, key: [id], deleted: x":       "writer table: deleted: it needs delete_missing: soft",
		"schema: extend":                            "job.yaml:6:39: schema: \"extend\" is not allowed",
		"mode: delete, key: [id], schema: add":      "writer table: schema: mode delete writes no column",
		"mode: delete, key: [id], left_out: ignore": "job.yaml:6:66: writer table: left_out: mode delete inserts no rows: `left_out` is for insert and upsert",
	} {
		_, err := jobfile.Parse("job.yaml", []byte("job: j\nflow:\n- step: load\n  chunk:\n    reader: {csv: {path: in.csv, item: {id: int}}}\n    writer: {table: {name: t, "+writer+"}}\n"), shipped(t))
		require.ErrorContains(t, err, want)
	}
}

// Rule C7c.
func TestAWriteThatFailsNamesTheLineOfItsItem(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ line, writer, want string }{
		"a text that is not of the column":    {"700,x,1", "t", "write .*in.csv:701: table t: insert: field n: "},
		"a constraint that COPY meets":        {"700,5000,1", "t", "write .*in.csv:701: table t: insert: "},
		"a unique key":                        {"7,5,1", "t", "write .*in.csv:701: table t: insert: "},
		"a foreign key":                       {"700,5,99", "t", "write .*in.csv:701: table t: insert: "},
		"a constraint that an upsert meets":   {"700,5000,1", "{name: t, mode: upsert, key: [id]}", "write .*in.csv:701: table t: upsert: "},
		"a foreign key that an upsert meets":  {"700,5,99", "{name: t, mode: upsert, key: [id]}", "write .*in.csv:701: table t: upsert: "},
		"a value that an upsert cannot write": {"700,x,1", "{name: t, mode: upsert, key: [id]}", "write .*in.csv:701: table t: upsert: field n: "},
		"by statements of some rows":          {"700,5000,1", "{name: t, batch: 30}", "write .*in.csv:701: table t: insert: "},
		"an update of no row":                 {"700,5,1", "{name: t, mode: update, key: [id]}", "there is no row with id 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, url string) {
				e := testengine.New(t, url)
				e.Exec("create table r (id int primary key)")
				e.Exec("insert into r values (1)")
				e.Exec("create table t (id int primary key, n int check (n < 1000), r int references r(id))")
				lines := make([]string, 1000)
				for i := range lines {
					lines[i] = fmt.Sprintf("%d,5,1", i+1)
				}
				lines[699] = c.line
				exec := runLines(t, e, "job: load\nflow:\n- step: load\n  chunk:\n    reader: {csv: {path: in.csv, item: {id: int, n: string, r: int}}}\n    writer: {table: "+c.writer+"}\n", "id,n,r", lines)
				require.Equal(t, core.StatusFailed, exec.Status)
				require.Regexp(t, c.want, exec.Error)
				require.Equal(t, []int64{0}, e.Ints("select count(*) from t"))
			})
		})
	}
}

func TestDeleteMissingIsRefusedInAPartitionedStep(t *testing.T) {
	t.Parallel()
	_, err := jobfile.Parse("job.yaml", []byte("job: j\nflow:\n- step: load\n  partition: {by: {count: {parts: 2}}}\n  chunk:\n    reader: {csv: {path: in.csv, item: {id: int}}}\n    writer: {table: {name: t, mode: upsert, key: [id], delete_missing: hard}}\n"), shipped(t))
	require.ErrorContains(t, err, "mode upsert with delete_missing in a partitioned step")
}

// Rule C7c.
func TestATextThatAServerCannotReadIsAnInvalidItemWithItsPlace(t *testing.T) {
	t.Parallel()
	e := testengine.New(t, testdb.Postgres(t))
	for typ, bad := range map[string]string{"tsquery": "a b", "regclass": "nope", "regtype": "nope", "regproc": "nope", "regnamespace": "nope", "bit(3)": "12", "inet": "x"} {
		for _, mode := range []string{"insert", "upsert, key: [id]"} {
			e.Exec("drop table if exists t")
			e.Exec("create table t (id int primary key, name " + typ + ")")
			name := strings.Trim(strings.ReplaceAll(typ, "(3)", "3")+mode[:6], ", ")
			job := "job: " + name + "\nflow:\n- step: load\n  chunk:\n    size: 3\n    SKIP\n    reader: {csv: {path: in.csv, item: {id: int, name: string null}}}\n    writer: {table: {name: t, mode: " + mode + "}}\n"
			lines := []string{"1,", "2," + bad, "3,", "4,"}
			exec := runCSV(t, e, strings.Replace(job, "    SKIP\n", "", 1), lines)
			require.Equal(t, core.StatusFailed, exec.Status)
			require.Contains(t, exec.Error, "in.csv:3", "%s %s", typ, mode)
			exec = runCSV(t, e, strings.Replace(strings.Replace(job, "SKIP", "skip: 1", 1), "job: ", "job: skip", 1), lines)
			require.Equal(t, core.StatusCompleted, exec.Status, "%s %s: %s", typ, mode, exec.Error)
			require.Equal(t, []int64{1, 3, 4}, e.Ints("select id from t order by id"))
		}
	}
}
