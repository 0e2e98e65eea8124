package acceptance

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const frozenPart = `
job: part%[1]d
flow:
- step: work
  partition: {by: {count: 1}, remote: true}
  tasklet:
    shell:
      script: |
        echo x >> began%[1]d
        if [ "$(wc -l < began%[1]d)" -eq 1 ]; then sleep 100; fi
        date +%%s%%3N > again%[1]d
`

// Rule E7. A worker is frozen and not killed, since a dead process of the same
// machine is found sooner. A busy machine may be late: of three rounds one
// must be in time.
func TestAPartOfAFrozenWorkerBeginsElsewhereSoonAfterItsLease(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open   func(testing.TB) string
		engine string
		shift  time.Duration
	}{
		"local on sqlite":            {testdb.SQLite, "local", 0},
		"local on postgres, ahead":   {testdb.Postgres, "local", 90 * time.Second},
		"river, the database ahead":  {testdb.Postgres, "river", 90 * time.Second},
		"river, the database behind": {testdb.Postgres, "river", -90 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := c.open(t)
			if c.shift != 0 {
				shiftClock(t, url, c.shift)
			}
			s := newScene(t, url, nil)
			s.env = []string{"SURFIN_LEASE=9s", "SURFIN_HEARTBEAT=3s", "SURFIN_ENGINE=" + c.engine}
			s.said("migrate")
			var late []int64
			for round := range 3 {
				after := s.partTakenOver(round, c.shift)
				require.Positive(t, after, "before the lease was over")
				if late = append(late, after); after < 2000 {
					return
				}
			}
			require.Fail(t, "a part begins elsewhere too late", "milliseconds after the end of the lease: %v", late)
		})
	}
}

// partTakenOver returns how many milliseconds after the lease of a frozen worker its part began elsewhere.
func (s *scene) partTakenOver(round int, shift time.Duration) int64 {
	s.t.Helper()
	file, began, again := fmt.Sprintf("part%d.yaml", round), fmt.Sprintf("began%d", round), fmt.Sprintf("again%d", round)
	s.write(file, fmt.Sprintf(frozenPart, round))
	first := s.start("worker", "--slots", "1")
	first.await("waiting for work")
	run := s.start("run", file)
	s.awaitFile(began)
	second := s.start("worker", "--slots", "1")
	second.await("waiting for work")
	db, _ := s.open()
	s.freezeOutsideOfWrites(db, first)
	defer func() {
		first.signal(syscall.SIGKILL)
		first.wait()
	}()
	ended := "EXTRACT(EPOCH FROM lease_until) * 1000"
	if db.Dialect() == tx.SQLite {
		ended = "lease_until / 1000"
	}
	f := &taskFaults{scene: s, db: db}
	over := int64(f.count("SELECT CAST(max("+ended+") AS bigint) FROM surfin_step_execution WHERE manager_id IS NOT NULL AND ended_at IS NULL")) - shift.Milliseconds()
	code, out := run.wait()
	require.Zero(s.t, code, out)
	at, err := strconv.ParseInt(strings.TrimSpace(s.read(again)), 10, 64)
	require.NoError(s.t, err)
	second.signal(syscall.SIGTERM)
	code, out = second.wait()
	require.Zero(s.t, code, out)
	s.t.Logf("round %d: %d ms after the lease", round, at-over)
	return at - over
}

func (s *scene) freezeOutsideOfWrites(db tx.Database, p *process) {
	s.t.Helper()
	for range 20 {
		p.signal(syscall.SIGSTOP)
		if db.Dialect() != tx.SQLite {
			return
		}
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Second)
		_, err := db.Conn().ExecContext(ctx, "UPDATE surfin_worker SET version = version")
		cancel()
		if err == nil {
			return
		}
		p.signal(syscall.SIGCONT)
		time.Sleep(5 * time.Millisecond) // else it is stopped again in the same write
	}
	require.Fail(s.t, "it writes each time")
}

// shiftClock makes the clock of a PostgreSQL database differ from this machine's: its sessions find functions
// in their own schema before the server's.
func shiftClock(t *testing.T, url string, by time.Duration) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) }()
	statements := []string{"CREATE SCHEMA shifted"}
	for _, name := range []string{"now", "clock_timestamp", "statement_timestamp", "transaction_timestamp"} {
		statements = append(statements, fmt.Sprintf(`CREATE FUNCTION shifted.%[1]s() RETURNS timestamptz LANGUAGE sql STABLE
			AS $$ SELECT pg_catalog.%[1]s() + interval '%[2]d seconds' $$`, name, int(by.Seconds())))
	}
	statements = append(statements, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = shifted, pg_catalog, public', current_database()); END $$`)
	for _, statement := range statements {
		_, err := conn.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
}
