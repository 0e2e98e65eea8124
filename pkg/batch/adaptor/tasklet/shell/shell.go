// Package shell is the tasklet `shell`: it runs a command or a script in a separate process.
//
// It imports core, core/registry, internal/process, internal/runlog and internal/secret.
package shell

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"reflect"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/process"
	"github.com/surfin-batch/surfin/internal/runlog"
	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// config configures the tasklet.
type config struct {
	Command []string `key:"command" main:"true" path:"program" doc:"The program and its arguments, passed as they are, without a shell. A program with a slash is relative to the job file, one without is searched in PATH."`
	// Script is literal: the shell would interpret a value spliced into it.
	Script string            `key:"script" literal:"true" doc:"A script for sh, instead of a command. A ${...} in it belongs to the shell: pass values of the job through env."`
	Env    map[string]string `key:"env" doc:"Additional variables for the process. It gets the environment without SURFIN_*, DATABASE_URL and variables that contain a secret known to surfin: pass those that it needs here."`
	Dir    string            `key:"dir" path:"true" default:"." doc:"The folder to run in, relative to the job file."`
	Grace  time.Duration     `key:"grace" default:"10s" doc:"The time between SIGTERM and SIGKILL when the step is stopped or times out."`
}

const (
	outBytes = 8 << 10
	errBytes = 2 << 10
)

// Validate checks that there is one thing to run.
func (c *config) Validate() error {
	switch {
	case len(c.Command) == 0 && c.Script == "":
		return &registry.ConfigError{Key: "command", Err: errors.New("the command is missing: set command or script")}
	case len(c.Command) > 0 && c.Script != "":
		return &registry.ConfigError{Key: "script", Err: errors.New("a command is set, too: use two steps")}
	case c.Grace < 0:
		return &registry.ConfigError{Key: "grace", Err: fmt.Errorf("%s is less than 0", c.Grace)}
	}
	for key, texts := range map[string][]string{"script": {c.Script}, "command": c.Command} {
		for _, text := range texts {
			if names := secret.NamedIn(text, c.Env); len(names) > 0 {
				return &registry.ConfigError{Key: key, Err: fmt.Errorf("it uses the variable %s, which processes of a job do not get, because it configures surfin or is secret", names[0]),
					Hint: fmt.Sprintf("if it needs the value, pass it: env: {%[1]s: \"${env.%[1]s}\"}", names[0])}
			}
		}
	}
	if name, err := process.CheckEnv(c.Env); err != nil {
		return &registry.ConfigError{Key: "env." + name, Err: err}
	}
	return nil
}

// Components describes the tasklet.
func Components() []registry.Component {
	return []registry.Component{{
		Kind: registry.KindTasklet, Name: "shell", Config: reflect.TypeFor[config](), NoTransaction: true,
		Summary: "runs a command or a script",
		Doc: `The step completes if the process ends with 0. Otherwise it fails, and its message has the
end of stderr. The results are ` + "`exit_code` and `stdout`" + `, its last 8 KB without the final
line break. The log of the execution has the first and the last 256 KB of both outputs
(` + "`surfin log`" + `).

A stop or a timeout sends SIGTERM to the process and all it started, and SIGKILL when the
grace period is over. If the lease of the execution cannot be renewed, SIGKILL is sent at once: another
process may soon run the step (rule L9). They do not outlive this process either, however it ends: a guard, a
small sh, waits for its end and kills them (on Unix; a process that starts its own session
escapes). After a crash the command runs again from its start, so running it twice must be
safe. It must not leave processes running that hold its output open.`,
		Example: `job: work
parameters: {date: {type: date}}
flow:
- step: work
  tasklet:
    shell:
      command: [./work.sh, "${params.date}"]
      env: {LEVEL: "3"}`,
		New: func(_ context.Context, cfg any, b registry.BuildContext) (any, error) {
			made, err := newTasklet(*cfg.(*config))
			if t, is := made.(*tasklet); is && b.Environ != nil {
				t.environ = b.Environ()
			}
			return made, err
		},
	}}
}

type tasklet struct {
	config config
	// nil means this process's, without the variables that configure it
	environ []string
	stop    chan struct{}
	once    sync.Once
}

var _ core.Stoppable = (*tasklet)(nil)

// newTasklet checks config.
func newTasklet(cfg config) (core.Tasklet, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &tasklet{config: cfg, stop: make(chan struct{})}, nil
}

// StopRequested ends the process, as the end of its context does.
func (t *tasklet) StopRequested(context.Context) error {
	t.once.Do(func() { close(t.stop) })
	return nil
}

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

// exitError reports a process that ended with another code than 0, or by a signal.
type exitError struct {
	// Code is -1 after a signal.
	Code   int
	Stderr string
	Err    error
}

// Error shows the end of stderr.
func (e *exitError) Error() string {
	text := "shell: " + e.Err.Error()
	if e.Stderr != "" {
		text += ": " + e.Stderr
	}
	return text
}

// Unwrap returns the *exec.exitError.
func (e *exitError) Unwrap() error { return e.Err }

// Execute runs the process to its end. If ctx ends before, the error is ctx's cause, with the output; after
// a request to stop it is core.ErrStopped.
func (t *tasklet) Execute(ctx context.Context, c *core.StepContribution) error {
	ctx, cancel := t.stoppable(ctx)
	defer cancel(nil)
	stdout, stderr := runlog.NewOutput(ctx, "stdout"), runlog.NewOutput(ctx, "stderr")
	r, err := process.Command{
		Args: t.config.Command, Script: t.config.Script, Environ: t.environ, Env: t.config.Env, Dir: t.config.Dir, Grace: t.config.Grace,
		OutBytes: outBytes, ErrBytes: errBytes, Stdout: stdout, Stderr: stderr,
	}.Run(ctx)
	err = errors.Join(err, stdout.Close(), stderr.Close())
	if err != nil {
		return fmt.Errorf("shell: %w", err)
	}
	if c.Out == nil {
		c.Out = map[string]any{}
	}
	c.Out["exit_code"] = int64(r.Code)
	c.Out["stdout"] = r.Stdout
	switch {
	case r.Err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("shell: %w (the process ended with: %w%s)", context.Cause(ctx), r.Err, after(r.Stderr))
	case errors.Is(r.Err, exec.ErrWaitDelay):
		return fmt.Errorf("shell: the process ended, but a process that it started holds its output open: %w", r.Err)
	}
	return &exitError{Code: r.Code, Stderr: r.Stderr, Err: r.Err}
}

func after(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
