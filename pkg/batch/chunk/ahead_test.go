package chunk_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// Rule C19.
func TestReadingAheadChangesNothing(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 3} {
		var ends []core.StepExecution
		var rows [][]int64
		var skips [][]core.SkippedItem
		for _, ahead := range []chunk.ReadAhead{chunk.ReadAheadOff, chunk.ReadAheadOn} {
			e := testengine.New(t, testdb.SQLite(t))
			e.Exec("create table out(id bigint)")
			s, err := chunk.New(chunk.Config{
				Name: "load", Size: 7, Database: e.Database, Concurrency: workers, ReadAhead: ahead,
				Skip: chunk.LimitSkip{Limit: 100, Skippable: func(error) bool { return true }},
				Assemble: func(context.Context, *model.StepRun) (chunk.Parts, error) {
					return chunk.Parts{
						Reader:     item.EraseReader[int](&choosyReader{seekable{numbers: numbers{n: 200}}}),
						Processors: []item.Processor{item.EraseProcessor[int, int](choosy{})},
						Writers:    []item.Writer{item.EraseWriter[int](&inserts{db: e.Database})},
					}, nil
				},
			})
			require.NoError(t, err)
			exec := e.Run(testengine.Job("load", &model.StepElement{Step: s}))
			require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
			end := e.Step(exec, "load")
			ends = append(ends, core.StepExecution{Counters: end.Counters, Position: end.Position})
			rows = append(rows, e.Ints("select id from out order by id"))
			list, err := e.Repository.SkippedItems(t.Context(), ports.SkipFilter{Execution: exec.ID, Limit: 1000})
			require.NoError(t, err)
			for i := range list {
				list[i].CreatedAt = time.Time{}
			}
			skips = append(skips, list)
		}
		require.Equal(t, ends[0], ends[1])
		require.Equal(t, rows[0], rows[1])
		require.Equal(t, skips[0], skips[1])
		require.Equal(t, core.Counters{Read: 184, Filter: 26, Write: 143, ReadSkip: 16, ProcessSkip: 15, Commit: 27}, ends[1].Counters)
	}
}

// Rule C11.
func TestAStepThatFailsCountsTheSameReadAheadOrNot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		read    error // of number 18, after a filtered one
		process int   // the number that cannot be processed; 0 means none
		write   int   // likewise
		listen  int   // the chunk before which a listener fails; 0 means none
		place   int   // the chunk after which the reader has no position; 0 means none
		want    core.Counters
	}{
		"a read":                      {read: errBad, want: core.Counters{Read: 18, Filter: 1, Write: 9, Commit: 1, Rollback: 1}},
		"an item that is processed":   {process: 19, want: core.Counters{Read: 20, Filter: 2, Write: 9, Commit: 1, Rollback: 1}},
		"a write":                     {write: 19, want: core.Counters{Read: 20, Filter: 2, Write: 9, Commit: 1, Rollback: 1}},
		"the position":                {place: 2, want: core.Counters{Read: 20, Filter: 1, Write: 9, Commit: 1, Rollback: 1}},
		"a listener before the first": {listen: 1, want: core.Counters{Rollback: 1}},
		"a listener before the third": {listen: 3, want: core.Counters{Read: 20, Filter: 2, Write: 18, Commit: 2, Rollback: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, workers := range []int{1, 3} {
				for _, ahead := range []chunk.ReadAhead{chunk.ReadAheadOff, chunk.ReadAheadOn} {
					e := engine(t, testdb.SQLite(t))
					r := &watched{independent: true, on: func(n int) error {
						if n == 18 {
							return c.read
						}
						return nil
					}}
					r.n = 30
					s, err := chunk.New(chunk.Config{
						Name: "load", Size: 10, Database: e.Database, ReadAhead: ahead, Concurrency: workers,
						Assemble: func(context.Context, *model.StepRun) (chunk.Parts, error) {
							return chunk.Parts{
								Reader: item.EraseReader[int](&losesPlace{r, c.place}), Listeners: []any{&startsUpTo{c.listen}},
								Processors: []item.Processor{item.EraseProcessor[int, int](sevens{fails: c.process})},
								Writers: []item.Writer{item.EraseWriter[int](&inserts{db: e.Database, before: func(n int) error {
									if c.write > 0 && n == c.write {
										return errBad
									}
									return nil
								}})},
							}, nil
						},
					})
					require.NoError(t, err)
					exec := e.Run(testengine.Job("load", &model.StepElement{Step: s}))
					require.Equal(t, core.StatusFailed, exec.Status)
					require.Equal(t, c.want, e.Step(exec, "load").Counters, "%d workers, read ahead %q", workers, ahead)
				}
			}
		})
	}
}

