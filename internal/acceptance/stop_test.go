package acceptance

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// wideJob works in a split, in partitions and in a child job, in this order. The first %s is the time of
// writing by the database's clock, the others are sizes of chunks.
const wideJob = `
job: wide
flow:
- step: create
  tasklet: {sql: "create table wide (step text, id bigint, name text, amount double precision, written double precision default %[1]s); create index wide_step on wide (step)"}
- split: both
  branches:
  - - step: left
      chunk:
        size: %[2]d
        reader: {csv: {path: in/p0.csv, item: {id: int, name: string, amount: float}}}
        processor: {map: {step: "'left'"}}
        writer: {table: wide}
  - - step: right
      chunk:
        size: %[2]d
        reader: {csv: {path: in/p0.csv, item: {id: int, name: string, amount: float}}}
        processor: {map: {step: "'right'"}}
        writer: {table: wide}
- step: parts
  partition: {by: {count: 4}, workers: 2}
  chunk:
    size: %[3]d
    reader: {csv: {path: in/p0.csv, item: {id: int, name: string, amount: float}}}
    processor: {map: {step: part.name}}
    writer: {table: wide}
- job: child
  file: child.yaml
`

const wideChild = `
job: child
flow:
- step: below
  chunk:
    size: %d
    reader: {csv: {path: in/below.csv, item: {id: int, name: string, amount: float}}}
    processor: {map: {step: "'below'"}}
    writer: {table: wide}
`

// writeWide writes the job with small chunks at the point where it is to be
// stopped: in its split (0), its partitions (1) or its child job (2).
func (s *scene) writeWide(now string, stopped int) {
	s.t.Helper()
	sizes := []int{fewChunks, fewChunks, fewChunks}
	if stopped < len(sizes) {
		sizes[stopped] = 10
	}
	s.write("wide.yaml", fmt.Sprintf(wideJob, now, sizes[0], sizes[1]))
	s.write("child.yaml", fmt.Sprintf(wideChild, sizes[2]))
}

// Without heartbeats the commits notice the stop: after it was stored, each of
// the concurrent ones commits two more chunks at most.
func TestAStopReachesSplitsPartitionsAndChildJobs(t *testing.T) {
	t.Parallel()
	const rows, below = 10_000, 30_000
	inTurn(t, 1, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, map[string]string{"in/p0.csv": partText(0, rows), "in/below.csv": partText(0, below)})
		db, r := s.open()
		now := "(unixepoch('subsec'))"
		if db.Dialect() == tx.Postgres {
			now = "extract(epoch from clock_timestamp())"
		}
		s.env = []string{"SURFIN_LEASE=1h", "SURFIN_HEARTBEAT=10m"}
		for i, at := range []struct {
			rows    string // the rows that show that it is at work
			beside  int64  // how many run at once
			stopped []string
		}{
			{"'left', 'right'", 2, []string{"left", "right"}},
			{"'0', '1'", 2, []string{"parts", "parts:0", "parts:1"}},
			{"'below'", 1, []string{"child"}}, // the request is passed on to the child
		} {
			s.writeWide(now, i)
			p := s.start("run", "wide.yaml")
			s.awaitWide(p, db, at.rows)
			id := core.JobExecutionID(i + 1)
			_, err := r.RequestStop(t.Context(), id, ports.By{Actor: "test"}) // at once: a command takes its time to start
			require.NoError(t, err)
			var stored float64
			require.NoError(t, db.Conn().QueryRowContext(t.Context(), "select "+now).Scan(&stored))
			code, out := p.wait()
			require.Equal(t, 3, code, out)
			late := s.ints(db, fmt.Sprintf("select count(*) from wide where written > %f", stored), 1)[0]
			t.Logf("%s: %d rows were written after the stop was stored", at.rows, late)
			require.LessOrEqual(t, late, at.beside*3*10, "%s: the chunk that was on its way, and two more", at.rows)
			s.assertStoppedAt(r, id, at.stopped)
		}
		s.writeWide(now, 3)
		code, out := s.run("run", "wide.yaml")
		require.Zero(t, code, out)
		s.assertWide(db, r, rows, below)
	})
}

