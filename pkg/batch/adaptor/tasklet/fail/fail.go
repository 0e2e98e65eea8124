// Package fail is the tasklet `fail`.
//
// It imports core and core/registry.
package fail

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// config configures the tasklet.
type config struct {
	Message string `key:"message" main:"true" required:"true" doc:"The message of the step's error."`
	If      *bool  `key:"if" doc:"Whether to fail: ${...} of a condition, which each attempt evaluates again; default: always."`
	Exit    string `key:"exit" default:"FAILED" doc:"The step's exit code, which next can match."`
}

// Validate checks the exit code.
func (c *config) Validate() error {
	if strings.TrimSpace(c.Message) == "" {
		return &registry.ConfigError{Key: "message", Err: errors.New("it is empty: say what is wrong and what to do")}
	}
	if err := core.CheckExitCode(c.Exit); err != nil {
		return &registry.ConfigError{Key: "exit", Err: err}
	}
	if slices.Contains([]string{core.ExitCompleted, core.ExitNoop, core.ExitStopped}, c.Exit) {
		return &registry.ConfigError{Key: "exit", Err: fmt.Errorf("%s is the exit code of a step that did not fail", c.Exit)}
	}
	return nil
}

// Components describes the tasklet.
func Components() []registry.Component {
	return []registry.Component{{
		Kind: registry.KindTasklet, Name: "fail", Config: reflect.TypeFor[config](), NoTransaction: true,
		Summary: "fails the step, with a message and an exit code",
		Doc: `A restart runs the failed step again and evaluates its ` + "`if`" + ` again. (The ` + "`when`" + ` of a step that has started
is not evaluated again: rule F3.) To end a job without an extra step and without a message,
use the target ` + "`{fail: {exit: CODE}}`" + `. For conditions on the counts of one step use its ` + "`expect`" + `.`,
		Example: `job: guard
parameters: {date: {type: date}}
flow:
- step: guard
  tasklet:
    fail:
      if: ${params.date < date('2026-01-01')}
      message: "there are no strikes of ${params.date}: choose a later date"
      exit: NO_DATA`,
		New: func(_ context.Context, cfg any, _ registry.BuildContext) (any, error) {
			return newTasklet(*cfg.(*config))
		},
	}}
}

// newTasklet checks config.
func newTasklet(cfg config) (core.Tasklet, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return core.TaskletFunc(func(_ context.Context, c *core.StepContribution) error {
		if cfg.If != nil && !*cfg.If {
			return nil
		}
		c.ExitCode = cmp.Or(cfg.Exit, core.ExitFailed)
		return exception.Fatal("", errors.New(cfg.Message))
	}), nil
}
