// Package process runs a program, or a script, as a process group that does not outlive
// this process (rule L10).
//
// It imports core.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/secret"
)

// DefaultGrace is the default time between SIGTERM and SIGKILL.
const DefaultGrace = 10 * time.Second

// Command is the command to run.
type Command struct {
	// Args are the program and its arguments; without them sh runs Script.
	Args   []string
	Script string
	// Environ nil means this process's without its own variables; Env are further ones.
	Environ []string
	Env     map[string]string
	// Dir "" means this process's.
	Dir string
	// Grace is the time from SIGTERM to SIGKILL; 0 means DefaultGrace.
	Grace              time.Duration
	OutBytes, ErrBytes int
	// Stdout and Stderr also get the outputs; may be nil.
	Stdout, Stderr io.Writer
}

// CheckEnv reports a name, or the name of a value, that no process can have.
func CheckEnv(env map[string]string) (name string, err error) {
	for _, name := range sortedNames(env) {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return name, errors.New("this is not the name of a variable")
		}
		if strings.ContainsRune(env[name], 0) {
			return name, errors.New("the value has a NUL character")
		}
	}
	return "", nil
}

// Result is how a process ended.
type Result struct {
	Code           int
	Stdout, Stderr string
	// Err is nil for exit 0, else an *exec.ExitError, or exec.ErrWaitDelay if a process it left
	// holds its output open.
	Err error
}

// Run runs the process to its end. When ctx ends, its group is asked to end, and killed after the
// grace, or at once if another process may begin the same work (rule L9). err: it did not begin.
func (c Command) Run(ctx context.Context) (r Result, err error) {
	stdout, stderr := &tail{limit: c.OutBytes}, &tail{limit: c.ErrBytes}
	group, err := newGroup()
	if err != nil {
		return r, err
	}
	defer group.close()
	cmd := c.command(ctx, group, both(stdout, c.Stdout), both(stderr, c.Stderr))
	r.Err = group.run(cmd)
	if cmd.Process == nil {
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
		return r, r.Err
	}
	if r.Err != nil {
		if kerr := group.kill(); kerr != nil {
			r.Err = errors.Join(r.Err, fmt.Errorf("kill the processes that it started: %w", kerr))
		}
	}
	r.Code, r.Stdout, r.Stderr = cmd.ProcessState.ExitCode(), stdout.text(), stderr.text()
	return r, nil
}

func (c Command) command(ctx context.Context, group *group, stdout, stderr io.Writer) *exec.Cmd {
	args := c.Args
	if len(args) == 0 {
		args = []string{"sh", "-c", c.Script}
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = stdout, stderr, c.Dir
	if cmd.Env = slices.Clone(c.Environ); c.Environ == nil {
		cmd.Env = (*secret.Vault)(nil).Environ(os.Environ())
	}
	for _, name := range sortedNames(c.Env) {
		cmd.Env = append(cmd.Env, name+"="+c.Env[name])
	}
	cmd.Cancel = func() error {
		if model.IsOwnerGone(context.Cause(ctx)) {
			return errors.Join(group.kill(), cmd.Process.Kill())
		}
		return group.end(cmd.Process)
	}
	cmd.WaitDelay = c.Grace
	if c.Grace == 0 {
		cmd.WaitDelay = DefaultGrace
	}
	return cmd
}

func both(w *tail, also io.Writer) io.Writer {
	if also == nil {
		return w
	}
	return io.MultiWriter(w, also)
}

func sortedNames(env map[string]string) []string {
	names := make([]string, 0, len(env))
	for name := range env {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

type tail struct {
	limit int
	buf   []byte
	cut   bool
}

// Write never fails.
func (w *tail) Write(p []byte) (int, error) {
	w.buf = append(w.buf, p...)
	if over := len(w.buf) - w.limit; over > 0 {
		w.cut = true
		w.buf = append(w.buf[:0], w.buf[over:]...)
	}
	return len(p), nil
}

func (w *tail) text() string {
	text := strings.ToValidUTF8(strings.TrimRight(string(w.buf), "\r\n"), "\uFFFD")
	if w.cut {
		return "…" + strings.TrimLeft(text, "\uFFFD")
	}
	return text
}
