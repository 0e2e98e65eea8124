package compile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/surfin-batch/surfin/internal/jobfile/bind"
	"github.com/surfin-batch/surfin/internal/jobfile/diff"
	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Job makes the job. Requirements of the file that the databases cannot meet (an unknown name, an
// isolation level) are reported like the problems of [Load]; a component that Registry only describes is an
// error of its own.
func Job(f *tree.File, deps Deps) (*model.Job, error) {
	c := &compiler{file: f, deps: deps, problems: f.Doc.NewCollector()}
	c.checkDatabases()
	if err := c.problems.Err(); err != nil {
		return nil, err
	}
	compiled := &model.Job{
		Name: f.Name, Description: f.Model.Description, Parameters: f.ParametersNow(),
		Definition: f.Definition(), Restartable: f.Model.Restartable, Bind: c.bind,
		Incrementer: increment(f), Inherit: f.Model.Inherit, Expect: compiledCondition(f.Expect, f), Listeners: c.jobListeners(),
		CheckRestart: c.checkRestart, Exclusive: func(p core.Parameters) (core.ExclusiveKey, error) { return ExclusiveKey(f, p) }, Timeout: language.ValueOr0(f.Model.Timeout),
	}
	var errs []error
	var err error
	if compiled.Flow, err = c.flow(f.Flow); err != nil {
		errs = append(errs, err)
	}
	if compiled.Finally, err = c.flow(f.Finally); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, c.missing...)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if err := compiled.Flow.Validate(); err != nil {
		return nil, err
	}
	return compiled, nil
}

// compiler is the state of one Compile.
type compiler struct {
	file     *tree.File
	deps     Deps
	problems *yamlfile.Collector
	missing  []error
	// wrapParts changes how a chunk step gets its parts; nil means no change.
	wrapParts func(makeParts) makeParts
	// redriveOf is the redriven instance; 0 means none.
	redriveOf core.JobInstanceID
	// redriveLater is passed to builder.
	redriveLater func(run *model.StepRun) func(ctx context.Context) error
}

// makeParts is the function of a chunk step that makes its parts.
type makeParts = func(ctx context.Context, run *model.StepRun) (chunk.Parts, error)

func (c *compiler) bind(ctx context.Context, params core.Parameters) error {
	return CheckLaunch(ctx, c.file, c.deps.Secrets, params)
}

// builder returns a builder for the components of a step. It adds those that the application cannot make to
// c.missing.
func (c *compiler) builder(step string, of *tree.Step, uses ...*tree.ComponentUse) builder {
	for _, u := range tree.WithNested(uses...) {
		if found, _ := c.deps.Registry.Component(u.Kind, u.Component.Name); found.New == nil {
			c.missing = append(c.missing, fmt.Errorf("this application cannot make %s: its registry only describes it", u.What))
		}
	}
	return builder{file: c.file, name: step, step: of, deps: c.deps, redriveOf: c.redriveOf, redriveLater: c.redriveLater}
}

func (c *compiler) jobListeners() func(ctx context.Context, view *core.View) ([]any, error) {
	uses := c.file.Listeners
	if len(uses) == 0 {
		return nil
	}
	a := c.builder("", nil, uses...)
	return func(ctx context.Context, view *core.View) ([]any, error) {
		return a.listeners(ctx, view, uses, func(u *tree.ComponentUse, made any) error {
			switch {
			case listensToJobs(made):
				return nil
			case listensToSteps(made), listensToChunks(made):
				return fmt.Errorf("%s listens to steps, chunks or items, not to jobs: name it in the listeners of a step; here it needs BeforeJob or AfterJob", u.What)
			}
			return errNoListener(u, made)
		})
	}
}

// checkRestart refuses changes that committed work depends on, and returns the steps that take the new
// definition.
func (c *compiler) checkRestart(ctx context.Context, last *core.JobExecution, history ports.History, params core.Parameters) (taken []string, err error) {
	changes, err := diff.Of(ctx, c.file, diff.Restart{Last: last, Params: params, History: history, Registry: c.deps.Registry})
	for _, change := range changes {
		if change.NewDefinition {
			taken = append(taken, change.Step)
		}
	}
	return taken, err
}

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
