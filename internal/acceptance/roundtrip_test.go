package acceptance

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testproxy"
)

// Round trips that do not depend on the number of chunks are in both runs.
func TestAChunkIsThreeRoundTrips(t *testing.T) {
	t.Parallel()
	const chunks = 40
	run := func(rows int) testproxy.Messages {
		line := testproxy.New(t, testdb.Postgres(t))
		s := newScene(t, line.URL(), map[string]string{"load.yaml": `
job: load
flow:
- step: create
  tasklet: {sql: {statement: "create table target (id bigint, name text, amount double precision)"}}
- step: load
  chunk:
    size: 100
    reader: {csv: {path: in.csv, item: {id: int, name: string, amount: float}}}
    writer: {table: target}
`})
		writeInput(t, filepath.Join(s.dir, "in.csv"), rows)
		code, out := s.run("run", "load.yaml")
		require.Zero(t, code, out)
		return line.Busiest()
	}
	few, many := run(100*chunks), run(200*chunks)
	require.Equal(t, chunks, many.Executes-few.Executes)
	const others = 4 // such as a heartbeat in one of the runs
	require.InDelta(t, 2*chunks, many.Queries-few.Queries, others)
	require.InDelta(t, 3*chunks, many.RoundTrips-few.RoundTrips, others)
}
