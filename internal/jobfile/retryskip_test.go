package jobfile_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// csvJob is a file that loads in.csv into the table t in one chunk of 1,000; keys
// are more keys of its chunk, top more of the job.
func csvJob(top, keys string) string {
	return fmt.Sprintf(`
job: load
%s
flow:
- step: load
  chunk:
    size: 1000
    reader: {csv: {path: in.csv, item: {id: int, name: string}}}
    writer: {table: t}
    %s
`, top, keys)
}

func runCSV(t *testing.T, e *testengine.Engine, text string, lines []string) *core.JobExecution {
	t.Helper()
	return runLines(t, e, text, "id,name", lines)
}

func runLines(t *testing.T, e *testengine.Engine, text, header string, lines []string) *core.JobExecution {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in.csv"), []byte(header+"\n"+strings.Join(lines, "\n")+"\n"), 0o600))
	reg := shipped(t)
	file, err := jobfile.Parse(filepath.Join(dir, "job.yaml"), []byte(text), reg)
	require.NoError(t, err)
	compiled, err := file.Compile(jobfile.Deps{Provider: e.Provider, Registry: reg})
	require.NoError(t, err)
	exec, err := e.Launcher.Run(t.Context(), compiled, core.Parameters{}, nil)
	require.NoError(t, err)
	return exec
}

func thousand(change map[int]string) []string {
	lines := make([]string, 1000)
	for i := range lines {
		lines[i] = fmt.Sprintf("%d,n%d", i+1, i+1)
		if other, ok := change[i+1]; ok {
			lines[i] = other
		}
	}
	return lines
}

func TestAUniqueViolationInAThousandRowsCostsOneRow(t *testing.T) {
	t.Parallel()
	for _, isolate := range []string{"each", "bisect"} {
		t.Run(isolate, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, url string) {
				e := testengine.New(t, url)
				e.Exec("create table t (id int primary key, name text)")
				exec := runCSV(t, e, csvJob("", "skip: {limit: 1, errors: [unique]}\n    isolate: "+isolate), thousand(map[int]string{700: "7,again"}))
				require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
				require.Equal(t, []int64{999}, e.Ints("select count(*) from t"))
				require.Equal(t, []int64{0}, e.Ints("select count(*) from t where id = 700 or name = 'again'"))
				counters := e.Step(exec, "load").Counters
				require.EqualValues(t, 1000, counters.Read)
				require.EqualValues(t, 999, counters.Write)
				require.EqualValues(t, 1, counters.WriteSkip)
				if isolate == "bisect" {
					require.LessOrEqual(t, counters.Commit+counters.Rollback, int64(25))
				}
				skipped, err := e.Repository.SkippedItems(t.Context(), ports.SkipFilter{Execution: exec.ID})
				require.NoError(t, err)
				require.Len(t, skipped, 1)
				require.Equal(t, core.PhaseWrite, skipped[0].Phase)
				require.Equal(t, "unique", skipped[0].Class)
				require.JSONEq(t, `{"id":7,"name":"again"}`, string(skipped[0].Item))
			})
		})
	}
}

