package acceptance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const stampedJob = `
job: stamped
flow:
- step: create
  tasklet: {sql: "create table stamped (id bigint, name text, amount double precision, written double precision default %s)"}
- step: load
  chunk:
    size: 10
    reader: {csv: {path: in.csv, item: {id: int, name: string, amount: float}}}
    writer: {table: {name: stamped}}
`

const stampedRows = 20_000

func newStampedScene(t *testing.T, url string) (*scene, tx.Database) {
	t.Helper()
	s := newScene(t, url, nil)
	db, _ := s.open()
	now := "(unixepoch('subsec'))"
	if db.Dialect() == tx.Postgres {
		now = "extract(epoch from clock_timestamp())"
	}
	s.write("stamped.yaml", fmt.Sprintf(stampedJob, now))
	writeInput(t, filepath.Join(s.dir, "in.csv"), stampedRows)
	return s, db
}

func TestAStopCommandOfAnotherProcessStopsAndARestartGoesOn(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s, db := newStampedScene(t, url)
		s.env = []string{"SURFIN_LEASE=1h", "SURFIN_HEARTBEAT=10m"}
		p := s.start("run", "stamped.yaml")
		s.awaitStamped(p, db, 500)

		code, out := s.run("stop", "1", "--wait", "1m")
		require.Equal(t, 3, code, out)
		require.Contains(t, out, "job stamped, execution 1: STOPPED")
		require.Contains(t, out, "restart it:  surfin restart 1")
		code, out = p.wait()
		require.Equal(t, 3, code, out)
		require.Less(t, s.rows("stamped"), int64(stampedRows), "the stop came in the middle")

		_, r := s.open()
		exec, err := r.Execution(context.Background(), 1)
		require.NoError(t, err)
		require.Equal(t, core.StatusStopped, exec.Status)
		require.False(t, exec.EndedAt.IsZero())

		s.inFewChunks("stamped.yaml")
		code, out = s.run("restart", "1")
		require.Equal(t, 0, code, out)
		s.assertStamped(db)
	})
}

func (s *scene) awaitStamped(p *process, db tx.Database, n int64) {
	s.t.Helper()
	for count := int64(0); count < n; {
		require.False(s.t, p.waitFor(time.Millisecond), "it ended: %s", p.out.String())
		if err := db.Conn().QueryRowContext(context.Background(), "select count(*) from stamped").Scan(&count); err != nil {
			count = 0 // the table is not there yet
		}
	}
}

func (s *scene) assertStamped(db tx.Database) {
	s.t.Helper()
	require.Equal(s.t, []int64{stampedRows, stampedRows}, s.ints(db, "select count(*), count(distinct id) from stamped", 2))
	_, r := s.open()
	var total core.Counters
	var first int64 // commits of ten rows
	executions, err := r.Executions(context.Background(), ports.ExecutionFilter{})
	require.NoError(s.t, err)
	for _, e := range executions {
		steps, err := r.Steps(context.Background(), e.ID)
		require.NoError(s.t, err)
		for _, step := range steps {
			if step.Name == "load" {
				total = total.Add(step.Counters)
				first = step.Counters.Commit // the newest execution comes first
			}
		}
	}
	total.Rollback = 0 // a chunk in progress may have been undone
	require.Equal(s.t, core.Counters{Read: stampedRows, Write: stampedRows, Commit: first + (stampedRows-10*first+fewChunks-1)/fewChunks}, total)
}

func TestSIGTERMAndSIGKILLASecondLaterLeaveARestartableState(t *testing.T) {
	t.Parallel()
	for i, way := range []string{"restart", "run", "recover"} {
		t.Run(way, func(t *testing.T) {
			inTurn(t, i, func(t *testing.T, url string) {
				t.Parallel()
				s, db := newStampedScene(t, url)
				p := s.start("run", "stamped.yaml")
				s.awaitStamped(p, db, 500)
				release := s.lock(p, db)
				p.signal(syscall.SIGTERM)
				p.await("stopping after the current chunk commits")
				require.False(t, p.waitFor(time.Second), "its chunk cannot be committed: %s", p.out.String())
				p.signal(syscall.SIGKILL)
				code, out := p.wait()
				require.Equal(t, -1, code, out)
				release()
				s.inFewChunks("stamped.yaml")
				code, out = s.goOn(way)
				require.Equal(t, 0, code, out)
				s.assertStamped(db)
			})
		})
	}
}

// goOn continues with execution 1 after the death of its process.
func (s *scene) goOn(way string) (int, string) {
	s.t.Helper()
	switch way {
	case "run":
		return s.run("run", "stamped.yaml")
	case "recover":
		code, out := s.run("recover")
		require.Equal(s.t, 0, code, out)
		require.Contains(s.t, out, "restart it:  surfin restart 1")
		code, out = s.run("list", "--running", "--format", "json")
		require.Equal(s.t, 0, code, out)
		require.Contains(s.t, out, "[]\n")
	}
	return s.run("restart", "1")
}

