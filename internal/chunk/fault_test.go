package chunk_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/chunk"
	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/config"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type fixture struct {
	e       *testengine.Engine
	reader  item.ItemReader[int]
	process processorFunc
	// processor replaces process; nil means none.
	processor item.ItemProcessor[int, int]
	before    func(int) error
	config    chunk.Config
	listen    []any
}

func (f fixture) run(t *testing.T) *core.JobExecution { return f.runUntil(t, nil) }

func (f fixture) runUntil(t *testing.T, stop chan struct{}) *core.JobExecution {
	t.Helper()
	c := f.config
	c.Name = "load"
	if c.Size == 0 {
		c.Size = 10
	}
	if c.Database == nil {
		c.Database = f.e.Database
	}
	c.Assemble = func(context.Context, *model.StepRun) (chunk.Parts, error) {
		parts := chunk.Parts{
			Reader: item.EraseReader(f.reader), Writers: []item.Writer{item.EraseWriter[int](&inserts{db: f.e.Database, before: f.before})},
			Listeners: f.listen,
		}
		if f.process != nil {
			parts.Processors = []item.Processor{item.EraseProcessor[int, int](f.process)}
		}
		if f.processor != nil {
			parts.Processors = []item.Processor{item.EraseProcessor(f.processor)}
		}
		return parts, nil
	}
	s, err := chunk.New(c)
	require.NoError(t, err)
	exec, err := f.e.Launcher.Run(context.Background(), testengine.Job("load", &model.StepElement{Step: s}), core.Parameters{}, stop)
	require.NoError(t, err)
	return exec
}

func times(n int, err error) func() error {
	return func() error {
		if n--; n >= 0 {
			return err
		}
		return nil
	}
}

func at(item int, fail func() error) func(int) error {
	return func(i int) error {
		if i != item {
			return nil
		}
		return fail()
	}
}

var errBad = errors.New("bad")

func always(err error) func() error { return func() error { return err } }

func TestAChunkIsWrittenAgainWholeAndNoItemIsLost(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		for _, keep := range []bool{false, true} {
			t.Run(fmt.Sprintf("keep outputs %v", keep), func(t *testing.T) {
				processed := 0
				f := fixture{
					e: engine(t, emptied(t, url)), reader: &numbers{n: 25},
					process: func(i int) (int, error) { processed++; return i, nil },
					before:  at(13, times(2, exception.Retryable("write", errBad))),
					config:  chunk.Config{Retry: chunk.Retry{Limit: 2}, KeepOutputs: keep},
				}
				exec := f.run(t)
				require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
				require.Equal(t, upTo(25), f.e.Ints(allRows))
				require.Equal(t, core.Counters{Read: 25, Write: 25, Commit: 3, Rollback: 2}, f.e.Step(exec, "load").Counters)
				require.Equal(t, map[bool]int{false: 45, true: 25}[keep], processed)
			})
		}
	})
}

func TestAWriteThatStaysBadFailsTheStepWithTheNumberOfAttempts(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		f := fixture{
			e: engine(t, url), reader: &numbers{n: 25}, before: at(13, always(exception.Retryable("insert", errBad))),
			config: chunk.Config{Retry: chunk.Retry{Limit: 2}, Skip: chunk.LimitSkip{Limit: 5}},
		}
		exec := f.run(t)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Contains(t, exec.Error, "failed 3 times, last: write: insert: bad")
		require.Equal(t, upTo(10), f.e.Ints(allRows))
	})
}

