package operator

import (
	"context"
	"fmt"
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

// addParts gives step s, record 1, of execution 1 failed partitions that differ by their numbers.
func addParts(e *testengine.Engine, from, to int) {
	e.T.Helper()
	columns := columnsOf(e, "step_execution")
	values := make([]string, len(columns))
	for i, c := range columns {
		switch values[i] = "t." + c; c {
		case "name":
			values[i] = "t.name || ':' || n.i"
		case "manager_id":
			values[i] = "t.id"
		case "ordinal":
			values[i] = "0"
		}
	}
	e.Exec(fmt.Sprintf("INSERT INTO surfin_step_execution (%s) WITH RECURSIVE n(i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT %s FROM surfin_step_execution t, n WHERE t.id = 1",
		strings.Join(columns, ", "), from, to, strings.Join(values, ", ")))
	e.Exec(fmt.Sprintf("UPDATE surfin_job_execution SET step_count = step_count + %d WHERE id = 1", to-from+1))
}

// The times of one run are compared with each other, because the machine is
// shared.
func TestExplainAndShowAreBoundedWithManyPartitions(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		exec := e.Run(testengine.Job("j", e.Tasklet("s", tx.Attr{}, func(context.Context, *core.StepContribution) error { return fmt.Errorf("out of luck") })))
		service, err := New(Config{Repository: e.Repository.Ports(), Provider: e.Provider, Registry: &registry.Registry{}})
		require.NoError(t, err)
		best := func(parts int) time.Duration {
			best := time.Hour
			for range 3 {
				began := time.Now()
				found, err := service.Explain(t.Context(), ExplainRequest{Execution: exec.ID})
				require.NoError(t, err)
				best = min(best, time.Since(began))
				of := found.Steps[0].Partitions
				require.Equal(t, parts, of.Total)
				require.Equal(t, parts, of.Statuses[core.StatusFailed])
				require.Len(t, of.List, listedPartitions)
				require.Equal(t, parts-listedPartitions, of.Omitted)
				require.Equal(t, "1", of.List[0].Step)
			}
			return best
		}
		addParts(e, 1, 500)
		few := best(500)
		addParts(e, 501, 4000)
		many := best(4000)
		for tries := 0; many >= 24*few && tries < 10; tries++ { // other tests use the cores
			many = min(many, best(4000))
		}
		t.Logf("explain took %v with 500 partitions, and %v with 4,000", few, many)
		require.Less(t, many, 24*few, "eight times as many are eight times the work, and not sixty-four times")

		shown, err := service.Show(t.Context(), ShowRequest{Execution: exec.ID})
		require.NoError(t, err)
		of := shown.Steps[0].Partitions
		require.Equal(t, []int{4000, listedPartitions, 4000 - listedPartitions}, []int{of.Total, len(of.List), of.Omitted})
		shown, err = service.Show(t.Context(), ShowRequest{Execution: exec.ID, Partitions: true})
		require.NoError(t, err)
		of = shown.Steps[0].Partitions
		require.Equal(t, []int{4000, allPartitions, 4000 - allPartitions}, []int{of.Total, len(of.List), of.Omitted})
	})
}
