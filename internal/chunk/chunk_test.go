package chunk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

type numbers struct{ next, n int }

func (r *numbers) Read(context.Context) (int, error) {
	if r.next >= r.n {
		return 0, io.EOF
	}
	r.next++
	return r.next - 1, nil
}

type seekable struct {
	numbers
	opened []string
	closed int
}

func (r *seekable) Open(_ context.Context, at item.Position) error {
	r.opened = append(r.opened, string(at))
	if at == nil {
		return nil
	}
	return json.Unmarshal(at, &r.next)
}
func (r *seekable) Position() (item.Position, error) { return json.Marshal(r.next) }
func (r *seekable) Close(context.Context) error      { r.closed++; return nil }

type processorFunc func(int) (int, error)

func (f processorFunc) Process(_ context.Context, i int) (int, error) { return f(i) }

func same(i int) (int, error) { return i, nil }

type inserts struct {
	db     tx.Database
	before func(item int) error
}

func (w *inserts) Write(ctx context.Context, items []int) error {
	current, ok := tx.From(ctx, w.db.Name())
	if !ok {
		return errors.New("there is no transaction")
	}
	for _, i := range items {
		if w.before != nil {
			if err := w.before(i); err != nil {
				return err
			}
		}
		if _, err := current.Conn().ExecContext(ctx, fmt.Sprintf("insert into out(id) values (%d)", i)); err != nil {
			return err
		}
	}
	return nil
}

func engine(t *testing.T, url string) *testengine.Engine {
	t.Helper()
	e := testengine.New(t, url)
	e.Exec("create table out(id bigint)")
	return e
}

func load(e *testengine.Engine, r item.ItemReader[int], p processorFunc, before func(int) error) *model.Job {
	return testengine.Job("load", testengine.Chunk(e, "load", 10, func() (item.ItemReader[int], item.ItemProcessor[int, int], item.ItemWriter[int]) {
		return r, p, &inserts{db: e.Database, before: before}
	}))
}

func upTo(n int) []int64 {
	list := []int64{}
	for i := range int64(n) {
		list = append(list, i)
	}
	return list
}

const allRows = "select id from out order by id"

func TestAllItemsAreWrittenAndCounted(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := engine(t, url)
		exec := e.Run(load(e, &numbers{n: 25}, func(i int) (int, error) {
			if i%5 == 0 {
				return 0, item.ErrFilter
			}
			return i, nil
		}, nil))
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Len(t, e.Ints(allRows), 20)
		require.Equal(t, core.Counters{Read: 25, Filter: 5, Write: 20, Commit: 3}, e.Step(exec, "load").Counters)
	})
}

func TestNoItemsMakeNoCommit(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := engine(t, url)
		exec := e.Run(load(e, &numbers{}, same, nil))
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, core.Counters{}, e.Step(exec, "load").Counters)
	})
}

func TestAFailureRollsBackItsChunkAndARestartGoesOnAfterTheLastCommit(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	failAt := func(n int) func(int) error {
		return func(i int) error {
			if i == n {
				return broken
			}
			return nil
		}
	}
	failing := func(n int) processorFunc {
		return func(i int) (int, error) { return i, failAt(n)(i) }
	}
	panicking := func(i int) error {
		if i == 17 {
			panic("no way")
		}
		return nil
	}
	cases := map[string]func(e *testengine.Engine, r item.ItemReader[int]) *model.Job{
		"in the writer":    func(e *testengine.Engine, r item.ItemReader[int]) *model.Job { return load(e, r, same, failAt(17)) },
		"in the processor": func(e *testengine.Engine, r item.ItemReader[int]) *model.Job { return load(e, r, failing(17), nil) },
		"a panic":          func(e *testengine.Engine, r item.ItemReader[int]) *model.Job { return load(e, r, same, panicking) },
	}
	readers := map[string]func() item.ItemReader[int]{
		"reader without a position": func() item.ItemReader[int] { return &numbers{n: 35} },
		"reader with a position":    func() item.ItemReader[int] { return &seekable{numbers: numbers{n: 35}} },
	}
	testdb.Each(t, func(t *testing.T, url string) {
		for name, broken := range cases {
			for kind, reader := range readers {
				t.Run(name+", "+kind, func(t *testing.T) {
					e := engine(t, emptied(t, url))
					first := e.Run(broken(e, reader()))
					require.Equal(t, core.StatusFailed, first.Status)
					require.Contains(t, first.Error, "step load: ")
					require.Equal(t, upTo(10), e.Ints(allRows), "only the first chunk is committed")
					step := e.Step(first, "load")
					require.Equal(t, core.StatusFailed, step.Status)
					require.Equal(t, core.Counters{Read: 20, Write: 10, Commit: 1, Rollback: 1}, step.Counters)

					second := e.Run(load(e, reader(), same, nil))
					require.Equal(t, core.StatusCompleted, second.Status, second.Error)
					require.Equal(t, upTo(35), e.Ints(allRows))
					require.Equal(t, core.Counters{Read: 25, Write: 25, Commit: 3}, e.Step(second, "load").Counters)
				})
			}
		}
	})
}

func emptied(t *testing.T, url string) string {
	t.Helper()
	if len(url) > 6 && url[:6] == "sqlite" {
		return testdb.SQLite(t)
	}
	return testdb.Postgres(t)
}

