package batchtest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Crash describes a job to be killed everywhere. The function given to [CrashEverywhere] fills it in, for
// every run in every process: it must always do the same and nothing else.
type Crash struct {
	// Job is a job file of the package, or one that Setup writes (Path).
	Job string
	// Go is a job in Go instead, made again in every process.
	Go *batch.Job
	// Params are NAME=VALUE.
	Params  []string
	Options []fx.Option
	// Faults make components fail. Each process counts its own calls.
	Faults []Fault
	// Database makes the URL of an empty database for a run; nil means a SQLite file. It is called only in
	// the test's own process.
	Database func(t testing.TB) string
	// Databases are further ones by name.
	Databases map[string]func(t testing.TB) string
	// Setup prepares files and tables, once per run. Jobs that it runs are not compared.
	Setup func(t *testing.T, e *Env)
	// Check inspects the end of each run additionally.
	Check func(t *testing.T, e *Env)
	// Worker makes each process a worker with two slots, for `remote: true`. Its own commits count too.
	Worker bool
	// Again kills the restarts too, before and after their 1st commit, then the 2nd, up to this one, each
	// time in a new process. 0 kills each run once.
	Again int
	// Every kills only at every nth commit; 0 means each, and with -short every third.
	Every int
	// Ignore names tables and files that need not be the same.
	Ignore []string
	// Timeout bounds each process; 0 means a minute.
	Timeout time.Duration

	dir string
}

// Dir returns the folder of the run, kept over its kills.
func (c *Crash) Dir() string { return c.dir }

// Path returns the path of a file in Dir.
func (c *Crash) Path(name string) string { return filepath.Join(c.dir, filepath.FromSlash(name)) }

// CrashEverywhere runs the job undisturbed once and counts its commits. Then, for each of them, on an empty
// database and folder, the process kills itself with SIGKILL before, or after, the commit, and a new
// process runs the job to its end. The result must equal the undisturbed run's: the rows of all tables
// except the history's own, the files in [Crash.Dir], for each step (or its parts) the counters read,
// filtered, written and skipped, summed over all attempts, and the stored skipped items. No execution may
// look as if it still ran, and the last one is COMPLETED.
//
// The test binary is executed again with this test alone, and ends inside CrashEverywhere. So everything
// before the call in the same test is executed there too, and so is TestMain: see [InCrash].
//
// Each run is a subtest such as "killed/before_commit_3", in parallel, limited by -parallel. Under the race
// detector, a binary without it is built for the runs. A commit is the end of a transaction that may write,
// or a statement outside one; commits on connections that do not come from the tx.Provider (migrations on
// PostgreSQL, other libraries) are not counted. It needs Linux, which reports whether a process lives:
// elsewhere the killed process's lease of minutes would have to end first.
func CrashEverywhere(t *testing.T, describe func(c *Crash)) {
	t.Helper()
	_, file, line, _ := runtime.Caller(1)
	here := fmt.Sprintf("%s:%d", file, line)
	if o, ok := ordersOf(t); ok {
		if o.Site == here {
			o.obey(t, describe)
		}
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("batchtest.CrashEverywhere needs Linux")
	}
	if raced {
		runPlain(t)
		return
	}
	v := &victim{site: here, test: t.Name(), describe: describe}
	if !t.Run("undisturbed", v.undisturbed) {
		return
	}
	t.Logf("%d commits", len(v.commits))
	t.Run("killed", func(t *testing.T) {
		for n := 1; n <= len(v.commits); n += v.every {
			for _, at := range []moment{{Commit: n}, {Commit: n, After: true}} {
				t.Run(at.name(), func(t *testing.T) {
					t.Parallel()
					v.killed(t, at)
				})
			}
		}
	})
}

func (m moment) name() string {
	side := "before"
	if m.After {
		side = "after"
	}
	return fmt.Sprintf("%s commit %d", side, m.Commit)
}

type victim struct {
	site, test string
	describe   func(*Crash)
	commits    []string
	every      int
	want       *state
}

