package compile

import (
	"context"
	"io/fs"

	"github.com/surfin-batch/surfin/internal/jobfile/bind"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Deps are the dependencies of a compiled job.
type Deps struct {
	// Provider finds the databases that the file names.
	Provider tx.Provider
	// Registry makes the file's components.
	Registry *registry.Registry
	// FileMode is the permissions of files that components make; 0 means 0600.
	FileMode fs.FileMode
	// Tasks runs the steps of tasks; nil means that such steps are refused.
	Tasks Tasks
	// Secrets finds the values of ${secret.NAME}; nil means that there are none.
	Secrets bind.Secrets
	// Distributed reports that the engine delivers to workers on many machines: child jobs and splits with
	// `remote: auto` run there.
	Distributed bool
}

// Tasks runs the steps of tasks: a *runtime.StepTasks.
type Tasks interface {
	step.TaskGroups
	HandlerTypes
	// HandlerWarnings returns warnings if only workers execute tasks of the type, and none of the live ones
	// does.
	HandlerWarnings(ctx context.Context, handler string) (warnings []string, err error)
	// GiveUp cancels the unfinished groups of a job instance that does not continue.
	GiveUp(ctx context.Context, instance core.JobInstanceID, reason string) error
}

// HandlerTypes are the types of tasks that have a handler.
type HandlerTypes interface {
	// Handlers returns the types of tasks that have a handler in this process, and whether
	// others cannot be executed.
	Handlers() (known []string, closed bool)
	// HandlerOff returns how to switch on a handler that this process has and does not use; "" means that it
	// has none of the type, or uses it.
	HandlerOff(handler string) (how string)
}
