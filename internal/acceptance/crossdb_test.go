package acceptance

import (
	"bufio"
	"bytes"
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
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const crossJob = `
job: cross
database: data
parameters:
  input: {type: path}
  into: {type: string}
flow:
- step: create
  tasklet: {sql: {statement: "create table if not exists %s (id bigint, name text)"}}
- step: load
  chunk:
    size: 100
    reader: {csv: {path: "${params.input}", item: {id: int, name: string}}}
    skip: {limit: 100000, errors: [invalid_item]}
    writer: {table: {name: "%s"}}
`

// On MySQL, CREATE commits (rule MY3).
func crossJobOn(data tx.Database, table string) []byte {
	text := fmt.Sprintf(crossJob, table, table)
	if data.Dialect() == tx.MySQL {
		text = strings.Replace(text, "- step: create\n", "- step: create\n  transaction: {propagation: NOT_SUPPORTED}\n", 1)
	}
	return []byte(text)
}

// writeFaulty writes rows 0 to rows-1, each hundredth of them unreadable.
func writeFaulty(t *testing.T, path string, rows int) {
	t.Helper()
	f, err := os.Create(path)
	require.NoError(t, err)
	w := bufio.NewWriter(f)
	fmt.Fprintln(w, "id,name")
	for i := range rows {
		if i%100 == 50 {
			fmt.Fprintf(w, "x%d,bad\n", i)
			continue
		}
		fmt.Fprintf(w, "%d,n%d\n", i, i)
	}
	require.NoError(t, w.Flush())
	require.NoError(t, f.Close())
}

func eachPair(t *testing.T, f func(t *testing.T, s *scene, data tx.Database)) {
	t.Helper()
	kinds := []struct {
		name string
		url  func(testing.TB) string
	}{{"sqlite", testdb.SQLite}, {"postgres", testdb.Postgres}, {"mysql", testdb.MySQL}}
	for _, history := range kinds {
		for _, data := range kinds {
			if history.name == data.name && !isSoak() || history.name == "mysql" || history.name == "postgres" && data.name == "mysql" {
				continue
			}
			t.Run(history.name+" and "+data.name, func(t *testing.T) {
				t.Parallel()
				url := data.url(t)
				s := newScene(t, history.url(t), map[string]string{
					"surfin.yaml": fmt.Sprintf("databases:\n  data: {url: %q}\n", url),
				})
				provider, err := gormdb.Open(t.Context(), map[string]gormdb.Config{"data": {URL: url}})
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, provider.Close()) })
				db, err := provider.Database("data")
				require.NoError(t, err)
				f(t, s, db)
			})
		}
	}
}

func TestEveryRowIsInTheOtherDatabaseOnceThoughTheProcessIsKilled(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, s *scene, data tx.Database) {
		kills, random := killsOf(t, 9, 3, 2)
		writeFaulty(t, filepath.Join(s.dir, "in.csv"), crossRows)
		for load := 0; kills > 0; load++ {
			table := fmt.Sprintf("target%d", load)
			require.NoError(t, os.WriteFile(filepath.Join(s.dir, table+".yaml"), crossJobOn(data, table), 0o600))
			kills = s.loadWithKills(table, kills, random)
			s.assertCross(data, table)
		}
	})
}

const crossRows = 20_000

func (s *scene) assertCross(data tx.Database, table string) {
	s.t.Helper()
	const bad, good = int64(crossRows / 100), int64(crossRows - crossRows/100)
	require.Equal(s.t, []int64{good, good}, s.ints(data, "select count(*), count(distinct id) from "+table, 2))
	_, r := s.open()
	counters, attempts := s.totals(r, "load", "into", table)
	s.t.Logf("%s: %d attempts, %+v", table, attempts, counters)
	counters.Rollback, counters.Commit = 0, 0 // they depend on where the chunks began
	require.Equal(s.t, core.Counters{Read: good, Write: good, ReadSkip: bad}, counters)
	lines := map[int64]bool{}
	skips := 0
	for filter := (ports.SkipFilter{Limit: 1000}); ; {
		page, err := r.SkippedItems(context.Background(), filter)
		require.NoError(s.t, err)
		for _, item := range page {
			exec, err := r.Execution(context.Background(), item.JobExecutionID)
			require.NoError(s.t, err)
			if p, _ := exec.Params.Get("into"); p.Value == table {
				lines[item.Meta.Line] = true
				skips++
			}
		}
		if len(page) < filter.Limit {
			break
		}
		filter.After = page[len(page)-1].ID
	}
	require.Equal(s.t, []int{int(bad), int(bad)}, []int{skips, len(lines)}, "every skip is stored once")
	require.Equal(s.t, []int64{0}, s.ints(data, "select count(*) from surfin_checkpoint_skip", 1))
}

