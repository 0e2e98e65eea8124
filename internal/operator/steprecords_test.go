package operator

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestFewStepsAndManyAreReadWithTheSameResult(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		exec := e.Run(testengine.Job("j", e.Tasklet("s", tx.Attr{}, func(context.Context, *core.StepContribution) error { return fmt.Errorf("out of luck") })))
		addParts(e, 1, 12)
		e.Exec("UPDATE surfin_step_execution SET status = 'COMPLETED', exit_code = 'COMPLETED', error_text = '' WHERE id IN (3, 4, 5, 6)")
		e.Exec("UPDATE surfin_step_execution SET exit_code = 'NOOP' WHERE id = 4")
		e.Exec("UPDATE surfin_step_execution SET flow = 'f' WHERE id = 7")
		e.Exec("UPDATE surfin_step_execution SET read_skip_count = 1 WHERE id = 8")
		e.Exec(`UPDATE surfin_step_execution SET context = '{"version":1,"values":{"surfin.warnings":{"t":"string","v":"slow"}}}' WHERE id = 5`)
		e.Exec("UPDATE surfin_step_execution SET status = 'STARTED', ended_at = NULL, lease_until = started_at WHERE id = 9")
		e.Exec("UPDATE surfin_step_execution SET context = '{' WHERE id = 10")
		records := e.Repository.Ports()
		service, err := New(Config{Repository: records, Provider: e.Provider, Registry: &registry.Registry{}})
		require.NoError(t, err)
		judged, err := service.history.judge.judgedExecution(t.Context(), exec.ID)
		require.NoError(t, err)

		entries, err := records.StepEntries(t.Context(), exec.InstanceID, exec.ID, exec.ID)
		require.NoError(t, err)
		require.Len(t, entries, 13)
		found, err := records.StepsOf(t.Context(), exec.ID)
		require.NoError(t, err)
		for i := range entries {
			require.Equal(t, entries[i], entryOf(&found[exec.ID][i]))
		}
		few, err := readSteps(t.Context(), records, judged, listedPartitions, true)
		require.NoError(t, err)
		judged.Steps = fewSteps + 1
		many, err := readSteps(t.Context(), records, judged, listedPartitions, true)
		require.NoError(t, err)
		require.Equal(t, many, few)
	})
}
