package acceptance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestAllColumnsOfATableAreUpsertedWithoutAnItem(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"job.yaml": `job: meal
parameters: {n: {type: int}}
flow:
- step: load
  chunk:
    reader: {query: {sql: select * from a, key: [id]}}
    writer: {table: {name: b, mode: upsert, key: [id], create: true}}
`})
		db, _ := s.open()
		s.exec(db, "create table a (id integer primary key, s text not null, n integer)", "insert into a values (1, 'x', null), (2, 'y', 2)")
		for _, n := range []string{"n=1", "n=2"} {
			code, out := s.run("run", "job.yaml", n)
			require.Equal(t, 0, code, out)
			require.Equal(t, []int64{2, 2}, s.ints(db, "select count(*), sum(n) from b", 2))
		}
	})
}

func TestAColumnThatIsNewInTheSourceIsAStoredWarning(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"job.yaml": `job: meal
parameters: {n: {type: int}}
flow:
- step: load
  chunk:
    reader: {query: {sql: select * from a, key: [id], item: {id: int, s: string}}}
    writer: {table: {name: b, mode: upsert, key: [id], create: true}}
- step: parts
  partition: {by: {range: {table: a, key: id, parts: 2}}}
  chunk:
    reader: {query: {sql: "select * from a where id between ${part.min} and ${part.max}", key: [id], item: {id: int, s: string}}}
    writer: {table: {name: b, mode: upsert, key: [id]}}
- step: named
  chunk:
    reader: {query: {sql: "select id, s, n from a", key: [id], item: {id: int, s: string}}}
    writer: {table: {name: b, mode: upsert, key: [id]}}
`})
		db, _ := s.open()
		s.exec(db, "create table a (id integer primary key, s text not null)", "insert into a values (1, 'x'), (2, 'y')")
		s.exec(db, "alter table a add column n integer")
		code, out := s.run("run", "job.yaml", "n=1")
		require.Equal(t, 0, code, out)
		require.Contains(t, out, "WARN  step ended step=load status=COMPLETED read=2 written=2 warning=\"column n of table a: not in the item")
		_, out = s.run("show", "1")
		require.Equal(t, 1, strings.Count(out, "load: warning: column n of table a: not in the item, so not read"), out)
		require.Equal(t, 1, strings.Count(out, "parts: warning: column n of table a"), out)
		require.NotContains(t, out, "named: warning")
	})
}