// Rule L13. The steps are too short for a heartbeat, and none of them has
// chunks.
func TestAStopIsSeenBetweenSteps(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		var text strings.Builder
		text.WriteString("job: short\nfinally:\n- {step: last, tasklet: {sql: \"insert into log values (1000)\"}}\nflow:\n- {step: t, tasklet: {sql: \"create table log (x int)\"}}\n")
		for i := range 200 {
			fmt.Fprintf(&text, "- {step: w%[1]d, tasklet: {shell: {command: [sleep, '0.05']}}}\n- {step: s%[1]d, tasklet: {sql: \"insert into log values (%[1]d)\"}}\n", i)
		}
		s := newScene(t, url, map[string]string{"short.yaml": text.String()})
		s.env = []string{"SURFIN_LEASE=1h", "SURFIN_HEARTBEAT=10m"}
		db, _ := s.open()
		p := s.start("run", "short.yaml")
		p.await("w3 ")
		code, out := s.run("stop", "1")
		require.Zero(t, code, out)
		begun := s.ints(db, "select max(id) from surfin_step_execution where flow <> 'finally'", 1)[0]
		code, out = p.wait()
		require.Equal(t, 3, code, out)
		require.Equal(t, []int64{begun}, s.ints(db, "select max(id) from surfin_step_execution where flow <> 'finally'", 1))
		require.Equal(t, []int64{1}, s.ints(db, "select count(*) from log where x = 1000", 1))
		code, out = s.run("restart", "1")
		require.Zero(t, code, out)
		require.Equal(t, []int64{200}, s.ints(db, "select count(*) from log where x < 1000", 1))
	})
}

func (s *scene) awaitWide(p *process, db tx.Database, rows string) {
	s.t.Helper()
	for count := int64(0); count < 50; {
		require.False(s.t, p.waitFor(0), "it ended: %s", p.out.String())
		if err := db.Conn().QueryRowContext(context.Background(), "select count(*) from (select id from wide where step in ("+rows+") limit 50) as found").Scan(&count); err != nil {
			count = 0 // the table is not there yet
		}
		time.Sleep(2 * time.Millisecond) // for the process
	}
}

// assertStoppedAt checks that exactly these steps of an execution stopped, and that nothing in it, or in a
// child, is open.
func (s *scene) assertStoppedAt(r *repository.Repository, id core.JobExecutionID, want []string) {
	s.t.Helper()
	executions, err := r.Executions(context.Background(), ports.ExecutionFilter{})
	require.NoError(s.t, err)
	var stopped []string
	for _, e := range executions {
		require.Equal(s.t, core.StatusStopped, e.Status, "execution %d of %s", e.ID, e.JobName)
		steps, err := r.Steps(context.Background(), e.ID)
		require.NoError(s.t, err)
		for _, step := range steps {
			require.Contains(s.t, []core.Status{core.StatusCompleted, core.StatusStopped}, step.Status, step.Name)
			if e.ID == id && step.Status == core.StatusStopped && !strings.HasPrefix(step.Name, "parts:2") && !strings.HasPrefix(step.Name, "parts:3") {
				stopped = append(stopped, step.Name)
			}
		}
	}
	require.ElementsMatch(s.t, want, stopped)
}

// assertWide checks that every row is there once for each of its writers, and that no step ran again after it
// had completed.
func (s *scene) assertWide(db tx.Database, r *repository.Repository, rows, below int) {
	s.t.Helper()
	var want []string
	for _, step := range []string{"0", "1", "2", "3", "below", "left", "right"} {
		n := rows
		if step == "below" {
			n = below
		}
		want = append(want, fmt.Sprintf("%s %d %d", step, n, n))
	}
	require.Equal(s.t, want, s.lines(db, "select step||' '||cast(count(*) as text)||' '||cast(count(distinct id) as text) from wide group by step order by step"))
	for _, job := range []string{"wide", "child"} {
		executions, err := r.Executions(context.Background(), ports.ExecutionFilter{JobName: job})
		require.NoError(s.t, err)
		completed := map[string]core.JobExecutionID{}
		for i := range executions {
			s.assertNoneAgain(r, executions[len(executions)-1-i].ID, completed)
		}
	}
}
