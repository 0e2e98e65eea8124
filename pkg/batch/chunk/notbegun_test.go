package chunk_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/dberr"
	"github.com/surfin-batch/surfin/internal/errorclass"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// severs ends the server process of the loading connection: before or after a write that begins with an
// item, once.
type severs struct {
	e             *testengine.Engine
	before, after int
	pid           int
	took          time.Duration
}

// BeforeWrite is called before BEGIN is sent.
func (s *severs) BeforeWrite(_ context.Context, items item.Items) error {
	if items.At(0) == s.before && s.pid > 0 {
		s.sever()
	}
	return nil
}

func (s *severs) AfterWrite(ctx context.Context, items item.Items) error {
	if s.pid < 0 {
		return nil
	}
	if err := tx.ConnOf(ctx, s.e.Database).QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&s.pid); err != nil {
		return err
	}
	if items.At(0) == s.after {
		s.sever()
	}
	return nil
}

func (s *severs) sever() {
	begin := time.Now()
	s.e.Exec("SELECT pg_terminate_backend($1, 10000)", s.pid)
	s.pid, s.took = -1, time.Since(begin)
}

// Rules C7, T8a.
func TestNoItemIsSkippedForATransactionThatDidNotBeginOrAFailedCheckpoint(t *testing.T) {
	t.Parallel()
	const bad = 13
	for name, c := range map[string]struct {
		severs
		isBad    bool // a skipped item splits the chunk
		retries  int
		status   core.Status
		rows     int // up to here all but the bad one exist after the first run
		rollback int64
	}{
		"before a chunk":                            {severs{before: 10, after: -1}, false, 0, core.StatusFailed, 10, 1},
		"before a chunk, with a retry":              {severs{before: 10, after: -1}, false, 1, core.StatusCompleted, 25, 1},
		"before an item of a split":                 {severs{before: 15, after: -1}, true, 0, core.StatusFailed, 15, 3},
		"behind the write in a split":               {severs{before: -1, after: 15}, true, 0, core.StatusFailed, 15, 3},
		"before an item of a split, with a retry":   {severs{before: 15, after: -1}, true, 1, core.StatusCompleted, 25, 3},
		"behind the write in a split, with a retry": {severs{before: -1, after: 15}, true, 1, core.StatusCompleted, 25, 3},
		"behind the write of a chunk":               {severs{before: -1, after: 10}, false, 0, core.StatusFailed, 10, 1},
		"behind the write, with a retry":            {severs{before: -1, after: 10}, false, 1, core.StatusCompleted, 25, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := engine(t, testdb.Postgres(t))
			c.e = e
			if c.isBad {
				e.Exec("alter table out add check (id <> 13)")
			}
			skippable := func(err error) bool { return dberr.IsCheckViolation(err) || errorclass.IsUnreachable(err) }
			f := fixture{e: e, reader: &numbers{n: 25}, listen: []any{&c.severs}, config: chunk.Config{
				Retry: chunk.Retry{Limit: c.retries, Retryable: errorclass.IsUnreachable},
				Skip:  chunk.LimitSkip{Limit: 10, Skippable: skippable},
			}}
			want := func(upToRow int) (rows []int64) {
				for _, i := range upTo(upToRow) {
					if i != bad || !c.isBad {
						rows = append(rows, i)
					}
				}
				return rows
			}
			exec := f.run(t)
			if c.took < time.Second/2 { // else the pool may have asked the connection, idle for a second, and have replaced it
				require.Equal(t, c.status, exec.Status, exec.Error)
				require.Equal(t, want(c.rows), e.Ints(allRows))
				require.Equal(t, c.rollback, e.Step(exec, "load").Counters.Rollback)
			}
			if exec.Status == core.StatusFailed {
				f.reader = &numbers{n: 25}
				exec = f.run(t)
				require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
				require.Equal(t, want(25), e.Ints(allRows))
			}
			require.Equal(t, int64(25-len(want(25))), e.Ints("select coalesce(sum(write_skip_count), 0)::bigint from surfin_step_execution")[0])
		})
	}
}
