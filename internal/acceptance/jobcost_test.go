package acceptance

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb/pgcluster"
)

// The last two of the history are for the command's summary.
func TestAJobOfThreeStepsIsFewStatements(t *testing.T) {
	t.Parallel()
	cluster, err := pgcluster.Start(t.Context(), "log_statement=all")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cluster.Stop()) })
	s := newScene(t, cluster.URL(), map[string]string{
		"tasklets.yaml": `
job: tasklets
flow:
- {step: one, tasklet: {sql: select 1}}
- {step: two, tasklet: {sql: select 2}}
- {step: three, tasklet: {sql: select 3}}
`,
		"chunks.yaml": `
job: chunks
flow:
- {step: create, tasklet: {sql: create table target (id bigint)}}
- {step: none, chunk: {reader: {csv: {path: none.csv, item: {id: int}}}, writer: {table: target}}}
- {step: few, chunk: {reader: {csv: {path: few.csv, item: {id: int}}}, writer: {table: target}}}
`,
		"none.csv": "id\n",
		"few.csv":  "id\n1\n2\n3\n",
	})
	code, out := s.run("migrate")
	require.Zero(t, code, out)
	for job, c := range map[string]struct{ history, all int }{
		"tasklets": {history: 2 + 1 + 1 + 3*2 + 1 + 1 + 2, all: 31},
		"chunks":   {history: 2 + 1 + 1 + 3*2 + 1 + 1 + 1 + 2, all: 34}, // the chunk's checkpoint
	} {
		before := logOf(t, cluster)
		code, out = s.run("run", job+".yaml")
		require.Zero(t, code, out)
		var history []string
		all := regexp.MustCompile(`LOG:  (statement|execute [^:]*): `).Split(strings.TrimPrefix(logOf(t, cluster), before), -1)[1:]
		for _, found := range all {
			text, _, _ := strings.Cut(found, "DETAIL: ")
			if strings.Contains(text, `"surfin_`) && !strings.Contains(text, "surfin_schema_migrations") {
				history = append(history, text)
			}
		}
		const slow = 2 // batches of the log, or a heartbeat, if the machine is slow
		require.LessOrEqual(t, len(history), c.history+slow, strings.Join(history, "\n"))
		t.Log(job, len(history), len(all))
		require.LessOrEqual(t, len(all), c.all+slow)
	}
}

func logOf(t *testing.T, cluster *pgcluster.Cluster) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(cluster.Dir(), "log"))
	require.NoError(t, err)
	return string(text)
}