func TestRetryAndSkipOfAFileDecideWhatAnErrorCosts(t *testing.T) {
	t.Parallel()
	malformed := []string{"1,a", "x,b", "3,c", "4,d,e", "5,e"}
	duplicate := []string{"1,a", "2,b", "1,c"}
	for name, c := range map[string]struct {
		top, keys string
		lines     []string
		status    core.Status
		rows      []int64
		skipped   string // phase:class of each
		err       string
	}{
		"parse errors are skipped by default":             {"", "skip: 2", malformed, core.StatusCompleted, []int64{1, 3, 5}, "read:parse read:parse", ""},
		"by their own name":                               {"", "skip: {limit: 2, errors: [parse]}", malformed, core.StatusCompleted, []int64{1, 3, 5}, "read:parse read:parse", ""},
		"not where only constraints are listed":           {"", "skip: {limit: 2, errors: [constraint]}", malformed, core.StatusFailed, []int64{}, "", "(the error allows a skip of its item, but the class parse decides: list parse in skip.errors)"},
		"not where they are excepted":                     {"", "skip: {limit: 2, except: [parse]}", malformed, core.StatusFailed, []int64{}, "", "x"},
		"though a wider class is excepted":                {"", "skip: {limit: 2, errors: [parse], except: [invalid_item]}", malformed, core.StatusCompleted, []int64{1, 3, 5}, "read:parse read:parse", ""},
		"the one too many fails the step":                 {"", "skip: 1", malformed, core.StatusFailed, []int64{}, "", "skip limit of 1 exceeded"},
		"nothing is skipped without a limit":              {"", "skip: {errors: [parse]}", malformed, core.StatusFailed, []int64{}, "", "x"},
		"a duplicate is a constraint":                     {"", "skip: 5", duplicate, core.StatusCompleted, []int64{1, 2}, "write:unique", ""},
		"but not where unique is excepted":                {"", "skip: {limit: 5, except: [unique]}", duplicate, core.StatusFailed, []int64{}, "", ""},
		"a default of the file":                           {"defaults: {skip: 5}", "", malformed, core.StatusCompleted, []int64{1, 3, 5}, "read:parse read:parse", ""},
		"which keeps the keys that a step does not name":  {"defaults: {skip: {limit: 5, except: [parse]}}", "skip: 7", malformed, core.StatusFailed, []int64{}, "", "x"},
		"and is merged key by key":                        {"defaults: {skip: {limit: 5, errors: [unique]}}", "skip: {errors: [parse]}", malformed, core.StatusCompleted, []int64{1, 3, 5}, "read:parse read:parse", ""},
		"a constraint is not cured by trying again":       {"", "retry: {limit: 3, errors: [unique], backoff: {initial: 1ms}}\n    skip: 1", duplicate, core.StatusCompleted, []int64{1, 2}, "write:unique", ""},
		"the chunk's keys have defaults, one by one":      {"defaults: {chunk: {size: 1, isolate: bisect, concurrency: 2}}", "skip: 1\n    concurrency: 3", duplicate, core.StatusCompleted, []int64{1, 2}, "write:unique", ""},
		"processing in the transaction changes no result": {"", "skip: 2\n    process_in_transaction: true", malformed, core.StatusCompleted, []int64{1, 3, 5}, "read:parse read:parse", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, url string) {
				e := testengine.New(t, url)
				e.Exec("create table t (id int primary key, name text)")
				exec := runCSV(t, e, csvJob(c.top, c.keys), c.lines)
				require.Equal(t, c.status, exec.Status, exec.Error)
				require.Contains(t, exec.Error, c.err)
				require.Equal(t, c.rows, e.Ints("select id from t order by id"))
				skipped, err := e.Repository.SkippedItems(t.Context(), ports.SkipFilter{Execution: exec.ID})
				require.NoError(t, err)
				var got []string
				for _, s := range skipped {
					got = append(got, string(s.Phase)+":"+s.Class)
				}
				require.Equal(t, c.skipped, strings.Join(got, " "))
			})
		})
	}
}

func TestAValueTooLongForItsColumnCostsItsItem(t *testing.T) {
	t.Parallel()
	e := testengine.New(t, testdb.Postgres(t))
	e.Exec("create table t (id int primary key, name varchar(3))")
	exec := runCSV(t, e, csvJob("", "skip: 1"), []string{"1,a", "2,abcd", "3,c"})
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	require.Equal(t, []int64{1, 3}, e.Ints("select id from t order by id"))
}

// The chunk writes row 1 and waits for row 2, which another transaction holds;
// that transaction then waits for row 1. PostgreSQL makes the chunk the
// victim.
func TestADeadlockOfTwoTransactionsIsTriedAgainAndSucceeds(t *testing.T) {
	t.Parallel()
	at, err := url.Parse(testdb.Postgres(t))
	require.NoError(t, err)
	query := at.Query()
	query.Set("deadlock_timeout", "2s") // the chunk detects the deadlock, the other does not
	at.RawQuery = query.Encode()
	e := testengine.New(t, at.String())
	e.Exec("create table t (id int primary key, name text)")
	e.Exec("insert into t values (1, 'old'), (2, 'old')")
	other, err := e.Database.Begin(t.Context(), tx.Attr{})
	require.NoError(t, err)
	run := func(statement string) error {
		_, err := other.Conn().ExecContext(context.WithoutCancel(t.Context()), statement)
		return err
	}
	require.NoError(t, run("set local deadlock_timeout = '10min'"))
	require.NoError(t, run("update t set name = 'other' where id = 2"))

	var pid int
	require.NoError(t, other.Conn().QueryRowContext(t.Context(), "select pg_backend_pid()").Scan(&pid))

	finished := make(chan error, 1)
	go func() {
		err := waitForLock(t, e.Database, pid)
		if err == nil {
			err = run("update t set name = 'other' where id = 1") // waits until the chunk is rolled back
		}
		if err == nil {
			err = other.Commit()
		}
		finished <- err
	}()
	text := strings.Replace(csvJob("", "retry: {limit: 100, errors: [deadlock], backoff: {initial: 1ms}}"),
		"{table: t}", "{table: {name: t, mode: upsert, key: [id]}}", 1)
	exec := runCSV(t, e, text, []string{"1,new", "2,new", "3,new"})
	require.NoError(t, <-finished)
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	require.Equal(t, []int64{3}, e.Ints("select count(*) from t where name = 'new'"))
	counters := e.Step(exec, "load").Counters
	// The retrying chunk can be faster than the other, and meet it again.
	require.Positive(t, counters.Rollback, "a deadlock")
	require.EqualValues(t, 1, counters.Commit)
	require.EqualValues(t, 3, counters.Write)
}

