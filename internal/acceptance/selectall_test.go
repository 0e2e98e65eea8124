package acceptance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

// The key of an upsert is never null, which the catalogue of the table that is read says.
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
