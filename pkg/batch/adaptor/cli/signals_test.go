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
		for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
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
