package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func multiply(e *testengine.Engine, n int) {
	e.T.Helper()
	numbers := fmt.Sprintf("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) ", n)
	copied := func(table string, replaced map[string]string, from string) {
		columns := columnsOf(e, table)
		values := make([]string, len(columns))
		for i, c := range columns {
			values[i] = "t." + c
			if v, ok := replaced[c]; ok {
				values[i] = v
			}
		}
		list := strings.Join(columns, ", ")
		e.Exec(fmt.Sprintf("INSERT INTO surfin_%s (%s) %sSELECT %s FROM surfin_%s t, %s", table, list, numbers, strings.Join(values, ", "), table, from))
		if e.Database.Dialect() == tx.Postgres {
			e.Exec("ANALYZE") // foreign keys would be checked by reading whole tables
		}
	}
	copied("job_instance", map[string]string{"instance_key": "'copy' || n.i"}, "n WHERE t.id = 1")
	copied("job_execution", map[string]string{"instance_id": "i.id"}, "surfin_job_instance i WHERE t.id = 1 AND i.instance_key LIKE 'copy%'")
	copied("step_execution", map[string]string{"job_execution_id": "x.id"}, "surfin_job_execution x WHERE t.job_execution_id = 1 AND x.id > 1")
}

func columnsOf(e *testengine.Engine, table string) []string {
	e.T.Helper()
	rows, err := e.Database.Conn().QueryContext(context.Background(), "SELECT * FROM surfin_"+table+" LIMIT 0")
	require.NoError(e.T, err)
	defer rows.Close() //nolint:errcheck // rows.Err is checked
	columns, err := rows.Columns()
	require.NoError(e.T, err)
	require.NoError(e.T, rows.Err())
	return slices.DeleteFunc(columns, func(c string) bool { return c == "id" })
}

// The times of one run are compared with each other, because the machine is
// shared.
func TestExplainTakesAsLongHoweverLongTheHistory(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		fails := e.Tasklet("bad", tx.Attr{}, func(context.Context, *core.StepContribution) error { return fmt.Errorf("out of luck") })
		good := e.Tasklet("good", tx.Attr{}, func(context.Context, *core.StepContribution) error { return nil })
		exec := e.Run(testengine.Job("j", good, fails))
		service, err := New(Config{Repository: e.Repository.Ports(), Provider: e.Provider, Registry: &registry.Registry{}})
		require.NoError(t, err)
		best := func() time.Duration {
			best := time.Hour
			for range 20 {
				began := time.Now()
				found, err := service.Explain(t.Context(), ExplainRequest{Execution: exec.ID})
				require.NoError(t, err)
				best = min(best, time.Since(began))
				require.Equal(t, "out of luck", found.Cause.Error)
			}
			return best
		}
		short := best()
		multiply(e, 10_000)
		long := best()
		t.Logf("explain took %v, and with 10,000 executions %v", short, long)
		require.Less(t, long, 20*short, "it reads what does not belong to the execution")
	})
}
