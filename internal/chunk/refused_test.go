package chunk_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/chunk"
	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

type writeErrors struct{ items []int }

func (l *writeErrors) OnWriteError(_ context.Context, _ error, items item.Items) error {
	l.items = append(l.items, items.Len())
	return nil
}

// lacking makes a table out that requires its rows to be in ok at COMMIT; ok has all numbers below 25
// but one.
func lacking(t *testing.T, url string, but int) *testengine.Engine {
	t.Helper()
	e := testengine.New(t, url)
	e.Exec("create table ok(id bigint primary key)")
	for i := range 25 {
		if i != but {
			e.Exec("insert into ok values ("+e.Database.Dialect().Placeholder(1)+")", i)
		}
	}
	e.Exec("create table out(id bigint references ok(id) deferrable initially deferred)")
	return e
}

const epochs = "select distinct epoch from surfin_step_execution"

func TestACommitThatTheDatabaseRefusesIsIsolated(t *testing.T) {
	t.Parallel()
	for isolate, c := range map[chunk.Isolation]struct {
		rollbacks, commits int64
		told               []int
	}{
		chunk.IsolateEach:   {2, 11, []int{10, 1}},
		chunk.IsolateBisect: {4, 5, []int{10, 5, 2, 1}},
	} {
		t.Run(string(isolate), func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, url string) {
				told := &writeErrors{}
				f := fixture{e: lacking(t, url, 13), reader: &numbers{n: 25}, listen: []any{told}, config: chunk.Config{
					Isolate: isolate, Skip: chunk.LimitSkip{Limit: 1, Skippable: dberr.IsForeignKeyViolation},
				}}
				exec := f.run(t)
				require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
				require.Equal(t, append(upTo(13), upTo(25)[14:]...), f.e.Ints(allRows))
				require.Equal(t, core.Counters{Read: 25, Write: 24, WriteSkip: 1, Commit: c.commits, Rollback: c.rollbacks},
					f.e.Step(exec, "load").Counters)
				require.Equal(t, c.told, told.items)
				require.Equal(t, []int64{1}, f.e.Ints(epochs), "a certain outcome needs no judgement")
			})
		})
	}
}

func TestAChunkThatMustNotBeIsolatedFailsWhole(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		f := fixture{e: lacking(t, url, 13), reader: &numbers{n: 25}, config: chunk.Config{
			Isolate: chunk.IsolateNone, Skip: chunk.LimitSkip{Limit: 1, Skippable: dberr.IsForeignKeyViolation},
		}}
		exec := f.run(t)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Contains(t, exec.Error, "isolate: none")
		require.Equal(t, upTo(10), f.e.Ints(allRows))
		require.Equal(t, core.Counters{Read: 20, Write: 10, Commit: 1, Rollback: 1}, f.e.Step(exec, "load").Counters)
	})
}

// A trigger fails the COMMIT, like a serialization failure: the sequence,
// outside all transactions, counts them.
func TestACommitThatLostAConflictIsTriedAgain(t *testing.T) {
	t.Parallel()
	for retries, status := range map[int]core.Status{2: core.StatusCompleted, 1: core.StatusFailed} {
		e := engine(t, testdb.Postgres(t))
		e.Exec("create sequence tries")
		e.Exec(`create function conflict() returns trigger language plpgsql as $$ begin
			if new.id = 13 and nextval('tries') <= 2 then raise exception 'conflict' using errcode = '40001'; end if;
			return null; end $$`)
		e.Exec("create constraint trigger conflicts after insert on out deferrable initially deferred for each row execute function conflict()")
		f := fixture{e: e, reader: &numbers{n: 25}, config: chunk.Config{Retry: chunk.Retry{Limit: retries, Retryable: func(err error) bool { return dberr.SQLState(err) == "40001" }}}}
		exec := f.run(t)
		require.Equal(t, status, exec.Status, exec.Error)
		require.Equal(t, []int64{1}, e.Ints(epochs))
		if status == core.StatusFailed {
			require.True(t, strings.Contains(exec.Error, "failed 2 times"), exec.Error)
			require.Equal(t, upTo(10), e.Ints(allRows))
			continue
		}
		require.Equal(t, upTo(25), e.Ints(allRows))
		require.Equal(t, core.Counters{Read: 25, Write: 25, Commit: 3, Rollback: 2}, e.Step(exec, "load").Counters)
	}
}

