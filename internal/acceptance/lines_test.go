package acceptance

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const linesJob = `
job: lines
parameters: {into: {type: string}}
flow:
- step: create
  tasklet: {sql: "create table if not exists %[1]s (id bigint, name text)"}
- step: load
  partition: {by: {lines: {path: in.csv, parts: 5}}, %[2]s}
  chunk:
    size: 50
    skip: 1000
    reader: {csv: {path: "${part.path}", item: {id: int, name: string}}}
    writer: {table: %[1]s}
  expect: balanced
`

// linesFile has a byte order mark, a header, ends of CRLF, and records in quotes over several lines.
type linesFile struct {
	text                 strings.Builder
	rows, sum            int64
	skips, skipped, line int64
}

func newLinesFile(rows int) *linesFile {
	f := &linesFile{}
	f.text.WriteString("\xEF\xBB\xBFid,name\r\n")
	f.line = 2
	for i := range rows {
		switch {
		case i%97 == 13:
			fmt.Fprintf(&f.text, "x%d,bad\r\n", i)
			f.skips, f.skipped, f.line = f.skips+1, f.skipped+f.line, f.line+1
			continue
		case i%3 == 0:
			fmt.Fprintf(&f.text, "%d,\"name\r\nof \"\"%d\"\",\r\n\"\r\n", i, i)
			f.line += 3
		default:
			fmt.Fprintf(&f.text, "%d,name %d\r\n", i, i)
			f.line++
		}
		f.rows, f.sum = f.rows+1, f.sum+int64(i)
	}
	return f
}

// linesRounds are the kills and the freezes of a test on one database.
type linesRounds struct {
	*scene
	db            tx.Database
	file          *linesFile
	random        *rand.Rand
	kills, frozen int
	run           []string
	table         string
	skips         int64 // before this round
}

// Rule P9.
func TestTheLinesOfOneFileAreLoadedOnceByParts(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		r := newLinesRounds(t, url)
		for n := 1; r.kills > 0 || r.frozen > 0; n++ {
			r.begin(n, "workers: 3")
			for !r.disturbed(r.start(r.run...)) {
			}
			r.assertRound()
		}
	})
}

// Rules P4 and P9.
func TestTheLinesOfOneFileAreLoadedOnceByWorkers(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		r := newLinesRounds(t, url)
		code, out := r.scene.run("migrate")
		require.Zero(t, code, out)
		workers := []*process{r.worker(), r.worker()}
		for n := 1; r.kills > 0 || r.frozen > 0; n++ {
			r.begin(n, "remote: true")
			for !r.disturbedWorkers(workers, r.start(r.run...)) {
			}
			r.assertRound()
		}
	})
}

// disturbedWorkers kills and freezes workers until the run is over, and reports whether the job is complete: a worker
// that has resumed it owns it, and the job fails with that worker (rule P5).
func (r *linesRounds) disturbedWorkers(workers []*process, run *process) bool {
	r.t.Helper()
	for at := r.random.IntN(len(workers)); !run.waitFor(r.moment()); at = r.random.IntN(len(workers)) {
		if r.frozen > 0 && r.random.IntN(4) == 0 {
			r.frozen--
			r.freezeOutsideOfWrites(r.db, workers[at])
			woken := workers[at]
			time.AfterFunc(5*time.Second, func() { woken.signal(syscall.SIGCONT) })
			workers[at] = r.worker()
		} else if r.kills > 0 {
			r.kills--
			workers[at].signal(syscall.SIGKILL)
			workers[at].wait()
			workers[at] = r.worker()
		}
	}
	code, out := run.wait()
	if code != 0 {
		require.Contains(r.t, out, "lost owner")
	}
	return code == 0
}

func newLinesRounds(t *testing.T, url string) *linesRounds {
	t.Helper()
	kills, random := killsOf(t, 6, 4, 37)
	r := &linesRounds{scene: newScene(t, url, nil), file: newLinesFile(6000), random: random, kills: max(kills, 3), frozen: envInt(t, "SURFIN_FROZEN", 4) / 4}
	r.env = []string{"SURFIN_LEASE=4s", "SURFIN_HEARTBEAT=500ms"}
	r.write("in.csv", r.file.text.String())
	r.db, _ = r.open()
	return r
}

func (r *linesRounds) begin(n int, workers string) {
	r.t.Helper()
	r.table = fmt.Sprint("t", n)
	name := r.table + ".yaml"
	r.write(name, fmt.Sprintf(linesJob, r.table, workers))
	r.run = []string{"run", name, "into=" + r.table}
	if n > 1 {
		r.skips = r.ints(r.db, "select count(*) from surfin_skipped_item", 1)[0]
	}
}

func (r *linesRounds) moment() time.Duration {
	return time.Duration(r.random.IntN(400_000)) * time.Microsecond
}

// disturbed kills or freezes a process that runs the job, and reports whether the job is complete.
func (r *linesRounds) disturbed(p *process) bool {
	r.t.Helper()
	p.await("step=load")
	if p.waitFor(r.moment()) {
		return r.completed(p)
	}
	if r.frozen > 0 && r.random.IntN(4) == 0 {
		r.frozen--
		r.freezeOutsideOfWrites(r.db, p)
		r.takeOver(r.run, func(string) {})
		p.signal(syscall.SIGCONT)
		p.wait()
		return true
	}
	if r.kills <= 0 {
		return r.completed(p)
	}
	r.kills--
	p.signal(syscall.SIGKILL)
	code, out := p.wait()
	if !isComplete(code, out) {
		require.Equal(r.t, -1, code, out)
		return false
	}
	return true
}

func (r *linesRounds) completed(p *process) bool {
	r.t.Helper()
	code, out := p.wait()
	require.True(r.t, isComplete(code, out), out)
	return true
}

func (r *linesRounds) assertRound() {
	r.t.Helper()
	f := r.file
	require.Equal(r.t, []int64{f.rows, f.rows, f.rows, f.sum}, r.ints(r.db, "select count(*), count(distinct id), count(distinct name), cast(sum(id) as bigint) from "+r.table, 4))
	require.Equal(r.t, []int64{f.skips, f.skips, f.skipped}, r.ints(r.db, fmt.Sprintf(
		"select count(*), count(distinct line), cast(sum(line) as bigint) from (select line from surfin_skipped_item order by id limit %d offset %d) s", 1<<30, r.skips), 3))
}
