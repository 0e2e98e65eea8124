package acceptance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestAPartitionedStepThatReadsASnapshotIsRefusedAtLoad(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"job.yaml": `job: meal
flow:
- step: load
  partition: {by: {count: 2}}
  chunk:
    reader: {query: {sql: select n from a, snapshot: true}}
    writer: {table: b}
- step: nothing
  chunk:
    reader: {query: {sql: select n from a}}
    writer: {table: b}
- step: both
  chunk:
    reader: {query: {sql: select n from a, snapshot: true, key: [n]}}
    writer: {table: b}
`})
	code, out := s.run("validate", "job.yaml")
	require.Equal(t, 2, code, out)
	require.Contains(t, out, "job.yaml:6:54: reader query: snapshot: a partition that fails could not be restarted")
	require.Contains(t, out, "job.yaml:10:14: reader query: key: a query needs a key: name the columns that identify its rows, or set `snapshot: true`")
	require.Contains(t, out, "job.yaml:14:54: reader query: snapshot: a key is set, too")
}

func TestAFailedSnapshotIsExplainedAndBegunAgain(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"job.yaml": `job: meal
flow:
- step: load
  chunk:
    size: 2
    reader: {query: {sql: select n from a, snapshot: true, item: {n: int}}}
    writer: {table: {name: b, mode: truncate}}
`})
		db, _ := s.open()
		s.exec(db, "create table a (n bigint)", "create table b (n bigint unique)", "insert into a values (1), (2), (3), (1)")
		code, out := s.run("run", "job.yaml")
		require.Equal(t, 1, code, out)
		_, out = s.run("explain", "1")
		require.Contains(t, out, "row 2 of a snapshot, which cannot be resumed: --from-start reads all rows again, and committed rows stay: empty the target first")
		code, out = s.run("restart", "1")
		require.Equal(t, 1, code, out)
		require.Contains(t, out, "cannot restart: 2 rows of a snapshot were read")
		s.exec(db, "delete from a where n = 1", "insert into a values (4)")
		code, out = s.run("restart", "2", "--from-start")
		require.Equal(t, 0, code, out)
		require.Equal(t, []int64{3, 9}, s.ints(db, "select count(*), sum(n) from b", 2))
	})
}
