package jobfile_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func creating(fields, writer, keys string) string {
	return fmt.Sprintf(`
job: load
flow:
- step: load
  chunk:
    size: 2
    reader: {csv: {path: in.csv, item: %s}}
    writer: {table: {name: made, create: true%s}}
    %s
`, fields, writer, keys)
}

func isThere(e *testengine.Engine, name string) bool {
	var n int
	return e.Database.Conn().QueryRowContext(context.Background(), "select count(*) from "+name).Scan(&n) == nil
}

// Rule TW5.
func TestATableIsCreatedInTheTransactionOfItsFirstRows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fields, writer, keys string
		lines                []string
		fails                bool
		ids                  []int64 // of the table; nil means that there is no table
	}{
		"a first chunk that fails leaves none":          {"{id: int, name: string}", ", key: [id]", "", []string{"1,a", "1,b"}, true, nil},
		"a later one leaves what is committed":          {"{id: int, name: string}", ", key: [id]", "", []string{"1,a", "2,b", "2,c", "4,d"}, true, []int64{1, 2}},
		"an upsert too":                                 {"{id: int, name: string}", ", mode: upsert, key: [id]", "", []string{"1,a", "1,b", "3,c"}, false, []int64{1, 3}},
		"a skipped item of the first chunk":             {"{id: int, name: string}", ", key: [id]", "skip: 2", []string{"1,a", "1,b", "3,c"}, false, []int64{1, 3}},
		"a step without an item makes one at its end":   {"{id: int, name: string}", "", "", nil, false, []int64{}},
		"so does one that replaces":                     {"{id: int, name: string}", ", mode: replace", "", nil, false, []int64{}},
		"a replacement of no table":                     {"{id: int, name: string}", ", mode: replace, key: [id]", "skip: 2", []string{"1,a", "1,b", "3,c"}, false, []int64{1, 3}},
		"a step that is read ahead encodes when it may": {"{id: int, name: string}", "", "read_ahead: true", []string{"1,a", "2,b", "3,c", "4,d", "5,e", "6,f", "7,g"}, false, []int64{1, 2, 3, 4, 5, 6, 7}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, url string) {
				e := testengine.New(t, url)
				exec := runCSV(t, e, creating(c.fields, c.writer, c.keys), c.lines)
				require.Equal(t, c.fails, exec.Status != core.StatusCompleted, exec.Error)
				require.Equal(t, c.ids != nil, isThere(e, "made"))
				if c.ids != nil {
					require.Equal(t, c.ids, e.Ints("select id from made order by id"))
				}
			})
		})
	}
}

func TestACorrectedFileLoadsAfterAFirstRunOfAWrongType(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		exec := runCSV(t, e, creating("{id: int, name: int}", "", ""), []string{"1,007", "2,x"})
		require.Equal(t, core.StatusFailed, exec.Status)
		require.False(t, isThere(e, "made"))
		exec = runCSV(t, e, creating("{id: int, name: string}", "", ""), []string{"1,007", "2,x"})
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	})
}

func TestATableOfAnEarlierDefinitionIsNamedWithItsCure(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		e.Exec("create table made (id integer, name integer)")
		job := creating("{id: int, name: string}", "", "")
		exec := runCSV(t, e, job, []string{"1,x"})
		said := strings.ToLower(exec.Error)
		require.Contains(t, said, "does not fit column name of type integer")
		require.Contains(t, said, "the table existed before this step: its column name is of type integer, but create would make it text; it has no rows; if it comes from an earlier definition: drop table")
		e.Exec("insert into made values (1, 1)")
		exec = runCSV(t, e, job, []string{"1,x"})
		require.Contains(t, exec.Error, "it has rows")
		e.Exec("drop table made")
		e.Exec("create table made (id integer)")
		exec = runCSV(t, e, job, []string{"1,x"})
		require.Contains(t, exec.Error, "field name has no column name")
		require.Contains(t, exec.Error, "the table existed before this step: it has no column name")
	})
}

// The manager creates the table before the parts are stored: otherwise the
// table and the parts would wait for each other.
func TestThePartsOfAStepFindTheTableThatTheirManagerMade(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		e.Exec("create table src (id integer primary key)")
		e.Exec("insert into src values (1), (2), (3), (4), (5)")
		exec := runCSV(t, e, `
job: load
flow:
- step: load
  partition: {by: {query: {sql: "select 0 as n union all select 1", item: {n: int}}}, workers: 2}
  chunk:
    reader: {query: {sql: "select id from src where id % 2 = ${part.n}", key: [id], item: {id: int}}}
    writer: {table: {name: made, create: true, key: [id]}}
`, nil)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, []int64{1, 2, 3, 4, 5}, e.Ints("select id from made order by id"))
	})
}
