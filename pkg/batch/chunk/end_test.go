package chunk_test

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type onRead struct {
	numbers
	at   int
	call func(ctx context.Context) error
}

func (r *onRead) Read(ctx context.Context) (int, error) {
	if r.next == r.at {
		if err := r.call(ctx); err != nil {
			return 0, err
		}
	}
	return r.numbers.Read(ctx)
}

// Only the commit itself notices it: the next heartbeat is far away (rule
// C14).
func TestACommitThatSeesTheRequestToStopIsTheLast(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url, func(c *job.Config) { c.Heartbeat, c.Lease = time.Minute, 5*time.Minute })
		e.Exec("create table out(id bigint)")
		exec := e.Run(load(e, &onRead{numbers: numbers{n: 100}, at: 13, call: func(ctx context.Context) error {
			id := e.Ints("select max(id) from surfin_job_execution")[0]
			_, err := e.Repository.RequestStop(ctx, core.JobExecutionID(id), ports.By{Actor: "test"})
			return err
		}}, same, nil))
		require.Equal(t, core.StatusStopped, exec.Status, exec.Error)
		require.Equal(t, upTo(20), e.Ints(allRows))
		asked := 0
		for _, event := range e.Events() {
			if _, is := event.(core.StopAsked); is {
				asked++
			}
		}
		require.Equal(t, 1, asked)
	})
}

// silent is a repository that does not report how a COMMIT ended.
type silent struct {
	ports.CheckpointStore
	err error
}

func (r silent) Reclaim(context.Context, ports.StepRef) (ports.StepRef, ports.Checkpoint, error) {
	return ports.StepRef{}, ports.Checkpoint{}, r.err
}

// The row of the step is its checkpoint, so the record of the end waits for
// the transaction, and a restart resumes after it.
func TestARestartJudgesACommitThatNobodyCould(t *testing.T) {
	t.Parallel()
	dead, away, refused := errors.New("the line is dead"), fmt.Errorf("away: %w", ports.ErrNoReply), errors.New("no permission")
	once, undone := core.Counters{Read: 10, Write: 10, Commit: 1, Rollback: 1}, core.Counters{Rollback: 1}
	testdb.Each(t, func(t *testing.T, url string) {
		for name, c := range map[string]struct {
			how, silent error
			commits     bool
			committed   core.Counters
			status      core.Status
		}{
			"the database is away, and it is rolled back": {dead, away, false, undone, core.StatusFailed},
			"the database is away, and it is committed":   {dead, away, true, once, core.StatusFailed},
			"the row cannot be read, and it is committed": {dead, refused, true, once, core.StatusUnknown},
			"the database says that it is rolled back":    {tx.ErrRolledBack, away, false, core.Counters{Read: 10, Rollback: 1}, core.StatusFailed},
			"the row says it": {dead, nil, false, core.Counters{Read: 10, Rollback: 1}, core.StatusFailed},
		} {
			t.Run(name, func(t *testing.T) {
				first := true
				e := testengine.New(t, testdbURL(t, url), func(config *job.Config) {
					if c.silent != nil {
						config.Repository.CheckpointStore = silent{config.Repository.CheckpointStore, c.silent}
					}
				})
				e.Exec("create table out(id bigint)")
				s, err := chunk.New(chunk.Config{
					Name: "load", Size: 10, Database: testengine.Committing{Database: e.Database, Commit: func(h tx.Handle) error {
						switch {
						case !first:
							return h.Commit()
						case c.commits:
							first = false
							return errors.Join(c.how, h.Commit())
						}
						first = false
						return errors.Join(c.how, h.Rollback())
					}},
					Assemble: func(context.Context, *model.StepRun) (chunk.Parts, error) {
						return chunk.Parts{
							Reader:  item.EraseReader[int](&numbers{n: 25}),
							Writers: []item.Writer{item.EraseWriter[int](&inserts{db: e.Database})},
						}, nil
					},
				})
				require.NoError(t, err)
				exec := e.Run(testengine.Job("load", &model.StepElement{Step: s}))
				record := e.Step(exec, "load")
				require.Equal(t, c.status, record.Status, record.Error)
				require.Equal(t, c.committed, record.Counters, record.Error)

				exec = e.Run(testengine.Job("load", &model.StepElement{Step: s}))
				require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
				rows := e.Ints(allRows)
				require.Len(t, rows, 25)
				for i, n := range rows {
					require.EqualValues(t, i, n)
				}
			})
		}
	})
}

func testdbURL(t *testing.T, url string) string {
	if url[:6] == "sqlite" {
		return testdb.SQLite(t)
	}
	return testdb.Postgres(t)
}

type stuck struct{ numbers }

func (*stuck) Close(context.Context) error { return errors.New("it does not close") }

func TestAComponentThatCannotBeClosedUndoesNothing(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := engine(t, url)
		exec := e.Run(load(e, &stuck{numbers{n: 25}}, same, nil))
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		var failed []core.CloseFailed
		for _, event := range e.Events() {
			if f, is := event.(core.CloseFailed); is {
				failed = append(failed, f)
			}
		}
		require.Len(t, failed, 1)
		require.Equal(t, "load", failed[0].Step)
		require.ErrorContains(t, failed[0].Err, "it does not close")
	})
}

type counting struct{ before, chunks, after, closed int }

func (c *counting) BeforeStep(context.Context, *core.StepExecution) error { c.before++; return nil }
func (c *counting) AfterChunk(context.Context, core.Counters) error       { c.chunks++; return nil }
func (c *counting) AfterStep(_ context.Context, s *core.StepExecution) error {
	c.after += int(s.Counters.Write)
	return s.Context.Put("rows", s.Counters.Write)
}
func (c *counting) Close(context.Context) error { c.closed++; return nil }

func TestAListenerOfStepAndChunksIsOne(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := engine(t, url)
		told, onlyStep, part := &counting{}, &onlyBefore{}, &counting{}
		s, err := chunk.New(chunk.Config{
			Name: "load", Size: 10, Database: e.Database,
			Assemble: func(context.Context, *model.StepRun) (chunk.Parts, error) {
				return chunk.Parts{
					Reader:    item.EraseReader[int](&numbers{n: 25}),
					Writers:   []item.Writer{item.EraseWriter[int](&inserts{db: e.Database})},
					Listeners: []any{part, told},
				}, nil
			},
			Listeners: func(context.Context, *model.StepRun) ([]any, error) { return []any{told, onlyStep}, nil },
			Expect: &model.Condition{Text: "write == 25", Holds: func(_ context.Context, v *core.View) (bool, error) {
				return v.Step.Total().Write == 25, nil
			}},
			Promote: &model.Promotion{Keys: map[string]string{"rows": "loaded"}, Strict: true},
		})
		require.NoError(t, err)
		exec := e.Run(testengine.Job("load", &model.StepElement{Step: s}))
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, counting{before: 1, chunks: 3, after: 25, closed: 1}, *told)
		require.Equal(t, counting{chunks: 3}, *part, "too late for the start, and not the step's to close")
		require.Equal(t, 1, onlyStep.before)
		require.Contains(t, e.Step(exec, "load").Gate, "write == 25: holds")
		stored, err := e.Repository.Execution(t.Context(), exec.ID)
		require.NoError(t, err)
		loaded, _ := stored.Context.Get("loaded")
		require.Equal(t, int64(25), loaded)
	})
}

type onlyBefore struct{ before int }

func (o *onlyBefore) BeforeStep(context.Context, *core.StepExecution) error { o.before++; return nil }
