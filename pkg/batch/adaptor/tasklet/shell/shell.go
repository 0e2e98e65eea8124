// Package shell is the tasklet `shell`: it runs a command, or a script, as a
// process of its own.
//
// It imports core, core/registry and the standard library.
package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Config configures the tasklet.
type Config struct {
	Command []string `key:"command" main:"true" path:"program" doc:"The program and its arguments, each one as it is: no shell reads them. A program with a slash is relative to the job file, one without is looked for in PATH."`
	// Script is literal: a value spliced into it would be read by the shell.
	Script string            `key:"script" literal:"true" doc:"A text for sh, instead of a command. A ${...} in it is the shell's own: values of the job reach it through env only."`
	Env    map[string]string `key:"env" doc:"Variables for the process, besides those of this one."`
	Dir    string            `key:"dir" path:"true" default:"." doc:"The folder to run in, relative to the job file."`
	Grace  time.Duration     `key:"grace" default:"10s" doc:"The time between SIGTERM and SIGKILL when the step is stopped or times out."`
}

// defaultGrace is the time between SIGTERM and SIGKILL where none is given.
const defaultGrace = 10 * time.Second

const (
	// outBytes is how much of the end of stdout becomes the result `stdout`.
	outBytes = 8 << 10
	// errBytes is how much of the end of stderr a failure shows.
	errBytes = 2 << 10
)

// Validate checks that there is one thing to run.
func (c *Config) Validate() error {
	switch {
	case len(c.Command) == 0 && c.Script == "":
		return &registry.ConfigError{Key: "command", Err: errors.New("there is neither a command nor a script")}
	case len(c.Command) > 0 && c.Script != "":
		return &registry.ConfigError{Key: "script", Err: errors.New("there is a command as well: make it two steps")}
	case c.Grace < 0:
		return &registry.ConfigError{Key: "grace", Err: fmt.Errorf("%s is less than 0", c.Grace)}
	}
	for name, value := range c.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return &registry.ConfigError{Key: "env." + name, Err: errors.New("this is no name of a variable")}
		}
		if strings.ContainsRune(value, 0) {
			return &registry.ConfigError{Key: "env." + name, Err: errors.New("the value has a NUL character")}
		}
	}
	return nil
}

// Components describes the tasklet.
func Components() []registry.Component {
	return []registry.Component{{
		Kind: registry.KindTasklet, Name: "shell", Config: reflect.TypeFor[Config](), NoTransaction: true,
		Summary: "runs a command or a script",
		Doc: `The step completes if the process ends with 0. Otherwise it fails, and its message has the
end of stderr. The results are ` + "`exit_code` and `stdout`" + `, the last 8 KB of it without the final
line break.

A stop or a timeout sends SIGTERM to the process and all it started, and SIGKILL when the
grace is over. Where the lease of the execution cannot be renewed it is SIGKILL at once: another
process may soon run the step (rule L9). They do not outlive this process either, however it ends: a guard, which is a
small sh, waits for that and kills them (on Unix; a process that makes a session of its own
escapes). What is started again after a crash runs again from its start: what it does must
bear that. It must not leave processes behind that hold its output open.`,
		Example: "tasklet:\n  shell:\n    command: [./work.sh, \"${params.date}\"]\n    env: {LEVEL: \"3\"}",
		New:     func(_ context.Context, cfg any, _ registry.BuildContext) (any, error) { return New(*cfg.(*Config)) },
	}}
}

// tasklet runs a process: a core.Stoppable.
type tasklet struct {
	config Config
	stop   chan struct{}
	once   sync.Once // closes stop
}

var _ core.Stoppable = (*tasklet)(nil)

// New checks config.
func New(config Config) (core.Tasklet, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if config.Grace == 0 {
		config.Grace = defaultGrace
	}
	return &tasklet{config: config, stop: make(chan struct{})}, nil
}

// StopRequested asks the process to end, as the end of its context does.
func (t *tasklet) StopRequested(context.Context) error {
	t.once.Do(func() { close(t.stop) })
	return nil
}

// stoppable returns a context that ends with core.ErrStopped when a stop is asked
// for.
func (t *tasklet) stoppable(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-t.stop:
			cancel(core.ErrStopped)
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// ExitError is a process that ended with another code than 0, or by a signal.
type ExitError struct {
	// Code is the exit code; -1 if a signal ended it.
	Code int
	// Stderr is the end of what it wrote there.
	Stderr string
	// Err is the *exec.ExitError.
	Err error
}

// Error shows the end of stderr.
func (e *ExitError) Error() string {
	text := "shell: " + e.Err.Error()
	if e.Stderr != "" {
		text += ": " + e.Stderr
	}
	return text
}

// Unwrap returns the *exec.ExitError.
func (e *ExitError) Unwrap() error { return e.Err }

// Execute runs the process to its end. When ctx ends before, the error is ctx's
// cause, with what the process had to say; when a stop was asked for, it is
// core.ErrStopped.
func (t *tasklet) Execute(ctx context.Context, c *core.StepContribution) error {
	ctx, cancel := t.stoppable(ctx)
	defer cancel(nil)
	stdout, stderr := &tail{limit: outBytes}, &tail{limit: errBytes}
	group, err := newGroup()
	if err != nil {
		return fmt.Errorf("shell: %w", err)
	}
	defer group.close()
	cmd := t.command(ctx, group, stdout, stderr)
	err = group.run(cmd)
	if cmd.Process == nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("shell: %w", err)
	}
	if err != nil {
		// What the process had started, and left behind, ends with it.
		if kerr := group.kill(); kerr != nil {
			err = errors.Join(err, fmt.Errorf("kill what it had started: %w", kerr))
		}
	}
	if c.Out == nil {
		c.Out = map[string]any{}
	}
	c.Out["exit_code"] = int64(cmd.ProcessState.ExitCode())
	c.Out["stdout"] = stdout.text()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("shell: %w (the process ended with: %w%s)", context.Cause(ctx), err, after(stderr.text()))
	case errors.Is(err, exec.ErrWaitDelay):
		return fmt.Errorf("shell: the process ended and left another one behind that holds its output open: %w", err)
	}
	return &ExitError{Code: cmd.ProcessState.ExitCode(), Stderr: stderr.text(), Err: err}
}

func after(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// command prepares the process; when ctx ends, so does its group.
func (t *tasklet) command(ctx context.Context, group *group, stdout, stderr io.Writer) *exec.Cmd {
	args := t.config.Command
	if len(args) == 0 {
		args = []string{"sh", "-c", t.config.Script}
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = stdout, stderr, t.config.Dir
	cmd.Env = os.Environ()
	for _, name := range sortedNames(t.config.Env) {
		cmd.Env = append(cmd.Env, name+"="+t.config.Env[name])
	}
	cmd.Cancel = func() error {
		if core.IsOwnerGone(context.Cause(ctx)) { // another process may begin the same work (rule L9)
			return errors.Join(group.kill(), cmd.Process.Kill())
		}
		return group.end(cmd.Process)
	}
	cmd.WaitDelay = t.config.Grace
	return cmd
}

func sortedNames(env map[string]string) []string {
	names := make([]string, 0, len(env))
	for name := range env {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// tail keeps the end of what is written to it.
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

// text is valid UTF-8, without the last line break; … stands for what was cut.
func (w *tail) text() string {
	text := strings.ToValidUTF8(strings.TrimRight(string(w.buf), "\r\n"), "\uFFFD")
	if w.cut {
		return "…" + strings.TrimLeft(text, "\uFFFD")
	}
	return text
}