func waitForLock(t testing.TB, db tx.Database, pid int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
	defer cancel()
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		var waiting bool
		row := db.Conn().QueryRowContext(ctx, "select exists (select from pg_stat_activity where datname = current_database() and $1 = any(pg_blocking_pids(pid)))", pid)
		if err := row.Scan(&waiting); err != nil || waiting {
			return err
		}
		<-tick.C
	}
}

func TestTheListenersOfAStepAreToldOfItsSkips(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, "job.yaml", `
job: watched
parameters: {word: {type: string, default: told}}
flow:
- step: load
  chunk: {reader: {count: {to: 3, item: {n: int}}}, writer: {sink: x}, skip: 1}
  listeners: [watch, watch: "${params.word}"]
`)
		s.refuse = "n=2 "
		exec, err := s.launch(t, nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Len(t, s.uses, 4, "reader, writer and two listeners")
		require.Equal(t, []string{"n=1 ", "n=3 "}, s.rows)
		require.Equal(t, []string{"seen: write 2", "told: write 2"}, s.seen)
	})
}

func TestAChunkHasTheIsolationOfTheFile(t *testing.T) {
	t.Parallel()
	isolated := csvJob("", "skip: 1") + "  transaction: {isolation: repeatable_read, timeout: 30s}\n"
	file, err := jobfile.Parse("job.yaml", []byte(isolated), shipped(t))
	require.NoError(t, err)
	e := testengine.New(t, testdb.Postgres(t))
	_, err = file.Compile(jobfile.Deps{Provider: e.Provider, Registry: shipped(t)})
	require.NoError(t, err)
	lite := testengine.New(t, testdb.SQLite(t))
	_, err = file.Compile(jobfile.Deps{Provider: lite.Provider, Registry: shipped(t)})
	require.ErrorContains(t, err, "job.yaml:11:28: transaction: ")
}

// Rule D8.
func TestABadRowOfAnUpsertIsFoundThoughALaterOneHasItsKey(t *testing.T) {
	t.Parallel()
	lines := []string{"1,a", "2,bad", "2.0,good", "3,c", "2,last"}
	testdb.Each(t, func(t *testing.T, url string) {
		for key, kind := range map[string]string{"int": "int", "numeric(9,1)": "decimal"} {
			for _, mode := range []string{"upsert", "update"} {
				for _, size := range []string{"1", "1000"} {
					t.Run(fmt.Sprint(key, " ", mode, " ", size), func(t *testing.T) {
						e := testengine.New(t, url)
						e.Exec("drop table if exists t")
						e.Exec("create table t (id " + key + " primary key, name text check (name <> 'bad'))")
						if mode == "update" {
							e.Exec("insert into t values (1, 'old'), (2, 'old'), (3, 'old')")
						}
						in := slices.Clone(lines)
						if kind == "int" {
							in[2] = "2,good"
						}
						text := strings.NewReplacer("job: load", fmt.Sprintf("job: %s_%s_%s", kind, mode, size), "size: 1000", "size: "+size, "id: int", "id: "+kind, "{table: t}", "{table: {name: t, mode: "+mode+", key: [id]}}").
							Replace(csvJob("", "skip: {limit: 5, errors: [check]}"))
						exec := runCSV(t, e, text, in)
						require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
						for id, name := range map[int]string{1: "a", 2: "last", 3: "c"} {
							require.Equal(t, []int64{1}, e.Ints(fmt.Sprintf("select count(*) from t where id = %d and name = '%s'", id, name)), "%d", id)
						}
						counters := e.Step(exec, "load").Counters
						require.EqualValues(t, 4, counters.Write)
						require.EqualValues(t, 1, counters.WriteSkip)
					})
				}
			}
		}
	})
}