func TestComponentsAreClosedOnceThoughOpeningFails(t *testing.T) {
	t.Parallel()
	e := engine(t, testdb.SQLite(t))
	r := &seekable{numbers: numbers{n: 5}}
	w := &failsToOpen{}
	exec := e.Run(testengine.Job("load", testengine.Chunk(e, "load", 10, func() (item.ItemReader[int], item.ItemProcessor[int, int], item.ItemWriter[int]) {
		return r, processorFunc(same), w
	})))
	require.Equal(t, core.StatusFailed, exec.Status)
	require.Contains(t, exec.Error, "the disk is gone")
	require.Equal(t, 1, r.closed)
	require.Equal(t, 1, w.closed)
}

type failsToOpen struct{ closed int }

func (w *failsToOpen) Open(context.Context, item.Position) error {
	return errors.New("the disk is gone")
}
func (w *failsToOpen) Close(context.Context) error        { w.closed++; return nil }
func (w *failsToOpen) Write(context.Context, []int) error { return nil }

func TestAStopEndsAfterTheChunkInHandAndARestartGoesOn(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := engine(t, url)
		stop := make(chan struct{})
		asked := false
		j := load(e, &numbers{n: 35}, same, func(i int) error {
			if i == 13 && !asked {
				asked = true
				close(stop)
			}
			return nil
		})
		exec, err := e.Launcher.Run(context.Background(), j, core.Parameters{}, stop)
		require.NoError(t, err)
		require.Equal(t, core.StatusStopped, exec.Status)
		require.Equal(t, upTo(20), e.Ints(allRows), "the chunk in hand is committed, no other is begun")
		exec = e.Run(load(e, &numbers{n: 35}, same, nil))
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, upTo(35), e.Ints(allRows))
	})
}

func TestACancelledContextRollsBackAndStillRecordsTheEnd(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := engine(t, url)
		ctx, cancel := context.WithCancel(context.Background())
		exec, err := e.Launcher.Run(ctx, load(e, &numbers{n: 35}, same, func(i int) error {
			if i == 13 {
				cancel()
				return ctx.Err()
			}
			return nil
		}), core.Parameters{}, nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Equal(t, upTo(10), e.Ints(allRows))
		require.Equal(t, core.StatusFailed, e.Step(exec, "load").Status)
	})
}

func TestAChunkOfATakenOverExecutionRollsBackWhole(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := engine(t, url)
		taken := false
		j := load(e, &numbers{n: 35}, same, nil)
		inner := load(e, &numbers{n: 35}, func(i int) (int, error) {
			if i == 15 && !taken {
				taken = true
				e.Exec("update surfin_step_execution set epoch = epoch + 1, status = 'FAILED'")
				e.Exec("update surfin_job_execution set epoch = epoch + 1, status = 'FAILED', active = null")
			}
			return i, nil
		}, nil)
		_, err := e.Launcher.Run(context.Background(), inner, core.Parameters{}, nil)
		require.ErrorIs(t, err, core.ErrLostOwner)
		require.Equal(t, upTo(10), e.Ints(allRows), "the chunk in hand was rolled back, business rows included")
		exec := e.Run(j)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, upTo(35), e.Ints(allRows))
	})
}

// accepting is seekable, and notes the calls before Open.
type accepting struct {
	seekable
	calls []string
}

func (r *accepting) AcceptChanges() { r.calls = append(r.calls, "accept") }

func (r *accepting) Open(ctx context.Context, at item.Position) error {
	r.calls = append(r.calls, "open")
	return r.seekable.Open(ctx, at)
}

func TestAcceptChangesIsCalledBeforeOpenWhereTheOperatorSaidSo(t *testing.T) {
	t.Parallel()
	e := engine(t, testdb.SQLite(t))
	for _, accept := range []bool{false, true} {
		r := &accepting{seekable: seekable{numbers: numbers{n: 3}}}
		launcher := e.Launcher.With(job.Options{AcceptChanges: accept})
		j := load(e, r, same, nil)
		j.Name = fmt.Sprint("load ", accept)
		exec, err := launcher.Run(t.Context(), j, core.Parameters{}, nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		want := []string{"open"}
		if accept {
			want = []string{"accept", "open"}
		}
		require.Equal(t, want, r.calls)
	}
}

func TestANewDefinitionIsRefusedWhereTheOldOneHasCommittedMeanwhile(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := engine(t, url)
		j := load(e, &seekable{numbers: numbers{n: 25}}, func(i int) (int, error) {
			if i == 15 {
				return 0, errors.New("no")
			}
			return i, nil
		}, nil)
		exec, err := e.Launcher.Run(t.Context(), j, core.Parameters{}, nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusFailed, exec.Status)

		j = load(e, &seekable{numbers: numbers{n: 25}}, same, nil)
		j.Definition.Hash = "another"
		j.CheckRestart = func(context.Context, *core.JobExecution, ports.History, core.Parameters) ([]string, error) {
			return []string{"load"}, nil
		}
		exec, err = e.Launcher.Run(t.Context(), j, core.Parameters{}, nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Contains(t, exec.Error, ports.ErrCommittedMeanwhile.Error())

		exec, err = e.Launcher.Run(t.Context(), j, core.Parameters{}, nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, "the definitions are the same now")
	})
}
