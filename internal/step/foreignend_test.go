package step_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Rule T8a.
func TestATaskletWhoseScriptEndsTheTransactionFails(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		for _, script := range []string{"select 1; commit; begin", "select 1; commit", "select 1; rollback; begin", "select 1; rollback"} {
			exec := e.Run(testengine.Job(script[10:12]+string(rune('a'+len(script))), e.Tasklet("one", tx.Attr{}, func(ctx context.Context, _ *core.StepContribution) error {
				_, err := tx.ConnOf(ctx, e.Database).ExecContext(ctx, script)
				return err
			})))
			require.Equal(t, core.StatusFailed, exec.Status, script)
			require.Contains(t, exec.Error, tx.ErrForeignEnd.Error(), script)
			require.Equal(t, core.StatusFailed, e.Step(exec, "one").Status, script)
		}
	})
}
