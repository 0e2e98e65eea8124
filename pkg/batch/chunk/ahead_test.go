package chunk_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// Filling a work touches nothing but the work, the reader and the chains (rule C19):
// with the race detector this fails where it does. Rows, counters, position and skipped
// items are those of the step that fills and commits in turn.
func TestAWorkIsFilledWhileAnotherOneCommits(t *testing.T) {
	t.Parallel()
	var ends []core.StepExecution
	var rows [][]int64
	var skips [][]core.SkippedItem
	for _, ahead := range []bool{false, true} {
		e := testengine.New(t, testdb.SQLite(t))
		e.Exec("create table out(id bigint)")
		s, err := chunk.New(chunk.Config{
			Name: "load", Size: 7, Database: e.Database, Skip: chunk.LimitSkip{Limit: 100, Skippable: func(error) bool { return true }}, Concurrency: 2,
			Assemble: func(context.Context, *core.StepRun) (chunk.Parts, error) {
				return chunk.Parts{
					Reader:     item.EraseReader[int](&seekable{numbers: numbers{n: 200}}),
					Processors: []item.Processor{item.EraseProcessor[int, int](choosy{})},
					Writers:    []item.Writer{item.EraseWriter[int](&inserts{db: e.Database})},
				}, nil
			},
		})
		require.NoError(t, err)
		var step core.Step = s
		if ahead {
			step = chunk.Ahead{Step: s}
		}
		exec := e.Run(testengine.Job("load", &core.StepElement{Step: step}))
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		end := e.Step(exec, "load")
		ends = append(ends, core.StepExecution{Counters: end.Counters, Position: end.Position})
		rows = append(rows, e.Ints("select id from out order by id"))
		list, err := e.Repository.SkippedItems(t.Context(), core.SkipFilter{Execution: exec.ID, Limit: 1000})
		require.NoError(t, err)
		for i := range list {
			list[i].CreatedAt = list[0].CreatedAt
		}
		skips = append(skips, list)
	}
	require.Equal(t, ends[0], ends[1])
	require.Equal(t, rows[0], rows[1])
	require.Equal(t, core.Counters{Read: 200, Filter: 29, Write: 155, ProcessSkip: 16, Commit: 29}, ends[1].Counters)
	for i := range skips[0] {
		skips[1][i].CreatedAt = skips[0][i].CreatedAt
	}
	require.Equal(t, skips[0], skips[1])
}

// choosy filters every 7th number, and fails on every 11th.
type choosy struct{}

func (choosy) Process(_ context.Context, n int) (int, error) {
	switch {
	case n%7 == 0:
		return 0, item.ErrFilter
	case n%11 == 0:
		return 0, errBad
	}
	return n, nil
}