// lock holds the process back at its next write, until the returned function is called.
func (s *scene) lock(p *process, db tx.Database) (release func()) {
	s.t.Helper()
	ctx := context.Background()
	h, err := db.Begin(ctx, tx.Attr{}) // SQLite: the one writer
	require.NoError(s.t, err)
	if db.Dialect() == tx.Postgres {
		_, err = h.Conn().ExecContext(ctx, "lock table stamped in exclusive mode")
		require.NoError(s.t, err)
		require.Eventually(s.t, func() bool {
			return s.ints(db, "select count(*) from pg_locks where not granted and relation = 'stamped'::regclass", 1)[0] > 0
		}, time.Minute, 10*time.Millisecond)
	} else { // SQLite does not show waiting processes: a chunk takes a few milliseconds
		require.False(s.t, p.waitFor(200*time.Millisecond))
	}
	return func() { require.NoError(s.t, h.Rollback()) }
}

func TestSIGTERMWhileATaskletRunsAndSIGKILLLaterCanBeRestarted(t *testing.T) {
	t.Parallel()
	inTurn(t, 0, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, nil)
		s.write("wait.yaml", `
job: wait
flow:
- step: first
  tasklet: {shell: {script: "echo done"}}
- step: second
  tasklet: {shell: {script: "test -e second && exit 0; touch second; echo waiting >&2; exec sleep 30"}}
`)
		p := s.start("run", "wait.yaml")
		require.Eventually(t, func() bool { return s.exists("second") }, time.Minute, 10*time.Millisecond)
		p.signal(syscall.SIGTERM)
		p.waitFor(time.Second)
		p.signal(syscall.SIGKILL)
		code, out := p.wait()
		require.Contains(t, []int{-1, 3}, code, out)
		code, out = s.run("restart", "1")
		require.Equal(t, 0, code, out)
		require.Contains(t, out, "step passed: it completed before", "the first step is not run again")
		require.Equal(t, 1, strings.Count(out, "step resumed")+strings.Count(out, "step started"))
	})
}

func TestAnExecutionThatIsAbandonedWhileItStopsCommitsNothingMore(t *testing.T) {
	t.Parallel()
	inTurn(t, 0, func(t *testing.T, url string) {
		t.Parallel()
		s, db := newStampedScene(t, url)
		p := s.start("run", "stamped.yaml")
		s.awaitStamped(p, db, 500)
		s.freeze(p, db, "stamped")
		code, out := s.run("abandon", "1")
		require.Equal(t, 1, code, out)
		require.Contains(t, out, "stop it:")
		code, out = s.run("stop", "1")
		require.Equal(t, 0, code, out)
		code, out = s.run("abandon", "1")
		require.Equal(t, 0, code, out)
		before := s.rows("stamped")
		p.signal(syscall.SIGCONT)
		code, out = p.wait()
		require.Equal(t, 1, code, out)
		require.Equal(t, before, s.rows("stamped"), "its rows roll back")
		code, out = s.run("show", "1")
		require.Equal(t, 0, code, out)
		require.Contains(t, out, "execution 1: ABANDONED")
	})
}

func (s *scene) write(name, text string) {
	s.t.Helper()
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600))
}

func (s *scene) exists(name string) bool {
	_, err := os.Stat(filepath.Join(s.dir, name))
	return err == nil
}

const sideBySideJob = `
job: sides
flow:
- step: create
  tasklet: {sql: "create table stamped (id bigint, name text, amount double precision)"}
- split: both
  branches:
  - - step: load
      partition: {by: {count: 3}, workers: 2}
      chunk:
        size: 10
        reader: {csv: {path: "in${part.index}.csv", item: {id: int, name: string, amount: float}}}
        writer: {table: {name: stamped}}
  - - step: other
      chunk:
        size: 10
        reader: {csv: {path: in3.csv, item: {id: int, name: string, amount: float}}}
        writer: {table: {name: stamped}}
`

func TestAStopReachesEveryBranchAndPartition(t *testing.T) {
	t.Parallel()
	const rows = 5_000
	inTurn(t, 1, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, map[string]string{"sides.yaml": sideBySideJob})
		for part := range 4 {
			writeInput(t, filepath.Join(s.dir, fmt.Sprintf("in%d.csv", part)), rows)
		}
		db, r := s.open()
		p := s.start("run", "sides.yaml")
		s.awaitStamped(p, db, 200)
		code, out := s.run("stop", "1", "--wait", "1m")
		require.Equal(t, 3, code, out)
		code, out = p.wait()
		require.Equal(t, 3, code, out)
		steps, err := r.Steps(context.Background(), 1)
		require.NoError(t, err)
		for _, step := range steps[1:] {
			require.Equal(t, core.StatusStopped, step.Status, step.Name)
		}
		code, out = s.run("restart", "1")
		require.Equal(t, 0, code, out)
		require.Contains(t, out, "load: 3 partitions: 3 COMPLETED")
		require.Equal(t, []int64{4 * rows, rows, 4, 4},
			s.ints(db, "select sum(n), count(*), min(n), max(n) from (select count(*) as n from stamped group by id) as ids", 4),
			"each of the four inputs once")
	})
}
