package chunk_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/chunk"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/config"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

var errDeadlock = errors.New("deadlock")

func isDeadlock(err error) bool { return errors.Is(err, errDeadlock) }

// splitting is a step of 25 items in chunks of ten: item 13 is bad, so its
// chunk is split, and item 16 meets as many deadlocks as fails returns.
func splitting(t *testing.T, url string, isolate chunk.Isolation, retries int, fails func() error) fixture {
	t.Helper()
	bad := at(13, always(exception.Skippable("write", errBad)))
	deadlock := at(16, fails)
	return fixture{
		e: engine(t, emptied(t, url)), reader: &seekable{numbers: numbers{n: 25}}, process: same,
		before: func(i int) error { return errors.Join(bad(i), deadlock(i)) },
		config: chunk.Config{
			Isolate: isolate, Retry: chunk.Retry{Limit: retries, Retryable: isDeadlock},
			Skip:      chunk.LimitSkip{Limit: 5, Skippable: func(err error) bool { return isDeadlock(err) || exception.IsSkippable(err) }},
			Transient: func(_ core.Phase, err error) bool { return isDeadlock(err) },
		},
	}
}

var without13 = slices.Delete(upTo(25), 13, 14)

// Rule C7.
func TestATransientFailureInASplitIsTriedAgain(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		for _, isolate := range []chunk.Isolation{chunk.IsolateEach, chunk.IsolateBisect} {
			for _, keep := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, outputs kept %v", isolate, keep), func(t *testing.T) {
					f := splitting(t, url, isolate, 2, times(2, errDeadlock))
					f.config.KeepOutputs = keep
					exec := f.run(t)
					require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
					require.Equal(t, without13, f.e.Ints(allRows))
					rollbacks, commits := int64(4), int64(11)
					if isolate == chunk.IsolateBisect { // 10, 5, 2, 1 that fail for item 13, and the deadlocks of 5
						rollbacks, commits = 6, 5
					}
					require.Equal(t, core.Counters{Read: 25, Write: 24, WriteSkip: 1, Commit: commits, Rollback: rollbacks}, f.e.Step(exec, "load").Counters)
				})
			}
		}
	})
}

func TestATransientFailureThatOutlivesItsRetriesSkipsNothing(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		for _, isolate := range []chunk.Isolation{chunk.IsolateEach, chunk.IsolateBisect} {
			t.Run(string(isolate), func(t *testing.T) {
				f := splitting(t, url, isolate, 2, always(errDeadlock))
				exec := f.run(t)
				require.Equal(t, core.StatusFailed, exec.Status)
				require.Contains(t, exec.Error, "failed 3 times, last: write: deadlock")
				require.Equal(t, slices.Delete(upTo(16), 13, 14), f.e.Ints(allRows))
				require.Equal(t, int64(1), f.e.Step(exec, "load").Counters.WriteSkip)

				f.before, f.reader = nil, &seekable{numbers: numbers{n: 25}}
				exec = f.run(t)
				require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
				require.Equal(t, without13, f.e.Ints(allRows))
			})
		}
		t.Run("the whole chunk", func(t *testing.T) {
			f := splitting(t, url, chunk.IsolateEach, 1, nil)
			f.before = at(16, always(errDeadlock))
			exec := f.run(t)
			require.Equal(t, core.StatusFailed, exec.Status)
			require.Contains(t, exec.Error, "failed 2 times, last: write: deadlock")
			require.Contains(t, exec.Error, "a transient failure is not caused by an item, so no item is skipped")
			require.Equal(t, upTo(10), f.e.Ints(allRows))
			require.Equal(t, core.Counters{Read: 20, Write: 10, Commit: 1, Rollback: 2}, f.e.Step(exec, "load").Counters)
		})
	})
}

func TestTheTimeForAllAttemptsIsThatOfTheChunk(t *testing.T) {
	t.Parallel()
	f := splitting(t, testdb.SQLite(t), chunk.IsolateEach, 1000, always(errDeadlock))
	f.config.Retry.Backoff = config.Backoff{Initial: time.Millisecond, Multiplier: 1, Max: time.Millisecond, Elapsed: 50 * time.Millisecond}
	exec := f.run(t)
	require.Equal(t, core.StatusFailed, exec.Status)
	require.Less(t, f.e.Step(exec, "load").Counters.Rollback, int64(200), "fifty milliseconds, of one each")
}

// Rule C2.
func TestAnItemThatFailsWhenItIsProcessedAgainInASplitIsTriedAgain(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		for _, inTransaction := range []bool{false, true} {
			t.Run(fmt.Sprintf("in the transaction %v", inTransaction), func(t *testing.T) {
				f := splitting(t, url, chunk.IsolateEach, 2, always(nil))
				seen := 0
				f.process = func(i int) (int, error) {
					if i == 16 {
						if seen++; seen == 2 || seen == 3 {
							return 0, errDeadlock
						}
					}
					return i, nil
				}
				f.config.ProcessInTransaction = inTransaction
				exec := f.run(t)
				require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
				require.Equal(t, without13, f.e.Ints(allRows))
				require.Zero(t, f.e.Step(exec, "load").Counters.ProcessSkip)
			})
		}
	})
}
