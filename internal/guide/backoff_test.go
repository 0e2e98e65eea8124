//test:plain

package guide

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

func TestTheTimeForAllAttemptsEndsThem(t *testing.T) {
	t.Parallel()
	for _, phase := range []core.Phase{core.PhaseRead, core.PhaseProcess, core.PhaseWrite} {
		t.Run(string(phase), func(t *testing.T) {
			t.Parallel()
			e := batchtest.New(t, batchtest.WithFaults(batchtest.Fault{Phase: phase, Err: exception.Retryable("ask", errors.New("not now"))}))
			e.File("in.csv", "id\n1\n")
			r := e.Job(e.File("job.yaml", `job: patient
flow:
- step: load
  chunk:
    reader: {csv: {path: in.csv, item: {id: int}}}
    processor: {filter: item.id > 0}
    writer: {table: {name: ids, create: true}}
    retry: {limit: 1000000, backoff: {initial: 1ms, multiplier: 1, elapsed: 30ms}}
`))
			r.Failed("not now")
			require.Regexp(t, `failed \d+ times, last`, r.Execution.Error)
		})
	}
}
