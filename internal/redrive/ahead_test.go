package redrive_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/chunk"
	"github.com/surfin-batch/surfin/internal/redrive"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Rule C19.
func TestARedriveThatReadsAheadMarksWhatItHasWritten(t *testing.T) {
	t.Parallel()
	b := newBench(t, testdb.SQLite(t))
	b.config = chunk.Config{Size: 2, ReadAhead: chunk.ReadAheadOn}
	const n = 600
	for id := int64(1); id <= n; id++ {
		b.deeds[id] = skipProcess
	}
	original := b.original(t, n)
	for _, c := range []struct {
		deeds map[int64]deed
		end   core.Status
	}{
		{map[int64]deed{n - 50: failWrite}, core.StatusFailed},
		{map[int64]deed{}, core.StatusCompleted},
	} {
		b.deeds = c.deeds
		exec := b.redrive(t, b.plan(t, redrive.Request{Execution: original.ID}), 1)
		require.Equal(t, c.end, exec.Status, exec.Error)
		rows := b.rows()
		for _, s := range b.skipped(t, original) {
			require.Equal(t, rows[idOf(t, s)] == 1, s.RedrivenBy != 0, "item %d", idOf(t, s))
		}
	}
	require.Len(t, b.rows(), n)
	for id, rows := range b.rows() {
		require.Equal(t, 1, rows, "rows of %d", id)
	}
}
