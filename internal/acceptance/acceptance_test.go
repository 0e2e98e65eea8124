//test:plain

// Package acceptance tests the surfin command from outside: real processes on
// real databases, killed, stopped and raced.
//
// It imports the kits for tests; nothing imports it.
package acceptance

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testtree"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/repository"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

var surfin string //nolint:gochecknoglobals // set once by TestMain

func TestMain(m *testing.M) {
	if os.Getenv(typedApp) != "" {
		runTypedApp()
	}
	if os.Getenv(effectApp) != "" {
		runEffectApp()
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "surfin-acceptance-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a leftover in the temporary folder is not a failure
	surfin = filepath.Join(dir, "surfin")
	if out, err := build(surfin, "cmd/surfin"); err != nil {
		fmt.Fprintln(os.Stderr, "build the command:", err, out)
		return 1
	}
	return testdb.Main(m)
}

func build(to, folder string) (string, error) {
	out, err := testtree.Command(context.Background(), "go", "build", "-ldflags=-s -w", "-o", to, "github.com/surfin-batch/surfin/"+folder).CombinedOutput()
	return string(out), err
}

func isSoak() bool { return os.Getenv("SURFIN_SOAK") != "" }

// inTurn runs f on one database, PostgreSQL if n is even, and the next case or
// test on the other; a soak has both.
func inTurn(t *testing.T, n int, f func(t *testing.T, url string)) {
	t.Helper()
	switch {
	case isSoak():
		testdb.Each(t, f)
	case n%2 == 0:
		t.Run("postgres", func(t *testing.T) { f(t, testdb.Postgres(t)) })
	default:
		t.Run("sqlite", func(t *testing.T) { f(t, testdb.SQLite(t)) })
	}
}

type scene struct {
	t      *testing.T
	dir    string
	url    string
	env    []string
	params []string
	// program is the program that start runs.
	program string
}

func newScene(t *testing.T, url string, files map[string]string) *scene {
	t.Helper()
	s := &scene{t: t, dir: t.TempDir(), url: url}
	for name, text := range files {
		path := filepath.Join(s.dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return s
}

type process struct {
	*exec.Cmd
	out  output
	done chan struct{}
	code int
}

type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (s *scene) start(args ...string) *process {
	s.t.Helper()
	return s.startProgram(cmp.Or(s.program, surfin), args...)
}

func (s *scene) startProgram(program string, args ...string) *process {
	s.t.Helper()
	p := &process{Cmd: testtree.Command(context.Background(), program, args...), done: make(chan struct{})}
	p.Dir = s.dir
	p.Env = append(ofTheMachine(os.Environ()), append([]string{"DATABASE_URL=" + s.url, "SURFIN_AUTO_MIGRATE=true"}, s.env...)...)
	p.Stdout, p.Stderr = &p.out, &p.out
	require.NoError(s.t, p.Start())
	go func() {
		defer close(p.done)
		var exit *exec.ExitError
		if err := p.Wait(); errors.As(err, &exit) {
			p.code = exit.ExitCode() // -1 when killed
		} else if err != nil {
			p.code = -2
		}
	}()
	s.t.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		<-p.done
	})
	return p
}

func (p *process) signal(sig syscall.Signal) {
	select {
	case <-p.done:
	default:
		_ = p.Process.Signal(sig) //nolint:errcheck // it may end at this very moment
	}
}

func (p *process) wait() (int, string) {
	<-p.done
	return p.code, p.out.String()
}

// isComplete reports whether a run ended well, or was refused because the previous run was killed after its
// last commit.
func isComplete(code int, out string) bool {
	return code == 0 || code == 4 && strings.Contains(out, "already complete")
}

func (p *process) await(text string) {
	for !strings.Contains(p.out.String(), text) && !p.waitFor(5*time.Millisecond) {
	}
}

// waitFor waits for the end, at most d; false if it still runs.
func (p *process) waitFor(d time.Duration) bool {
	select {
	case <-p.done:
		return true
	case <-time.After(d):
		return false
	}
}

func (s *scene) run(args ...string) (int, string) {
	s.t.Helper()
	return s.start(args...).wait()
}

// open opens the scene's database as a library user would.
func (s *scene) open() (tx.Database, *repository.Repository) {
	s.t.Helper()
	provider, err := gormdb.Open(context.Background(), map[string]gormdb.Config{tx.Default: {URL: s.url}})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { require.NoError(s.t, provider.Close()) })
	db, err := provider.Database(tx.Default)
	require.NoError(s.t, err)
	return db, repository.New(db, repository.Options{})
}

// ofTheMachine leaves out variables for the tests, such as SURFIN_SOAK: a process reports unknown variables
// of that form.
func ofTheMachine(environ []string) []string {
	return slices.DeleteFunc(environ, func(entry string) bool {
		return strings.HasPrefix(entry, "SURFIN_") && !strings.HasPrefix(entry, "SURFIN_TEST_")
	})
}

// inFewChunks enlarges the chunks of ten items for the rest of the work: a test of a working process need not
// commit the rest ten by ten.
func (s *scene) inFewChunks(files ...string) {
	s.t.Helper()
	for _, file := range files {
		text := s.read(file)
		require.Contains(s.t, text, "size: 10\n")
		s.write(file, strings.ReplaceAll(text, "size: 10\n", fmt.Sprintf("size: %d\n", fewChunks)))
	}
}

const fewChunks = 5000

func (s *scene) ints(db tx.Database, query string, n int) []int64 {
	s.t.Helper()
	values := make([]int64, n)
	into := make([]any, n)
	for i := range values {
		into[i] = &values[i]
	}
	require.NoError(s.t, db.Conn().QueryRowContext(context.Background(), query).Scan(into...))
	return values
}

func (s *scene) totals(r *repository.Repository, step, parameter string, value any) (total core.Counters, attempts int) {
	s.t.Helper()
	ctx := context.Background()
	executions, err := r.Executions(ctx, ports.ExecutionFilter{Limit: 1000})
	require.NoError(s.t, err)
	for _, e := range executions {
		if p, _ := e.Params.Get(parameter); p.Value != value {
			continue
		}
		steps, err := r.Steps(ctx, e.ID)
		require.NoError(s.t, err)
		for _, se := range steps {
			if se.Name == step {
				total = total.Add(se.Counters)
				attempts++
			}
		}
	}
	return total, attempts
}