func TestASplitFindsTheBadItemWithFewTransactionsByBisecting(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		for isolate, most := range map[chunk.Isolation]int64{chunk.IsolateEach: 1002, chunk.IsolateBisect: 25} {
			t.Run(string(isolate), func(t *testing.T) {
				e := engine(t, emptied(t, url))
				e.Exec("create unique index one on out(id)")
				e.Exec("insert into out(id) values (617)")
				f := fixture{
					e: e, reader: &numbers{n: 1000}, process: same,
					config: chunk.Config{
						Size: 1000, Isolate: isolate, Skip: chunk.LimitSkip{Limit: 1, Skippable: dberr.IsUniqueViolation},
						Classify: func(error) string { return "unique" },
					},
				}
				exec := f.run(t)
				require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
				require.Equal(t, upTo(1000), e.Ints(allRows))
				counters := e.Step(exec, "load").Counters
				require.Equal(t, int64(999), counters.Write)
				require.Equal(t, int64(1), counters.WriteSkip)
				require.LessOrEqual(t, counters.Commit+counters.Rollback+1, most, "transactions, that of the verdict included")
				skips, err := e.Repository.SkippedItems(context.Background(), ports.SkipFilter{Execution: exec.ID})
				require.NoError(t, err)
				require.Len(t, skips, 1)
				require.JSONEq(t, "617", string(skips[0].Item))
				require.Equal(t, core.PhaseWrite, skips[0].Phase)
				require.Equal(t, "unique", skips[0].Class)
			})
		}
	})
}

func TestAStepThatFailsInASplitGoesOnBehindTheItemsThatAreCommitted(t *testing.T) {
	t.Parallel()
	readers := map[string]func() item.ItemReader[int]{
		"reader without a position": func() item.ItemReader[int] { return &numbers{n: 25} },
		"reader with a position":    func() item.ItemReader[int] { return &seekable{numbers: numbers{n: 25}} },
	}
	testdb.Each(t, func(t *testing.T, url string) {
		for kind, reader := range readers {
			t.Run(kind, func(t *testing.T) {
				f := fixture{
					e: engine(t, emptied(t, url)), reader: reader(), process: same,
					before: func(i int) error {
						if i == 12 || i == 15 {
							return exception.Skippable("write", errBad)
						}
						return nil
					},
					config: chunk.Config{Skip: chunk.LimitSkip{Limit: 1}},
				}
				exec := f.run(t)
				require.Equal(t, core.StatusFailed, exec.Status)
				require.Contains(t, exec.Error, "skip limit of 1 exceeded; last cause: write: write: bad")
				want := slices.Delete(upTo(15), 12, 13)
				require.Equal(t, want, f.e.Ints(allRows))
				require.Equal(t, core.Counters{Read: 20, Write: 14, WriteSkip: 1, Commit: 5, Rollback: 3}, f.e.Step(exec, "load").Counters)

				f.before, f.reader = nil, reader()
				exec = f.run(t)
				require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
				require.Equal(t, slices.Delete(upTo(25), 12, 13), f.e.Ints(allRows))
				require.Equal(t, core.Counters{Read: 10, Write: 10, Commit: 1}, f.e.Step(exec, "load").Counters)
			})
		}
	})
}

func TestProcessingByManyGoroutinesKeepsOrderCountersAndSkips(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	f := fixture{
		e: engine(t, testdb.SQLite(t)), reader: &numbers{n: 2500},
		process: func(i int) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case i%100 == 7:
				return 0, item.ErrFilter
			case i%500 == 11:
				return 0, exception.Skippable("process", errBad)
			}
			return i, nil
		},
		config: chunk.Config{Size: 1000, Concurrency: 4, Skip: chunk.LimitSkip{Limit: 10}},
	}
	exec := f.run(t)
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	got := f.e.Ints("select id from out order by rowid")
	require.True(t, slices.IsSorted(got))
	require.Len(t, got, 2500-25-5)
	require.Equal(t, core.Counters{Read: 2500, Filter: 25, ProcessSkip: 5, Write: 2470, Commit: 3}, f.e.Step(exec, "load").Counters)
}

