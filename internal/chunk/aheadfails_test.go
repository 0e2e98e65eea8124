package chunk_test

import (
	"context"
	"encoding/json"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/chunk"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

type leftBehind struct {
	Status           core.Status
	Counters, InHand core.Counters
	Position         string
	Rows             []int64
	Skips            int
}

// eitherWay runs a step over 35 numbers in chunks of 10, with and without
// reading ahead, and returns the common result (rule C19).
func eitherWay(t *testing.T, config chunk.Config, assemble func(run *model.StepRun, p *chunk.Parts)) (end leftBehind) {
	t.Helper()
	for _, ahead := range []chunk.ReadAhead{chunk.ReadAheadOff, chunk.ReadAheadOn} {
		e := engine(t, testdb.SQLite(t))
		c := config
		c.Name, c.Size, c.Database, c.ReadAhead = "load", 10, e.Database, ahead
		c.Assemble = func(_ context.Context, run *model.StepRun) (chunk.Parts, error) {
			p := chunk.Parts{
				Reader:  item.EraseReader[int](&seekable{numbers: numbers{n: 35}}),
				Writers: []item.Writer{item.EraseWriter[int](&inserts{db: e.Database})},
			}
			assemble(run, &p)
			return p, nil
		}
		s, err := chunk.New(c)
		require.NoError(t, err)
		exec := e.Run(testengine.Job("load", &model.StepElement{Step: s}))
		record := e.Step(exec, "load")
		skips, err := e.Repository.SkippedItems(t.Context(), ports.SkipFilter{Execution: exec.ID, Limit: 100})
		require.NoError(t, err)
		got := leftBehind{record.Status, record.Counters, record.InHand, string(record.Position), e.Ints(allRows), len(skips)}
		if ahead == chunk.ReadAheadOff {
			end = got
		}
		require.Equal(t, end, got, exec.Error)
	}
	return end
}

type unmarkable struct {
	seekable
	at int
}

func (r *unmarkable) Mark() any {
	if r.next == r.at+1 {
		panic("no mark")
	}
	return r.next
}

func (r *unmarkable) PositionAt(mark any) (item.Position, error) { return json.Marshal(mark) }

// tellsTwo is an item.Reader that returns a good item and the failure to read the next one.
type tellsTwo struct {
	item.Reader
	good int
}

func (r tellsTwo) Fill(ctx context.Context, items item.Items, n int) error {
	if err := r.Reader.Fill(ctx, items, n); err != nil {
		return err
	}
	if items.At(items.Len()-1) == r.good {
		return item.Consumed(item.Meta{Line: int64(r.good + 1)}, errBad)
	}
	return nil
}

func TestWhatFailsBehindTheLastItemReadAheadIsHandled(t *testing.T) {
	t.Parallel()
	end := eitherWay(t, chunk.Config{}, func(_ *model.StepRun, p *chunk.Parts) {
		p.Reader = item.EraseReader[int](&unmarkable{seekable{numbers: numbers{n: 35}}, 19})
	})
	require.Equal(t, core.StatusFailed, end.Status)

	skip := chunk.LimitSkip{Limit: 5, Skippable: func(error) bool { return true }}
	end = eitherWay(t, chunk.Config{Skip: skip}, func(_ *model.StepRun, p *chunk.Parts) { p.Reader = tellsTwo{p.Reader, 19} })
	require.Equal(t, core.StatusCompleted, end.Status)
	require.Equal(t, 1, end.Skips)
}

// failsOnce fails with number 15 once. It may be called ahead.
type failsOnce struct {
	fail   func() error
	failed bool
}

func (p *failsOnce) Process(_ context.Context, n int) (int, error) {
	if n == 15 && !p.failed {
		p.failed = true
		return 0, p.fail()
	}
	return n, nil
}

func (*failsOnce) IndependentOf(string) bool { return true }

func TestAnItemThatFailsAheadHasFailed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fail    func() error
		retries int
		status  core.Status
	}{
		"without a retry":   {func() error { return exception.Retryable("look up", errBad) }, 0, core.StatusFailed},
		"with a retry":      {func() error { return exception.Retryable("look up", errBad) }, 1, core.StatusCompleted},
		"a panic":           {func() error { panic("once") }, 1, core.StatusFailed},
		"the goroutine end": {func() error { runtime.Goexit(); return nil }, 1, core.StatusFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, workers := range []int{1, 3} {
				end := eitherWay(t, chunk.Config{Concurrency: workers, Retry: chunk.Retry{Limit: c.retries}}, func(_ *model.StepRun, p *chunk.Parts) {
					p.Processors = []item.Processor{item.EraseProcessor[int, int](&failsOnce{fail: c.fail})}
				})
				require.Equal(t, c.status, end.Status)
			}
		})
	}
}

type stepping struct{ *watched }

func (r stepping) SkipItem(context.Context) error { r.next++; return nil }

