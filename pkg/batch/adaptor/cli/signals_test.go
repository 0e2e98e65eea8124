//go:build unix

package cli_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/cli"
)

// child is the command in a process of its own.
type child struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Reader
	seen  strings.Builder // of standard error
	out   bytes.Buffer
}

func (s *scene) start(args ...string) *child {
	s.t.Helper()
	self, err := os.Executable()
	require.NoError(s.t, err)
	c := &child{t: s.t, cmd: exec.Command(self, s.words(args)...)}
	c.cmd.Env = append(os.Environ(), asCommand+"=1")
	c.cmd.Dir = s.dir
	c.cmd.Stdout = &c.out
	pipe, err := c.cmd.StderrPipe()
	require.NoError(s.t, err)
	c.lines = bufio.NewReader(pipe)
	require.NoError(s.t, c.cmd.Start())
	s.t.Cleanup(func() {
		if c.cmd.ProcessState == nil {
			_ = c.cmd.Process.Kill() //nolint:errcheck // it may end at this very moment
			_ = c.cmd.Wait()         //nolint:errcheck // its end is all we want
		}
	})
	return c
}

// until reads standard error up to a line with the text.
func (c *child) until(text string) {
	c.t.Helper()
	for {
		line, err := c.lines.ReadString('\n')
		c.seen.WriteString(line)
		require.NoError(c.t, err, "waiting for %q in:\n%s", text, c.seen.String())
		if strings.Contains(line, text) {
			return
		}
	}
}

func (c *child) signal(sig os.Signal) {
	c.t.Helper()
	require.NoError(c.t, c.cmd.Process.Signal(sig))
}

// end waits for the exit and returns the exit code and all of standard error.
func (c *child) end() (int, string) {
	c.t.Helper()
	rest, err := io.ReadAll(c.lines)
	require.NoError(c.t, err)
	c.seen.Write(rest)
	err = c.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(c.t, err)
	}
	return c.cmd.ProcessState.ExitCode(), c.seen.String()
}

func TestASignalFinishesTheChunkAndStops(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
			s := newScene(t, url, map[string]string{"e.yaml": "job: e" + strings.ToLower(sig.String()[:4]) + "\nflow:\n- step: forever\n  chunk:\n    size: 10\n    reader: {endless: {item: number}}\n    writer: {table: {name: numbers, create: true}}\n"})
			c := s.start("run", "e.yaml", "--auto-migrate", "true", "--debug")
			c.until("step started")
			c.signal(sig)
			code, errs := c.end()
			require.Equal(t, cli.ExitStopped, code, errs)
			require.Contains(t, errs, ": stopping once the chunk in hand is committed; a second signal cancels at once")
			require.Contains(t, errs, "stopped on request")
			require.Contains(t, errs, "surfin restart ")
			require.Contains(t, c.out.String(), "STOPPED")
			r := s.run("sql", "select (select count(*) from numbers) - (select sum(write_count) from surfin_step_execution) as lost")
			require.Contains(t, r.out, "lost\n─\n 0\n", r.err)
			r = s.run("list", "--status", "STARTING,STARTED,STOPPING", "--format", "json")
			require.Equal(t, "[]\n", r.out)
		}
	})
}

func TestASecondSignalCancelsAndTheStatusIsStillWritten(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"h.yaml": "job: h\nflow:\n- {step: wait, tasklet: hang}\n"})
	c := s.start("run", "h.yaml")
	c.until("step started")
	c.signal(os.Interrupt)
	c.until("a second signal cancels at once")
	c.signal(os.Interrupt)
	code, errs := c.end()
	require.Equal(t, cli.ExitStopped, code, errs)
	require.Contains(t, errs, "again: cancelling")
	require.Contains(t, s.run("show", "1").out, "job h, execution 1: STOPPED")
}

