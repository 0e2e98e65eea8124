package jobfile_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func copying(writer string) string {
	return "job: load\nflow:\n- step: load\n  chunk:\n    size: 2\n    reader: {query: {sql: \"select * from src\", key: [id]}}\n    writer: {table: " + writer + "}\n"
}

func TestRowsOfAllColumnsAreUpserted(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		e.Exec("create table src (id int primary key, v int)")
		e.Exec("insert into src values (1, 10), (2, 20), (3, 30)")
		e.Exec("create table t (id int primary key, v int)")
		e.Exec("insert into t values (2, 2)")
		exec := runCSV(t, e, copying("{name: t, mode: upsert, key: [id]}"), nil)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, []int64{10, 20, 30}, e.Ints("select v from t order by id"))
		e.Exec("create table bare (id int unique, v int)")
		e.Exec("create view nulls as select nullif(id, 2) as k, id, v from src")
		exec = runCSV(t, e, "job: load2\nflow:\n- step: load\n  chunk:\n    skip: 1\n    reader: {query: {sql: \"select * from nulls\", key: [id]}}\n    writer: {table: {name: bare, mode: upsert, key: [id], columns: {id: k, v: v}}}\n", nil)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, []int64{1, 3}, e.Ints("select id from bare order by id"), "a null in a key is an invalid item")
		exec = runCSV(t, e, "job: load3\n"+copying("{name: made, mode: upsert, key: [id], create: true}")[len("job: load\n"):], nil)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, []int64{3}, e.Ints("select count(*) from made"))
	})
}

// Rule TW6.
func TestAFieldWithoutAColumnIsWhatSchemaSays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		schema, mode string
		lines        []string
		err          string
		rows         string // the query of the rows
		want         []int64
	}{
		"fail":                              {"fail", "insert", []string{"1,a", "2,b"}, "field name has no column name", "select count(*) from t", []int64{0}},
		"ignore":                            {"ignore", "insert", []string{"1,a", "2,b"}, "", "select id from t order by id", []int64{1, 2}},
		"add":                               {"add", "insert", []string{"1,a", "2,b", "3,c"}, "", "select id from t where name in ('a', 'b', 'c') order by id", []int64{1, 2, 3}},
		"add with an upsert":                {"add", "upsert, key: [id]", []string{"1,a", "1,b"}, "", "select id from t where name = 'b'", []int64{1}},
		"add with a replacement":            {"add", "replace", []string{"1,a"}, "", "select id from t where name = 'a'", []int64{1}},
		"a failed first chunk adds nothing": {"add", "insert", []string{"1,a", "1,b"}, "write", "select count(*) from t", []int64{0}},
		"nor does a step without an item":   {"add", "insert", nil, "", "select count(*) from t", []int64{0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, url string) {
				e := testengine.New(t, url)
				e.Exec("create table t (id int primary key)")
				exec := runCSV(t, e, "job: load\nflow:\n- step: load\n  chunk:\n    size: 2\n    reader: {csv: {path: in.csv, item: {id: int, name: string}}}\n    writer: {table: {name: t, schema: "+c.schema+", mode: "+c.mode+"}}\n", c.lines)
				require.Contains(t, exec.Error, c.err)
				require.Equal(t, c.err == "", exec.Status == core.StatusCompleted, exec.Error)
				require.Equal(t, c.want, e.Ints(c.rows))
				if c.err == "write" || c.lines == nil {
					require.False(t, isThere(e, "(select name from t) as x"))
				}
				if c.schema == "ignore" {
					require.Equal(t, []string{"table t: fields not written, because it has no column for them: name"}, e.Step(exec, "load").Warnings())
				}
			})
		})
	}
}

func TestADirectionThatThereIsNotIsAnError(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		e.Exec("create table src (id int primary key)")
		e.Exec("create table t (id int primary key)")
		job := strings.Replace(copying("t"), "key: [id]", "key: [id down]", 1)
		exec := runCSV(t, e, job, nil)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Contains(t, exec.Error, "down is not a direction of id: write `id` to read in ascending order, `id desc` in descending order")
	})
}
