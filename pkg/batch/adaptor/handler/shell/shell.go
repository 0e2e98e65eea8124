// Package shell executes tasks of type `shell`: a command or a script in a separate process. A client that
// may submit them may run anything that the worker's user may.
//
// It imports core/task, core/exception, internal/process and internal/secret.
package shell

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/surfin-batch/surfin/internal/process"
	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// Type is the type of the tasks.
const Type = "shell"

// of the ends of stdout and stderr
const maxArtifactBytes = 64 << 10

// taskPayload is the payload of a task.
type taskPayload struct {
	// Command is the program and its arguments; Script is a text for sh.
	Command []string `json:"command,omitempty"`
	Script  string   `json:"script,omitempty"`
	// Env are further variables. The process has the worker's without SURFIN_*, DATABASE_URL and secrets;
	// for an API client only PATH, HOME, LANG and the like.
	Env map[string]string `json:"env,omitempty"`
	// Dir is the folder to run in; "" means the worker's.
	Dir string `json:"dir,omitempty"`
	// Grace is the time between SIGTERM and SIGKILL at the end of the attempt, such as "5s"; "" means 10 s.
	Grace string `json:"grace,omitempty"`
}

// handler executes tasks. Safe for concurrent use.
type handler struct{ environ func() []string }

// New returns the handler. environ returns the environment of its processes; nil means the worker's,
// without its configuration. A client's task gets only a part (process.Allowed).
func New(environ func() []string) task.Handler {
	if environ == nil {
		environ = func() []string { return (*secret.Vault)(nil).Environ(os.Environ()) }
	}
	return handler{environ}
}

// Execute runs the process to its end. The outcome is SUCCESS for exit code 0, else FAILURE with the end of
// stderr, and BLOCKED if it cannot be started. The artifacts are Stdout, Stderr and the Json {"exit_code"}.
// An invalid payload is fatal.
func (h handler) Execute(ctx context.Context, t task.Task) (task.Outcome, error) {
	command, err := read(t.Spec.Payload)
	if err != nil {
		return task.Outcome{}, exception.Fatal("shell: payload", err)
	}
	if command.Environ = h.environ(); t.Spec.Client != nil {
		command.Environ = process.Allowed(command.Environ)
	}
	r, err := command.Run(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return task.Outcome{}, context.Cause(ctx)
		}
		return task.Blocked("shell: " + err.Error()), nil
	}
	outcome := task.Success()
	switch {
	case r.Err == nil:
	case ctx.Err() != nil:
		outcome = task.Failure(fmt.Sprintf("%v (the process ended with: %v)", context.Cause(ctx), r.Err))
	case errors.Is(r.Err, exec.ErrWaitDelay):
		outcome = task.Failure("the process ended, but a process that it started holds its output open")
	default:
		outcome = task.Failure(r.Err.Error())
	}
	if r.Err != nil && r.Stderr != "" {
		outcome = outcome.WithReason(outcome.Reason + ": " + lastOf(r.Stderr))
	}
	return outcome.WithArtifact(task.Stdout(r.Stdout)).WithArtifact(task.Stderr(r.Stderr)).
		WithArtifact(task.JSON(json.RawMessage(fmt.Sprintf(`{"exit_code":%d}`, r.Code)))), nil
}

func read(payload json.RawMessage) (c process.Command, err error) {
	var p taskPayload
	if len(payload) == 0 {
		return c, errors.New(`the payload has none: write "payload": {"script": "echo hello"} or {"command": ["echo", "hello"]}; the goal is not used`)
	}
	d := json.NewDecoder(bytes.NewReader(payload))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return c, err
	}
	c = process.Command{Args: p.Command, Script: p.Script, Env: p.Env, Dir: p.Dir, OutBytes: maxArtifactBytes, ErrBytes: maxArtifactBytes}
	if (len(p.Command) == 0) == (p.Script == "") {
		return c, errors.New(`it needs either a "command" or a "script"`)
	}
	if p.Grace != "" {
		if c.Grace, err = time.ParseDuration(p.Grace); err != nil || c.Grace < 0 {
			return c, fmt.Errorf("grace: %q is not a duration, such as 5s", p.Grace)
		}
	}
	if name, err := process.CheckEnv(p.Env); err != nil {
		return c, fmt.Errorf("env: %q: %w", name, err)
	}
	return c, nil
}

func lastOf(text string) string {
	const most = 2 << 10
	if len(text) > most {
		return "…" + text[len(text)-most:]
	}
	return text
}