func TestProcessingInTheTransactionIsUndoneWithIt(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := engine(t, url)
		e.Exec("create table seen(id bigint unique)")
		f := fixture{
			e: e, reader: &numbers{n: 25},
			before: at(13, times(1, exception.Retryable("write", errBad))),
			config: chunk.Config{ProcessInTransaction: true, Retry: chunk.Retry{Limit: 1}, Skip: chunk.LimitSkip{Limit: 1}},
		}
		c := f.config
		c.Name, c.Size, c.Database = "load", 10, e.Database
		c.Assemble = func(context.Context, *model.StepRun) (chunk.Parts, error) {
			return chunk.Parts{
				Reader:     item.EraseReader(f.reader),
				Processors: []item.Processor{item.EraseProcessor[int, int](&notes{e.Database})},
				Writers:    []item.Writer{item.EraseWriter[int](&inserts{db: e.Database, before: f.before})},
			}, nil
		}
		s, err := chunk.New(c)
		require.NoError(t, err)
		exec := e.Run(testengine.Job("load", &model.StepElement{Step: s}))
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		want := slices.Delete(upTo(25), 17, 18)
		require.Equal(t, want, e.Ints(allRows))
		require.Equal(t, want, e.Ints("select id from seen order by id"))
	})
}

// notes writes its items into a table, and rejects 17.
type notes struct{ db tx.Database }

func (n *notes) Process(ctx context.Context, i int) (int, error) {
	current, ok := tx.From(ctx, n.db.Name())
	if !ok {
		return 0, errors.New("there is no transaction")
	}
	if _, err := current.Conn().ExecContext(ctx, fmt.Sprintf("insert into seen(id) values (%d)", i)); err != nil {
		return 0, err
	}
	if i == 17 {
		return 0, exception.Skippable("note", errBad)
	}
	return i, nil
}

func TestACommitReportedAsFailedIsJudgedByTheGuardRow(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		for happened, lost := range map[bool]func(tx.Handle) error{true: testengine.LostAfter, false: testengine.LostBefore} {
			t.Run(fmt.Sprintf("happened %v", happened), func(t *testing.T) {
				f := fixture{e: engine(t, emptied(t, url)), reader: &numbers{n: 25}}
				f.config = chunk.Config{
					Database: testengine.Committing{Database: f.e.Database, Commit: testengine.OnlyCommit(2, lost)},
					Retry:    chunk.Retry{Limit: 5, Retryable: func(error) bool { return true }},
					Skip:     chunk.LimitSkip{Limit: 5, Skippable: func(error) bool { return true }},
				}
				exec := f.run(t)
				if happened {
					require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
				} else {
					require.Equal(t, core.StatusFailed, exec.Status, "a failed COMMIT is never retried")
					require.Contains(t, exec.Error, testengine.ErrLine.Error())
					require.Equal(t, upTo(10), f.e.Ints(allRows))
					f.reader, f.config.Database = &numbers{n: 25}, nil
					exec = f.run(t)
					require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
				}
				require.Equal(t, upTo(25), f.e.Ints(allRows))
			})
		}
	})
}

func TestAStopDuringABackoffRollsTheChunkBackWhole(t *testing.T) {
	t.Parallel()
	e := engine(t, testdb.SQLite(t))
	stop := make(chan struct{})
	s, err := chunk.New(chunk.Config{
		Name: "load", Size: 10, Database: e.Database,
		Retry: chunk.Retry{Limit: 1, Backoff: config.Backoff{Initial: time.Hour, Multiplier: 1}},
		Assemble: func(context.Context, *model.StepRun) (chunk.Parts, error) {
			fail := func(i int) error {
				if i == 13 {
					close(stop)
					return exception.Retryable("write", errBad)
				}
				return nil
			}
			return chunk.Parts{
				Reader:  item.EraseReader[int](&numbers{n: 25}),
				Writers: []item.Writer{item.EraseWriter[int](&inserts{db: e.Database, before: fail})},
			}, nil
		},
	})
	require.NoError(t, err)
	exec, err := e.Launcher.Run(context.Background(), testengine.Job("load", &model.StepElement{Step: s}), core.Parameters{}, stop)
	require.NoError(t, err)
	require.Equal(t, core.StatusStopped, exec.Status, exec.Error)
	require.Equal(t, upTo(10), e.Ints(allRows))
}
