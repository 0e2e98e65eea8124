package chunk_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/chunk"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

type stormy struct {
	next, bad, n int
	at           map[int]func() // called at a read
}

func (r *stormy) Read(context.Context) (int, error) {
	place := r.next
	r.next++
	if happens := r.at[place]; happens != nil {
		happens()
	}
	switch {
	case place < r.bad:
		return 0, item.Consumed(item.Meta{Line: int64(place + 1)}, exception.Skippable("parse", errBad))
	case place < r.bad+r.n:
		return place - r.bad, nil
	}
	r.next--
	return 0, io.EOF
}

// commits returns the number of skips recorded by each commit of the step.
func commits(e *testengine.Engine) (skips []int64) {
	var before int64
	for _, event := range e.Events() {
		if c, ok := event.(core.ChunkCommitted); ok {
			skips = append(skips, c.Counters.Skips()-before)
			before = c.Counters.Skips()
		}
	}
	return skips
}

func storedLines(t *testing.T, f fixture, exec *core.JobExecution) (lines []int64) {
	t.Helper()
	skips, err := f.e.Repository.SkippedItems(context.Background(), ports.SkipFilter{Execution: exec.ID, Limit: 10000})
	require.NoError(t, err)
	for _, s := range skips {
		lines = append(lines, s.Meta.Line)
	}
	return lines
}

func TestAChunkEndsAfterABoundedNumberOfSkippedReads(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		f := fixture{
			e: engine(t, url), reader: &stormy{bad: 2500, n: 25},
			config: chunk.Config{Size: 10, Skip: chunk.LimitSkip{Limit: 2500}},
		}
		exec := f.run(t)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, []int64{1000, 1000, 500, 0, 0}, commits(f.e))
		require.Equal(t, core.Counters{Read: 25, Write: 25, ReadSkip: 2500, Commit: 3}, f.e.Step(exec, "load").Counters)
		require.Equal(t, upTo(25), f.e.Ints(allRows))
		lines := storedLines(t, f, exec)
		require.Len(t, lines, 2500)
		require.True(t, slices.IsSorted(lines))
		require.Len(t, slices.Compact(lines), 2500)
	})
}

func TestALargerChunkMayHaveAsManySkippedReadsAsItems(t *testing.T) {
	t.Parallel()
	f := fixture{
		e: engine(t, testdb.SQLite(t)), reader: &stormy{bad: 3000},
		config: chunk.Config{Size: 2000, Skip: chunk.LimitSkip{Limit: 3000}},
	}
	require.Equal(t, core.StatusCompleted, f.run(t).Status)
	require.Equal(t, []int64{2000, 1000}, commits(f.e))
}

func TestAStopIsSeenBetweenReadsAndCommitsWhatWasRead(t *testing.T) {
	t.Parallel()
	const endless = 1 << 40
	errLate := errors.New("the stop was not seen")
	for name, c := range map[string]struct {
		bad, n int // of the first run
		listen []any
	}{
		"in a storm of bad lines": {bad: endless},
		"among items":             {n: endless},
		"with a read listener":    {n: endless, listen: []any{&deaf{}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stop := make(chan struct{})
			r := &stormy{bad: c.bad, n: c.n, at: map[int]func(){
				1234:    func() { close(stop) },
				1 << 20: func() { panic(errLate) },
			}}
			f := fixture{
				e: engine(t, testdb.SQLite(t)), reader: r, listen: c.listen,
				process: func(int) (int, error) { return 0, item.ErrFilter },
				config:  chunk.Config{Size: 1 << 21, MaxSkippedReads: 1 << 21, Skip: chunk.LimitSkip{Limit: endless}},
			}
			exec := f.runUntil(t, stop)
			require.Equal(t, core.StatusStopped, exec.Status, exec.Error)
			counters := f.e.Step(exec, "load").Counters
			require.EqualValues(t, r.next, counters.Read+counters.ReadSkip, "what was read is committed")
			require.Equal(t, counters.Read, counters.Filter)
			require.Zero(t, counters.Rollback)
			require.Len(t, commits(f.e), 1)
		})
	}
}

type deaf struct{}

func (*deaf) AfterRead(context.Context, any) error { return nil }

func TestAStopIsSeenOnTheWayBackToThePosition(t *testing.T) {
	t.Parallel()
	f := fixture{
		e: engine(t, testdb.SQLite(t)), reader: &stormy{bad: 1500, n: 10},
		config: chunk.Config{Size: 10, Skip: chunk.LimitSkip{Limit: 1500}},
	}
	stop := make(chan struct{})
	f.reader = &stormy{bad: 1500, n: 10, at: map[int]func(){1200: func() { close(stop) }}}
	require.Equal(t, core.StatusStopped, f.runUntil(t, stop).Status)
	again := make(chan struct{})
	r := &stormy{bad: 1500, n: 10, at: map[int]func(){600: func() { close(again) }}}
	f.reader = r
	exec := f.runUntil(t, again)
	require.Equal(t, core.StatusStopped, exec.Status, exec.Error)
	require.Less(t, r.next, 700)
	f.reader = &stormy{bad: 1500, n: 10}
	exec = f.runUntil(t, nil)
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	require.Equal(t, upTo(10), f.e.Ints(allRows))
	require.Equal(t, []int64{1500}, f.e.Ints("select count(*) from surfin_skipped_item"))
	require.Equal(t, []int64{1500}, f.e.Ints("select count(distinct line) from surfin_skipped_item"))
}

func TestManySkipsOfEachPhaseInOneChunkAreStoredInOrder(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		f := fixture{
			e: engine(t, url), reader: &stormy{bad: 900, n: 600},
			process: func(i int) (int, error) {
				if i%3 == 0 {
					return 0, exception.Skippable("process", errBad)
				}
				return i, nil
			},
			before: func(i int) error {
				if i%3 == 1 {
					return exception.Skippable("write", errBad)
				}
				return nil
			},
			config: chunk.Config{Size: 600, Isolate: chunk.IsolateBisect, Skip: chunk.LimitSkip{Limit: 1300}},
		}
		exec := f.run(t)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		c := f.e.Step(exec, "load").Counters
		require.Equal(t, []int64{900, 200, 200, 200}, []int64{c.ReadSkip, c.ProcessSkip, c.WriteSkip, c.Write})
		skips, err := f.e.Repository.SkippedItems(context.Background(), ports.SkipFilter{Execution: exec.ID, Limit: 10000})
		require.NoError(t, err)
		require.Len(t, skips, 1300)
		for i, s := range skips[:900] {
			require.Equal(t, core.PhaseRead, s.Phase)
			require.EqualValues(t, i+1, s.Meta.Line)
			_, passed, err := chunk.ParseMark(s.Mark)
			require.NoError(t, err)
			require.EqualValues(t, i, passed, "the outcomes before it")
		}
	})
}