func TestAReaderThatEndsItsGoroutineCountsTheSame(t *testing.T) {
	t.Parallel()
	end := eitherWay(t, chunk.Config{}, func(_ *model.StepRun, p *chunk.Parts) {
		p.Reader = item.EraseReader[int](&watched{seekable: seekable{numbers: numbers{n: 35}}, on: func(n int) error {
			if n == 15 {
				runtime.Goexit()
			}
			return nil
		}})
	})
	require.Equal(t, core.StatusFailed, end.Status)
	require.Equal(t, core.Counters{Read: 5}, end.InHand)

	// Also if items were processed ahead of another failure.
	end = eitherWay(t, chunk.Config{Skip: chunk.LimitSkip{Limit: 5}}, func(_ *model.StepRun, p *chunk.Parts) {
		p.Reader = item.EraseReader[int](stepping{&watched{seekable: seekable{numbers: numbers{n: 35}}, on: func(n int) error {
			switch n {
			case 18:
				return exception.Skippable("read", errBad)
			case 19:
				runtime.Goexit()
			}
			return nil
		}}})
		p.Processors = []item.Processor{item.EraseProcessor[int, int](sevens{})}
	})
	require.Equal(t, core.StatusFailed, end.Status)
}

// stopsBefore requests a stop before the chunk that it counts down to.
type stopsBefore struct {
	chunks int
	stop   func()
}

func (l *stopsBefore) BeforeChunk(context.Context) error {
	if l.chunks--; l.chunks == 0 {
		l.stop()
	}
	return nil
}

func TestAStopBeforeAChunkThrowsAwayWhatWasReadAheadOfIt(t *testing.T) {
	t.Parallel()
	end := eitherWay(t, chunk.Config{}, func(run *model.StepRun, p *chunk.Parts) {
		p.Listeners = []any{&stopsBefore{2, run.Services.Stop.Request}}
	})
	require.Equal(t, core.StatusStopped, end.Status)
	require.Equal(t, upTo(10), end.Rows)
}

// acknowledges is a reader that is itself notified of commits.
type acknowledges struct {
	seekable
	acknowledged []int
}

func (r *acknowledges) AfterChunk(context.Context, core.Counters) error {
	r.acknowledged = append(r.acknowledged, r.next)
	return nil
}

// Rule C20.
func TestAReaderThatListensReadsNothingAhead(t *testing.T) {
	t.Parallel()
	r := &acknowledges{seekable: seekable{numbers: numbers{n: 35}}}
	eitherWay(t, chunk.Config{}, func(_ *model.StepRun, p *chunk.Parts) {
		r.next, r.acknowledged = 0, nil
		p.Reader = item.EraseReader[int](r)
	})
	require.Equal(t, []int{10, 20, 30, 35}, r.acknowledged)
}

func TestAChunkThatWasReadAheadInPartIsCompleted(t *testing.T) {
	t.Parallel()
	e := engine(t, testdb.SQLite(t))
	reading, failing := make(chan struct{}), make(chan struct{})
	r := &watched{seekable: seekable{numbers: numbers{n: 35}}, independent: true, on: func(n int) error {
		time.Sleep(2 * time.Millisecond) // so that it is read one by one
		if n == 12 {
			close(reading)
			<-failing
		}
		return nil
	}}
	attempts := 0
	exec := e.Run(aheadStep(t, e, "", r, at(9, func() error {
		if attempts++; attempts > 1 {
			return nil
		}
		<-reading
		close(failing)
		return exception.Retryable("write", errBad)
	})))
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	require.Equal(t, upTo(35), e.Ints(allRows))
	require.Equal(t, core.Counters{Read: 35, Write: 35, Commit: 4, Rollback: 1}, e.Step(exec, "load").Counters)
}

type refusesSkips struct{}

func (refusesSkips) OnSkipRead(context.Context, error) error { return errBad }

// A split commits the items, but not the failed read that came with the last
// one. A restart that counts its way back meets that read again, and handles
// it.
func TestAFailureThatComesWithTheItemInFrontOfARestartIsHandled(t *testing.T) {
	t.Parallel()
	e := engine(t, testdb.SQLite(t))
	run := func(before func(int) error, listeners ...any) *core.JobExecution {
		s, err := chunk.New(chunk.Config{
			Name: "load", Size: 5, Database: e.Database, Skip: chunk.LimitSkip{Limit: 5, Skippable: func(error) bool { return true }},
			Assemble: func(context.Context, *model.StepRun) (chunk.Parts, error) {
				return chunk.Parts{
					Reader:  tellsTwo{item.EraseReader[int](&numbers{n: 12}), 4},
					Writers: []item.Writer{item.EraseWriter[int](&inserts{db: e.Database, before: before})}, Listeners: listeners,
				}, nil
			},
		})
		require.NoError(t, err)
		return e.Run(testengine.Job("load", &model.StepElement{Step: s}))
	}
	require.Equal(t, core.StatusFailed, run(at(2, times(1, errBad)), refusesSkips{}).Status)
	require.Equal(t, upTo(5), e.Ints(allRows))
	exec := run(nil)
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	require.Equal(t, upTo(12), e.Ints(allRows))
	require.Equal(t, core.Counters{Read: 7, ReadSkip: 1, Write: 7, Commit: 2}, e.Step(exec, "load").Counters)
}
