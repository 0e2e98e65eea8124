package acceptance

import (
	"context"
	"fmt"
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

const raceJob = `
job: race
parameters:
  n: {type: int}
flow:
- step: once
  tasklet: {sql: "insert into ran(n) values (${params.n})"}
`

// TestOfTwoProcessesThatLaunchOneInstanceExactlyOneRuns races two processes 8
// times (SURFIN_RACES; `make soak` has 100).
func TestOfTwoProcessesThatLaunchOneInstanceExactlyOneRuns(t *testing.T) {
	t.Parallel()
	races := envInt(t, "SURFIN_RACES", 8)
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, map[string]string{"race.yaml": raceJob})
		code, out := s.run("migrate")
		require.Zero(t, code, out)
		db, r := s.open()
		_, err := db.Conn().ExecContext(context.Background(), "create table ran(n bigint)")
		require.NoError(t, err)
		for n := range races {
			arg := fmt.Sprintf("n=%d", n)
			a, b := s.start("run", "race.yaml", arg), s.start("run", "race.yaml", arg)
			codeA, outA := a.wait()
			codeB, outB := b.wait()
			require.ElementsMatch(t, []int{0, 4}, []int{codeA, codeB}, "race %d:\n%s\n%s", n, outA, outB)
		}
		require.Equal(t, []int64{int64(races), int64(races)}, s.ints(db, "select count(*), count(distinct n) from ran", 2))
		executions, err := r.Executions(context.Background(), ports.ExecutionFilter{JobName: "race", Limit: 2 * races})
		require.NoError(t, err)
		require.Len(t, executions, races, "a refused launch leaves no execution behind")
	})
}

func TestAnOwnerFrozenBeyondItsLeaseCommitsNothingWhenItWakes(t *testing.T) {
	t.Parallel()
	testdb.All(t, func(t *testing.T, url string) {
		t.Parallel()
		const table = "frozen"
		s := newScene(t, url, map[string]string{
			"load.yaml": loadJobOn(url, table),
		})
		s.env = []string{"SURFIN_LEASE=3s", "SURFIN_HEARTBEAT=200ms"}
		writeInput(t, filepath.Join(s.dir, "in.csv"), frozenRows)
		args := []string{"run", "load.yaml", "input=in.csv", "into=" + table}
		db, r := s.open()

		first := s.start(args...)
		s.awaitRows(table, 1000)
		s.freeze(first, db, table)
		s.inFewChunks("load.yaml") // it is the first owner that is looked at
		out := s.takeOver(args, func(refusal string) {
			require.Contains(t, strings.ToLower(refusal), "owner", "a refusal names the owner:\n%s", refusal)
		})
		require.Contains(t, out, "COMPLETED")
		before := s.ints(db, "select count(*), count(distinct id) from "+table, 2)
		first.signal(syscall.SIGCONT)
		code, out := first.wait()
		require.Equal(t, 1, code, "the first owner lost its execution:\n%s", out)
		require.Contains(t, out, "was taken over by another process")
		require.Equal(t, before, s.ints(db, "select count(*), count(distinct id) from "+table, 2))
		executions, err := r.Executions(context.Background(), ports.ExecutionFilter{})
		require.NoError(t, err)
		steps, err := r.Steps(t.Context(), executions[1].ID)
		require.NoError(t, err)
		mine := steps[len(steps)-1].Counters.Commit
		s.assertLoadedIn(table, frozenRows, mine+(frozenRows-10*mine+fewChunks-1)/fewChunks)
		require.Equal(t, core.StatusCompleted, executions[0].Status)
		require.Equal(t, core.StatusFailed, executions[1].Status)
	})
}

func (s *scene) takeOver(args []string, refused func(out string)) string {
	s.t.Helper()
	for {
		code, out := s.run(args...)
		if isComplete(code, out) { // the first process may have completed it
			return out
		}
		require.Equal(s.t, 4, code, "the second process neither took over nor was refused:\n%s", out)
		refused(out)
		time.Sleep(400 * time.Millisecond)
	}
}

// freeze stops a process at a moment at which another can take over: on PostgreSQL at any moment, since the
// server ends the current transaction; on MariaDB within one that has locked rows, which wait_timeout ends (rule L7); on
// SQLite, where no other process can, between two transactions.
func (s *scene) freeze(p *process, db tx.Database, table string) {
	s.t.Helper()
	for {
		p.signal(syscall.SIGSTOP)
		awaitStopped(s.t, p) // until then it could still begin a transaction
		switch db.Dialect() {
		case tx.Postgres:
			return
		case tx.MySQL:
			if s.locksRows(db) {
				return
			}
		case tx.SQLite:
			if s.writable(db) {
				return
			}
		}
		rows := s.rows(table)
		p.signal(syscall.SIGCONT)
		s.awaitRows(table, rows+1)
	}
}

func (s *scene) locksRows(db tx.Database) bool {
	s.t.Helper()
	time.Sleep(200 * time.Millisecond) // the view is refreshed no sooner
	return s.ints(db, "select count(*) from information_schema.innodb_trx t join information_schema.processlist p on p.id = t.trx_mysql_thread_id "+
		"where p.db = database() and trx_rows_modified > 0", 1)[0] > 0
}

func (s *scene) writable(db tx.Database) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	h, err := db.Begin(ctx, tx.Attr{})
	if err != nil {
		return false
	}
	require.NoError(s.t, h.Rollback())
	return true
}

func (s *scene) rows(table string) int64 {
	db, _ := s.open()
	return s.ints(db, "select count(*) from "+table, 1)[0]
}

func (s *scene) awaitRows(table string, n int64) {
	s.t.Helper()
	db, _ := s.open()
	require.Eventually(s.t, func() bool {
		var count int64
		err := db.Conn().QueryRowContext(context.Background(), "select count(*) from "+table).Scan(&count)
		return err == nil && count >= n
	}, time.Minute, 10*time.Millisecond)
}
