//test:plain

package fail_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/fail"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

func TestItsMessageAndExitCodeAreThoseOfTheStepAndARestartPassesIt(t *testing.T) {
	t.Parallel()
	e := batchtest.New(t)
	file := e.File("job.yaml", `job: guarded
parameters: {rows: {type: int, identifying: false}}
flow:
- step: guard
  tasklet: {fail: {if: "${params.rows < 10}", message: "only ${params.rows} rows", exit: "TOO_FEW_${params.rows}"}}
  next: {"TOO_FEW_*": {fail: {exit: EMPTY}}}
- step: go_on
  tasklet: {sql: select 1}
`)
	r := e.Job(file, "rows=3").Failed("only 3 rows")
	require.Equal(t, "TOO_FEW_3", r.Step("guard").ExitCode)
	require.Equal(t, "EMPTY", r.Execution.ExitCode)
	e.Job(file, "rows=30").Completed()
}

func TestAnExitCodeOfSuccessIsRefused(t *testing.T) {
	t.Parallel()
	for key, c := range map[string]fail.Config{"exit": {Message: "x", Exit: "COMPLETED"}, "message": {Message: " "}} {
		var at *registry.ConfigError
		require.ErrorAs(t, c.Validate(), &at)
		require.Equal(t, key, at.Key)
	}
}
