package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/internal/testproxy"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// An inspection that follows another one of a running execution, of its second attempt too, costs two statements, and
// says the same as one that reads everything.
func TestAnInspectionAfterAnotherReadsOnlyChanges(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url, func(c *job.Config) { c.Heartbeat, c.Lease = time.Minute, time.Hour })
		asked, statements := e, func() int { return 0 }
		if strings.HasPrefix(url, "postgres") {
			proxy := testproxy.New(t, url)
			asked, statements = testengine.New(t, proxy.URL()), proxy.Statements
		}
		now := time.Now()
		service, err := New(Config{Repository: asked.Repository.Ports(), Provider: asked.Provider, Registry: &registry.Registry{}, Now: func() time.Time { return now }})
		require.NoError(t, err)
		reached, gate := make(chan bool), make(chan error)
		waits := func(ctx context.Context, _ *core.StepContribution) error {
			reached <- true
			select {
			case err := <-gate:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		two := testengine.Job("j", e.Tasklet("first", tx.Attr{}, func(context.Context, *core.StepContribution) error { return nil }),
			e.Tasklet("second", tx.Attr{Propagation: tx.NotSupported}, waits), e.Tasklet("third", tx.Attr{Propagation: tx.NotSupported}, waits))
		var known *Inspected
		inspect := func(id core.JobExecutionID) *Inspection {
			got, err := service.Inspect(t.Context(), InspectRequest{Execution: id, Before: known})
			require.NoError(t, err)
			fresh, err := service.Inspect(t.Context(), InspectRequest{Execution: id})
			require.NoError(t, err)
			require.Equal(t, []any{fresh.Execution, fresh.Explanation, fresh.Flow, fresh.Progress}, []any{got.Execution, got.Explanation, got.Flow, got.Progress})
			known = &got.Known
			return got
		}
		costs := func(most int, do func()) {
			before := statements()
			do()
			require.LessOrEqual(t, statements()-before, most)
		}
		ctx, end := context.WithCancel(t.Context())
		defer end()
		for n, fails := range []bool{true, false} {
			known = nil
			id, over := core.JobExecutionID(n+1), make(chan error, 1)
			go func() {
				_, err := e.Launcher.Run(ctx, two, core.Parameters{}, nil)
				over <- err
			}()
			<-reached
			inspect(id)
			costs(2, func() {
				_, err := service.Inspect(t.Context(), InspectRequest{Execution: id, Before: known})
				require.NoError(t, err)
			})
			e.Exec(fmt.Sprintf("UPDATE surfin_step_execution SET write_skip_count = 3, read_count = 7 WHERE job_execution_id = %d AND status = 'STARTED'", id))
			require.EqualValues(t, 7, inspect(id).Progress[0].Read)
			if fails {
				gate <- nil
				<-reached
				require.Equal(t, "third", inspect(id).Progress[0].Step)
				gate <- errors.New("out of luck")
			} else {
				gate <- nil
			}
			require.NoError(t, <-over)
			require.Empty(t, inspect(id).Progress)
			require.NotZero(t, known.Size())
		}
	})
}
