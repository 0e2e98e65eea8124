package step_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// TestAStepWhoseContextIsTooLargeFails: its end is recorded all the same, without the
// context that cannot be stored.
func TestAStepWhoseContextIsTooLargeFails(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		b := newBed(t, url)
		record := b.do(t.Context(), b.tasklet(func(_ context.Context, c *core.StepContribution) error {
			return c.Context.Put("text", strings.Repeat("x", core.MaxContextBytes))
		}))
		require.Equal(t, core.StatusFailed, record.Status)
		require.Contains(t, record.Error, "too large")
		require.Empty(t, valuesOf(record.Context))
	})
}