// grumbles fails before a write of n items.
type grumbles struct{ n int }

func (l grumbles) BeforeWrite(_ context.Context, items item.Items) error {
	if items.Len() == l.n {
		return errors.New("the listener's own fault")
	}
	return nil
}

// Rule C16a.
func TestAListenerThatFailsInASplitEndsTheStep(t *testing.T) {
	t.Parallel()
	f := fixture{e: lacking(t, testdb.SQLite(t), 13), reader: &numbers{n: 25}, listen: []any{grumbles{2}}, config: chunk.Config{
		Isolate: chunk.IsolateBisect, Skip: chunk.LimitSkip{Limit: 1, Skippable: dberr.IsForeignKeyViolation},
	}}
	exec := f.run(t)
	require.Equal(t, core.StatusFailed, exec.Status)
	require.Contains(t, exec.Error, "the listener's own fault")
	require.Equal(t, upTo(13), f.e.Ints(allRows))
}

type complains struct{}

func (complains) OnReadError(context.Context, error) error {
	return errors.New("the listener's own fault")
}
func (complains) OnProcessError(context.Context, any, error) error {
	return errors.New("the listener's own fault")
}
func (complains) OnWriteError(context.Context, error, item.Items) error {
	return errors.New("the listener's own fault")
}

func once() func(int) error {
	failed := false
	return func(n int) error {
		if n != 13 || failed {
			return nil
		}
		failed = true
		return errTransient
	}
}

var errTransient = errors.New("a lost packet")

type brittle struct {
	numbers
	fails func(int) error
}

func (r *brittle) Read(ctx context.Context) (int, error) {
	if err := r.fails(r.next); err != nil {
		return 0, item.NotConsumed(err)
	}
	return r.numbers.Read(ctx)
}

// Rule C16a.
func TestAListenerThatFailsWithAnErrorThatIsCuredIsReported(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		transient := func(err error) bool { return errors.Is(err, errTransient) }
		cures := map[string]chunk.Config{
			"retry": {Retry: chunk.Retry{Limit: 3, Retryable: transient}},
			"skip":  {Skip: chunk.LimitSkip{Limit: 3, Skippable: transient}},
		}
		for name, config := range cures {
			for _, phase := range []string{"read", "process", "write"} {
				if name == "skip" && phase == "read" {
					continue // the reader has consumed nothing
				}
				for _, listen := range [][]any{{complains{}}, nil} {
					e := engine(t, emptied(t, url))
					fails := once()
					f := fixture{e: e, reader: &numbers{n: 25}, config: config, listen: listen}
					switch phase {
					case "read":
						f.reader = &brittle{numbers{n: 25}, fails}
					case "process":
						f.process = func(n int) (int, error) { return n, fails(n) }
					case "write":
						f.before = fails
					}
					exec := f.run(t)
					require.Equal(t, core.StatusCompleted, exec.Status, "%s %s: %s", name, phase, exec.Error)
					var reported []string
					for _, event := range e.Events() {
						if f, is := event.(core.ListenerFailed); is {
							require.Equal(t, "load", f.Step)
							reported = append(reported, f.Err.Error())
						}
					}
					if listen == nil {
						require.Empty(t, reported)
						continue
					}
					require.NotEmpty(t, reported, "%s %s", name, phase)
					require.Equal(t, "listener on_"+phase+"_error: the listener's own fault", reported[0])
				}
			}
		}
	})
}