func TestAnOwnerThatLostItsLeaseCommitsNothingInTheOtherDatabase(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, s *scene, data tx.Database) {
		const table = "frozen"
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, "load.yaml"), crossJobOn(data, table), 0o600))
		s.env = []string{"SURFIN_LEASE=3s", "SURFIN_HEARTBEAT=200ms"}
		writeFaulty(t, filepath.Join(s.dir, "in.csv"), crossRows)
		args := []string{"run", "load.yaml", "input=in.csv", "into=" + table}
		history, _ := s.open()
		first := s.start(args...)
		for {
			awaitMore(t, data, table)
			first.signal(syscall.SIGSTOP)
			awaitStopped(t, first)
			if (!data.SingleWriter() || s.writable(data)) && (!history.SingleWriter() || s.writable(history)) {
				break // where another can take over
			}
			first.signal(syscall.SIGCONT)
		}
		before := s.ints(data, "select count(*) from "+table, 1)[0]
		require.Less(t, before, int64(crossRows-crossRows/100), "it was stopped too late")
		s.takeOver(args, func(string) {})
		s.assertCross(data, table)
		first.signal(syscall.SIGCONT)
		code, out := first.wait()
		require.Equal(t, 1, code, "the first owner lost its execution:\n%s", out)
		require.Contains(t, out, "was taken over by another process")
		s.assertCross(data, table)
	})
}

func TestExplainAsksTheOtherDatabaseWhatIsCommitted(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, s *scene, data tx.Database) {
		const table = "asked"
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, "load.yaml"), crossJobOn(data, table), 0o600))
		var valid bytes.Buffer
		fmt.Fprintln(&valid, "id,name")
		for i := range crossRows { // a skip would be recorded at once
			fmt.Fprintf(&valid, "%d,n\n", i)
		}
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, "in.csv"), valid.Bytes(), 0o600))
		p := s.start("run", "load.yaml", "input=in.csv", "into="+table)
		awaitMore(t, data, table)
		p.signal(syscall.SIGKILL)
		p.wait()
		code, out := s.run("recover")
		require.Equal(t, 0, code, out)
		code, out = s.run("explain", "1")
		require.Equal(t, 0, code, out)
		require.NotContains(t, out, "nothing is committed")
		require.Contains(t, out, "A restart passes create and resumes load after ", "in database data, or the line that the history has")
	})
}

// Rule MY1.
func TestAMisfitOfMySQLIsRefusedAtItsLine(t *testing.T) {
	t.Parallel()
	url := testdb.MySQL(t)
	s := newScene(t, testdb.SQLite(t), map[string]string{
		"surfin.yaml": fmt.Sprintf("databases:\n  data: {url: %q}\n", url),
		"load.yaml": `job: load
database: data
flow:
- step: load
  chunk:
    reader: {query: {sql: select id from bird, key: [id]}}
    writer: {table: {name: copy, mode: upsert, key: [id], where: id > 0}}
- step: check
  tasklet: {check: {table: copy, unique: [id], store: bad}}
`,
		"parent.yaml": "job: parent\nflow:\n- {job: child, file: load.yaml}\n",
	})
	for _, args := range []string{"run load.yaml", "validate load.yaml", "validate parent.yaml"} {
		code, out := s.run(strings.Fields(args)...)
		require.Equal(t, 2, code, out)
		require.Contains(t, out, "load.yaml:7:59")
		require.Contains(t, out, "load.yaml:9:")
		require.Contains(t, out, "database data is MySQL: ")
		require.NotContains(t, out, "query: database data")
	}
}