// sevens filters numbers that end in 7. It may be called ahead.
type sevens struct{ fails int }

func (p sevens) Process(_ context.Context, n int) (int, error) {
	switch {
	case p.fails > 0 && n == p.fails:
		return 0, errBad
	case n%10 == 7:
		return 0, item.ErrFilter
	}
	return n, nil
}

func (sevens) IndependentOf(string) bool { return true }

type losesPlace struct {
	*watched
	chunks int
}

func (r *losesPlace) Position() (item.Position, error) {
	if r.chunks--; r.chunks == 0 {
		return nil, errBad
	}
	return r.watched.Position()
}

// startsUpTo fails before the chunk that it counts down to.
type startsUpTo struct{ chunks int }

func (l *startsUpTo) BeforeChunk(context.Context) error {
	if l.chunks--; l.chunks == 0 {
		return errBad
	}
	return nil
}

// choosyReader fails on every 13th number, and has consumed it.
type choosyReader struct{ seekable }

func (r *choosyReader) Read(ctx context.Context) (int, error) {
	n, err := r.seekable.Read(ctx)
	if err == nil && n%13 == 0 {
		return 0, item.Consumed(item.Meta{Line: int64(n)}, errBad)
	}
	return n, err
}

// choosy filters every 7th number, and fails on every 11th. It may be called ahead.
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

func (choosy) IndependentOf(string) bool { return true }

type watched struct {
	seekable
	independent bool
	last        atomic.Int64
	on          func(n int) error // before number n is read
}

func (r *watched) IndependentOf(string) bool { return r.independent }

func (r *watched) Read(ctx context.Context) (int, error) {
	if r.on != nil {
		if err := r.on(r.next); err != nil {
			return 0, err
		}
	}
	n, err := r.seekable.Read(ctx)
	if err == nil {
		r.last.Store(int64(n))
	}
	return n, err
}

// aheadStep is a step of chunks of 10.
func aheadStep(t *testing.T, e *testengine.Engine, ahead chunk.ReadAhead, r *watched, before func(int) error, listeners ...any) *model.Job {
	t.Helper()
	s, err := chunk.New(chunk.Config{
		Name: "load", Size: 10, Database: e.Database, ReadAhead: ahead, Retry: chunk.Retry{Limit: 1},
		Assemble: func(context.Context, *model.StepRun) (chunk.Parts, error) {
			return chunk.Parts{
				Reader: item.EraseReader[int](r), Writers: []item.Writer{item.EraseWriter[int](&inserts{db: e.Database, before: before})}, Listeners: listeners,
			}, nil
		},
	})
	require.NoError(t, err)
	return testengine.Job("load", &model.StepElement{Step: s})
}

const patience = 20 * time.Second

func TestTheNextChunkIsReadWhileThisOneIsWritten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		independent bool
		ahead       chunk.ReadAhead
		listeners   []any
		want        int64 // read when item 9 is written
	}{
		"a reader that says that it may": {independent: true, want: 19},
		"a step that says so":            {ahead: chunk.ReadAheadOn, want: 19},
		"nobody says so":                 {want: 9},
		"a step that forbids it":         {independent: true, ahead: chunk.ReadAheadOff, want: 9},
		"a listener of reads":            {independent: true, listeners: []any{readListener{}}, want: 9},
	} {
		t.Run(name, func(t *testing.T) {
			e := engine(t, testdb.SQLite(t))
			r := &watched{seekable: seekable{numbers: numbers{n: 25}}, independent: c.independent}
			job := aheadStep(t, e, c.ahead, r, func(i int) error {
				if i == 9 {
					until := time.Now().Add(patience)
					for r.last.Load() < c.want && time.Now().Before(until) {
						runtime.Gosched()
					}
					if got := r.last.Load(); got != c.want {
						return fmt.Errorf("%d are read", got)
					}
				}
				return nil
			}, c.listeners...)
			exec := e.Run(job)
			require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
			require.Len(t, e.Ints("select id from out"), 25)
		})
	}
}