func TestARunningInstanceIsRefusedWithItsOwner(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"h.yaml": "job: h\nflow:\n- {step: wait, tasklet: hang}\n"})
	c := s.start("run", "h.yaml")
	c.until("step started")
	for _, args := range [][]string{{"run", "h.yaml"}, {"run", "h.yaml", "--again"}, {"restart", "1", "--file", "h.yaml"}} {
		r := s.run(args...)
		require.Equal(t, cli.ExitRefused, r.code, r.err)
		require.Contains(t, r.err, "surfin: job h is already running: execution 1, owner ")
		require.Contains(t, r.err, " what it does: surfin show 1 --database-url URL\n stop it: surfin stop 1 --wait 5m --database-url URL\n")
	}
	require.Contains(t, s.run("show", "1").out, "owner process ")
	c.signal(syscall.SIGTERM)
	c.until("a second signal cancels at once")
	c.signal(syscall.SIGTERM)
	code, errs := c.end()
	require.Equal(t, cli.ExitStopped, code, errs)
}

func TestAJobOutlivesThePipesOfItsLog(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"j.yaml": `job: j
flow:
- {step: pause, tasklet: {shell: {script: "read -r line < go"}}}
- {step: pipes, tasklet: {shell: {script: "trap '' PIPE; trap - PIPE; yes | head -n 1; exit 0"}}}
`})
	require.NoError(t, syscall.Mkfifo(s.path("go"), 0o600))
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, s.words([]string{"run", "j.yaml", "--debug"})...)
	cmd.Env, cmd.Dir = append(os.Environ(), asCommand+"=1"), s.dir
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	errs, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.NoError(t, errors.Join(out.Close(), errs.Close()))
	require.NoError(t, os.WriteFile(s.path("go"), []byte("on\n"), 0o600))
	require.NoError(t, cmd.Wait(), "the exit code is that of the job")
	require.Contains(t, s.run("show", "1").out, "job j, execution 1: COMPLETED")
}

func TestAJobFileThatIsAPipeWithoutAnEndCanBeInterrupted(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), nil)
	require.NoError(t, syscall.Mkfifo(s.path("j.yaml"), 0o600))
	for _, written := range []string{"", "job: j\n"} {
		c := s.start("run", "j.yaml")
		if written != "" { // its open returns, and its read does not
			f, err := os.OpenFile(s.path("j.yaml"), os.O_WRONLY, 0)
			require.NoError(t, err)
			_, err = f.WriteString(written)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, f.Close()) })
		}
		c.signal(os.Interrupt)
		_, errs := c.end()
		require.Equal(t, syscall.SIGINT, c.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(), errs)
	}
}

func TestNoCommandPrintsAPasswordThatItWasGiven(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"surfin.yaml": "databases:\n  other: postgres://me:hunter%2@h/x\n"})
	for _, args := range [][]string{
		{"list", "--config", "surfin.yaml"},
		{"list", "--database-url", "postgres://me:hunter%2@h/x"},
		{"list", "--database-url", "postgres://me:hunter2@h/x?password=hunter2&sslmode=none"},
		{"list", "postgres://me:hunter2@h/x"},
		{"run", "j.yaml", "postgres://me:hunter2@h/x"},
		{"help", "settings"},
	} {
		r := s.run(args...)
		require.NotContains(t, r.out+r.err, "hunter", args)
	}
}

func TestFilesAreTheOwnersAlone(t *testing.T) {
	t.Parallel()
	url := testdb.SQLite(t)
	s := newScene(t, url, map[string]string{"open.yaml": "files: {mode: 0644}\n"})
	s.write("j.yaml", strings.NewReplacer("DB", strings.TrimPrefix(url, "sqlite:"), "MODES", s.path("modes")).Replace(
		"job: j\nflow:\n- {step: look, tasklet: {shell: {script: \"ls -l DB* | cut -c1-10 | sort -u > MODES\"}}}\n"))
	r := s.run("run", "j.yaml")
	require.Equal(t, 0, r.code, r.err)
	modes, err := os.ReadFile(s.path("modes"))
	require.NoError(t, err)
	require.Equal(t, "-rw-------\n", string(modes), "of the database, its -wal and its -shm")

	other := s.path("open.db")
	r = s.run("run", "j.yaml", "--config", "open.yaml", "--database-url", "sqlite:"+other)
	require.Equal(t, 0, r.code, r.err)
	info, err := os.Stat(other)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o644), info.Mode().Perm())
}
