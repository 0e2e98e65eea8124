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

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/testdb"
)

type child struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Reader
	errs  io.Closer       // the end of standard error that we read
	seen  strings.Builder // of standard error
	out   bytes.Buffer
}

func (s *scene) start(args ...string) *child {
	s.t.Helper()
	c := &child{t: s.t, cmd: exec.Command(os.Args[0], s.words(args)...)}
	c.cmd.Env = append(os.Environ(), asCommand+"=1")
	c.cmd.Dir = s.dir
	c.cmd.Stdout = &c.out
	pipe, err := c.cmd.StderrPipe()
	require.NoError(s.t, err)
	c.lines, c.errs = bufio.NewReader(pipe), pipe
	require.NoError(s.t, c.cmd.Start())
	s.t.Cleanup(func() {
		if c.cmd.ProcessState == nil {
			_ = c.cmd.Process.Kill() //nolint:errcheck // it may end at this very moment
			_ = c.cmd.Wait()         //nolint:errcheck // its end is all we want
		}
	})
	return c
}

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
			s := newScene(t, url, map[string]string{"e.yaml": "job: e" + strings.ToLower(sig.String()[:4]) + "\nflow:\n- step: forever\n  chunk:\n    size: 10\n    reader: {endless: {item: number}}\n    writer: {table: numbers}\n"})
			s.run("sql", "create table if not exists numbers (n bigint)", "--write") // the stop may come before any chunk
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
		require.Contains(t, r.err, " its state: surfin show 1 --database-url URL\n stop it: surfin stop 1 --wait 5m --database-url URL\n")
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
	s := newScene(t, testdb.SQLite(t), map[string]string{"h.yaml": "job: h\nflow:\n- {step: wait, tasklet: hang}\n"})
	c := s.start("run", "h.yaml", "--debug")
	c.until("step started")
	require.NoError(t, c.errs.Close()) // the log has no reader any more
	c.signal(syscall.SIGHUP)
	c.signal(syscall.SIGTERM)
	err := c.cmd.Wait()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, cli.ExitStopped, exit.ExitCode(), "not a death by SIGPIPE")
	require.Contains(t, s.run("show", "1").out, "job h, execution 1: STOPPED")
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

func TestAnSQLiteFileIsTheOwnersAlone(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), map[string]string{"open.yaml": "files: {mode: 0644}\n"})
	for name, mode := range map[string]os.FileMode{"a.db": 0o600, "b.db": 0o644} {
		args := []string{"migrate", "--database-url", "sqlite:" + s.path(name)}
		if mode != 0o600 {
			args = append(args, "--config", "open.yaml")
		}
		r := s.run(args...)
		require.Equal(t, 0, r.code, r.err)
		info, err := os.Stat(s.path(name))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm())
	}
}