type readListener struct{}

func (readListener) BeforeRead(context.Context) error { return nil }

func TestAFailureThrowsAwayWhatWasReadAhead(t *testing.T) {
	t.Parallel()
	e := engine(t, testdb.SQLite(t))
	r := &watched{seekable: seekable{numbers: numbers{n: 35}}, independent: true}
	broken := true
	write := func(i int) error {
		if broken && i == 15 {
			return exception.Fatal("test", errBad)
		}
		return nil
	}
	exec := e.Run(aheadStep(t, e, "", r, write))
	require.Equal(t, core.StatusFailed, exec.Status)
	require.Equal(t, core.Counters{Read: 20, Write: 10, Commit: 1, Rollback: 1}, e.Step(exec, "load").Counters)
	require.Equal(t, 1, r.closed)
	broken = false
	r = &watched{seekable: seekable{numbers: numbers{n: 35}}, independent: true}
	exec = e.Run(aheadStep(t, e, "", r, write))
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	require.Equal(t, []string{"10"}, r.opened)
	require.Len(t, e.Ints("select distinct id from out"), 35)
	require.Len(t, e.Ints("select id from out"), 35)
}

func TestAFailureOfReadingAheadWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func() error{
		"error": func() error { return exception.Fatal("test", errBad) },
		"panic": func() error { panic("in the reader") },
		"goexit": func() error {
			runtime.Goexit()
			return nil
		},
		"wrapped end": func() error { return fmt.Errorf("cut off: %w", io.EOF) },
	} {
		t.Run(name, func(t *testing.T) {
			e := engine(t, testdb.SQLite(t))
			r := &watched{seekable: seekable{numbers: numbers{n: 100}}, independent: true, on: func(n int) error {
				if n == 15 {
					return fail()
				}
				return nil
			}}
			exec := e.Run(aheadStep(t, e, "", r, nil))
			require.Equal(t, core.StatusFailed, exec.Status)
			require.Equal(t, core.Counters{Read: 15, Write: 10, Commit: 1, Rollback: 1}, e.Step(exec, "load").Counters)
			require.Len(t, e.Ints("select id from out"), 10)
		})
	}
}

func TestAReadAheadIsRetried(t *testing.T) {
	t.Parallel()
	e := engine(t, testdb.SQLite(t))
	failures := 0
	r := &watched{seekable: seekable{numbers: numbers{n: 30}}, independent: true, on: func(n int) error {
		if n == 15 && failures == 0 {
			failures++
			return exception.Retryable("test", errBad)
		}
		return nil
	}}
	exec := e.Run(aheadStep(t, e, "", r, nil))
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	require.Equal(t, core.Counters{Read: 30, Write: 30, Commit: 3}, e.Step(exec, "load").Counters)
	require.Equal(t, 1, failures)
}

func TestAStopThrowsAwayWhatWasReadAhead(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url, func(c *job.Config) { c.Heartbeat, c.Lease = time.Minute, 5*time.Minute })
		e.Exec("create table out(id bigint)")
		asked := false
		reader := func() *watched {
			return &watched{seekable: seekable{numbers: numbers{n: 100}}, independent: true, on: func(n int) error {
				if n != 13 || asked {
					return nil
				}
				asked = true
				id := e.Ints("select max(id) from surfin_job_execution")[0]
				_, err := e.Repository.RequestStop(t.Context(), core.JobExecutionID(id), ports.By{Actor: "test"})
				return err
			}}
		}
		exec := e.Run(aheadStep(t, e, "", reader(), nil))
		require.Equal(t, core.StatusStopped, exec.Status, exec.Error)
		written := e.Ints(allRows)
		require.Contains(t, []int{10, 20}, len(written), "the commit of the first chunk may see the request, or that of the second")
		require.Equal(t, upTo(len(written)), written)
		exec = e.Run(aheadStep(t, e, "", reader(), nil))
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, upTo(100), e.Ints(allRows))
	})
}
