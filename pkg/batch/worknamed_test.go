package batch_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
)

// Rule OP3.
func TestTheSessionsOfAServerNameJobAndExecution(t *testing.T) {
	t.Parallel()
	e := batchtest.New(t, batchtest.On(testdb.Postgres(t)))
	e.Exec("create table seen (id int, name text)")
	job := e.File("load.yaml", `
job: load
flow:
- step: tasklet
  tasklet: {sql: "insert into seen select 1, current_setting('application_name')"}
- step: chunk
  chunk:
    reader: {query: {sql: "select 2 as id, current_setting('application_name') as name", key: [id]}}
    writer: {table: seen}
`)
	e.Job(job).Completed()
	require.Len(t, e.Rows("select * from seen where name = 'surfin execution 1 of load'"), 2)
}