// Rule MY8.
func TestAHistoryOnMariaDBRunsRestartsAndShows(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.MySQL(t), map[string]string{
		"load.yaml": `job: load
parameters: {day: {type: int}}
flow:
- step: create
  transaction: {propagation: NOT_SUPPORTED}
  tasklet: {sql: create table if not exists bird (id int primary key)}
- step: load
  chunk:
    size: 2
    skip: {limit: 1, errors: [parse]}
    reader: {csv: {path: in.csv, item: {id: int}}}
    writer: {table: bird}
`,
		"in.csv": "id\n1\nx\n3\n4\n5\n",
	})
	db, _ := s.open()
	s.exec(db, "create table bird (id int primary key)", "insert into bird values (5)")
	for _, step := range []struct {
		code int
		args []string
	}{
		{0, []string{"migrate"}},
		{0, []string{"migrate"}},
		{1, []string{"run", "load.yaml", "day=1"}},
		{0, []string{"sql", "--write", "delete from bird where id = 5"}},
		{0, []string{"restart", "1"}},
	} {
		code, out := s.run(step.args...)
		require.Equal(t, step.code, code, "%v\n%s", step.args, out)
	}
	for _, command := range []string{
		"list", "list jobs", "list instances", "show 1", "explain 1", "skips list 1", "skips export 1", "summary", "overview", "days load --param day --from 1 --to 3",
		"timeline 1", "log 1", "audit list", "list --text duplicate", "list --param day:1", "parts 1", "report 1", "compare 2", "schedules", "tasks list",
		"tasks list --text x", "definitions", "register load.yaml", "definitions list", "events list", "bulk restart --job load --dry-run", "purge --older-than 1h --dry-run", "recover",
	} {
		code, out := s.run(strings.Fields(command)...)
		require.NotRegexp(t, `Error 1([1-9]\d\d|0[0-57-9]\d) `, out, command)
		require.Zero(t, code, "%s\n%s", command, out)
	}
}

// awaitStopped returns when every thread of the process has stopped: the signal takes a moment, in which a
// transaction may begin.
func awaitStopped(t *testing.T, p *process) {
	t.Helper()
	require.Eventually(t, func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.Process.Pid))
		if err != nil || len(threads) == 0 {
			return false
		}
		for _, thread := range threads {
			stat, err := os.ReadFile(thread)
			if err != nil || !bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" T")) {
				return false
			}
		}
		return true
	}, time.Minute, 10*time.Millisecond)
}

// awaitMore returns when the table has more rows than before, or at least some.
func awaitMore(t *testing.T, db tx.Database, table string) {
	t.Helper()
	count := func() (n int64) {
		if err := db.Conn().QueryRowContext(context.Background(), "select count(*) from "+table).Scan(&n); err != nil {
			return 0 // the table is not there yet
		}
		return n
	}
	had := count()
	require.Eventually(t, func() bool { return count() > had }, time.Minute, 10*time.Millisecond)
}

func TestMigrateMakesTheTablesOfCheckpointsInAnotherDatabase(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, s *scene, data tx.Database) {
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, "load.yaml"), crossJobOn(data, "target"), 0o600))
		writeFaulty(t, filepath.Join(s.dir, "in.csv"), 1000)
		code, out := s.run("migrate")
		require.Zero(t, code, out)
		s.env = []string{"SURFIN_AUTO_MIGRATE=false"}
		args := []string{"run", "load.yaml", "input=in.csv", "into=target"}
		code, out = s.run(args...)
		require.Equal(t, 1, code, out)
		require.Contains(t, out, "surfin migrate --database data")
		code, out = s.run("migrate", "--database", "data")
		require.Zero(t, code, out)
		require.Contains(t, out, "migrated")
		code, out = s.run("migrate", "--database", "data")
		require.Zero(t, code, out)
		require.Contains(t, out, "the schema of the checkpoints is up to date")
		code, out = s.run(args...)
		require.Zero(t, code, out)
		require.Equal(t, []int64{990}, s.ints(data, "select count(*) from target", 1))
	})
}