func (v *victim) undisturbed(t *testing.T) {
	r := v.newRun(t)
	done := r.start(moment{})
	if done == nil {
		t.Fatal("batchtest: the undisturbed run was killed")
	}
	if len(done.Unfired) > 0 {
		t.Fatalf("these faults never fired, so the test is not about them:\n%s", strings.Join(done.Unfired, "\n"))
	}
	v.commits, v.want, v.every = done.Commits, r.end(nil), max(r.crash.Every, 1)
	if r.crash.Every == 0 && testing.Short() {
		v.every = 3
	}
}

func (v *victim) killed(t *testing.T, at moment) {
	if before := v.commits[at.Commit-1]; before != "" {
		t.Logf("commit %d comes after this: %s", at.Commit, before)
	}
	r := v.newRun(t)
	moments := []moment{at}
	for n := 1; n <= r.crash.Again; n++ {
		moments = append(moments, moment{Commit: n}, moment{Commit: n, After: true})
	}
	for i, m := range append(moments, moment{}) {
		done := r.start(m)
		if done == nil {
			continue
		}
		if i == 0 {
			t.Logf("it was not killed: this time it made only %d commits", len(done.Commits))
		}
		break
	}
	r.end(v.want)
}

type crashRun struct {
	t      *testing.T
	v      *victim
	crash  *Crash
	urls   map[string]string
	runs   int
	before core.JobExecutionID
}

func (v *victim) newRun(t *testing.T) *crashRun {
	t.Helper()
	r := &crashRun{t: t, v: v, crash: &Crash{dir: t.TempDir()}, urls: map[string]string{}}
	v.describe(r.crash)
	if (r.crash.Job == "") == (r.crash.Go == nil) {
		t.Fatal("batchtest: the crash test has no job, or two: set Job, the path of a job file, or Go, a job in Go")
	}
	open := r.crash.Database
	if open == nil {
		open = sqliteURL
	}
	r.urls[tx.Default] = open(t)
	for name, open := range r.crash.Databases {
		r.urls[name] = open(t)
	}
	r.with(func(e *Env) {
		if r.crash.Setup != nil {
			r.crash.Setup(r.t, e)
		}
		r.before = e.newest()
	})
	return r
}

// with opens the application in this process, while no other has it.
func (r *crashRun) with(f func(e *Env)) {
	r.t.Helper()
	e := open(r.t, config{dir: r.crash.dir, urls: r.urls, opts: r.crash.options(), faults: NewFaults()})
	defer e.close()
	f(e)
}

// nil is for the undisturbed run.
func (r *crashRun) end(want *state) (got *state) {
	r.t.Helper()
	r.with(func(e *Env) {
		var err error
		if got, err = newState(e, r.crash.Ignore, r.before); err != nil {
			r.t.Fatalf("batchtest: %v", err)
		}
		if want == nil {
			want = got
		}
		got.compare(r.t, want)
		if r.crash.Check != nil {
			r.crash.Check(r.t, e)
		}
	})
	return got
}

func (e *Env) newest() core.JobExecutionID {
	e.t.Helper()
	list, err := e.Repository().Executions(e.t.Context(), ports.ExecutionFilter{Limit: 1})
	if err != nil {
		e.t.Fatalf("batchtest: %v", err)
	}
	if len(list) == 0 {
		return 0
	}
	return list[0].ID
}

func (c *Crash) options() []fx.Option {
	if c.Go == nil {
		return c.Options
	}
	return append(c.Options[:len(c.Options):len(c.Options)], batch.Jobs(c.Go))
}

func (c *Crash) request(params map[string]string) batch.RunRequest {
	if c.Go == nil {
		return batch.RunRequest{File: c.Job, Params: params}
	}
	return batch.RunRequest{Name: c.Go.Name(), Params: params}
}

func (c *Crash) timeout() time.Duration {
	if c.Timeout == 0 {
		return time.Minute
	}
	return c.Timeout
}

// InCrash reports whether [CrashEverywhere] started this process and may kill it. Resources that a TestMain
// starts for the whole test (a server, say) already exist, and would be left over after each kill.
func InCrash() bool { return os.Getenv(variable) != "" }
