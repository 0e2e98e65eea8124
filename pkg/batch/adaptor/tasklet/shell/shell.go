// Package shell is the tasklet `shell`: it runs a command or a script in a separate process.
//
// It imports core, core/registry, internal/process and internal/secret.
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
	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Config configures the tasklet.
type Config struct {
	Command []string `key:"command" main:"true" path:"program" doc:"The program and its arguments, each one as it is: no shell reads them. A program with a slash is relative to the job file, one without is looked for in PATH."`
	// Script is literal: the shell would interpret a value spliced into it.
	Script string            `key:"script" literal:"true" doc:"A text for sh, instead of a command. A ${...} in it is the shell's own: values of the job reach it through env only."`
	Env    map[string]string `key:"env" doc:"Further variables for the process. It gets the environment without SURFIN_*, DATABASE_URL and variables that hold a secret that surfin knows: what it needs of them is given here."`
	Dir    string            `key:"dir" path:"true" default:"." doc:"The folder to run in, relative to the job file."`
	Grace  time.Duration     `key:"grace" default:"10s" doc:"The time between SIGTERM and SIGKILL when the step is stopped or times out."`
}

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
	for key, texts := range map[string][]string{"script": {c.Script}, "command": c.Command} {
		for _, text := range texts {
			if names := secret.NamedIn(text, c.Env); len(names) > 0 {
				return &registry.ConfigError{Key: key, Err: fmt.Errorf("it names the variable %s, which processes of a job do not get: it configures surfin, or is secret", names[0]),
					Hint: fmt.Sprintf("if it needs the value, give it: env: {%[1]s: \"${env.%[1]s}\"}", names[0])}
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
		Example: `job: work
parameters: {date: {type: date}}
flow:
- step: work
  tasklet:
    shell:
      command: [./work.sh, "${params.date}"]
      env: {LEVEL: "3"}`,
		New: func(_ context.Context, cfg any, b registry.BuildContext) (any, error) {
			made, err := New(*cfg.(*Config))
			if t, is := made.(*tasklet); is && b.Environ != nil {
				t.environ = b.Environ()
			}
			return made, err
		},
	}}
}

// tasklet runs a process: a core.Stoppable.
type tasklet struct {
	config Config
	// environ is the environment of the process; nil means this process's, without the variables that
	// configure it.
	environ []string
	stop    chan struct{}
	once    sync.Once // closes stop
}

var _ core.Stoppable = (*tasklet)(nil)

// New checks config.
func New(config Config) (core.Tasklet, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	return &tasklet{config: config, stop: make(chan struct{})}, nil
}

// StopRequested asks the process to end, as the end of its context does.
func (t *tasklet) StopRequested(context.Context) error {
	t.once.Do(func() { close(t.stop) })
	return nil
}

// stoppable returns a context that ends with core.ErrStopped when a stop is requested.
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

// ExitError reports a process that ended with another code than 0, or by a signal.
type ExitError struct {
	// Code is the exit code; -1 if a signal ended it.
	Code int
	// Stderr is the end of its standard error.
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

// Execute runs the process to its end. If ctx ends before, the error is ctx's cause, with the output of the
// process; if a stop was requested, it is core.ErrStopped.
func (t *tasklet) Execute(ctx context.Context, c *core.StepContribution) error {
	ctx, cancel := t.stoppable(ctx)
	defer cancel(nil)
	r, err := process.Command{
		Args: t.config.Command, Script: t.config.Script, Environ: t.environ, Env: t.config.Env, Dir: t.config.Dir, Grace: t.config.Grace,
		OutBytes: outBytes, ErrBytes: errBytes,
	}.Run(ctx)
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
		return fmt.Errorf("shell: the process ended and left another one behind that holds its output open: %w", r.Err)
	}
	return &ExitError{Code: r.Code, Stderr: r.Stderr, Err: r.Err}
}

func after(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
