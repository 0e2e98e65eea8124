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

// Job makes the job, or reports, like [Load], names that the databases lack.
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

type compiler struct {
	file         *tree.File
	deps         Deps
	problems     *yamlfile.Collector
	missing      []error
	wrapParts    func(makeParts) makeParts
	redriveOf    core.JobInstanceID
	redriveLater func(run *model.StepRun) func(ctx context.Context) error
}

type makeParts = func(ctx context.Context, run *model.StepRun) (chunk.Parts, error)

func (c *compiler) bind(ctx context.Context, params core.Parameters) error {
	return CheckLaunch(ctx, c.file, c.deps.Secrets, params)
}

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
	Provider tx.Provider
	Registry *registry.Registry
	// FileMode is the permissions of files that components make; 0 means 0600.
	FileMode fs.FileMode
	// Tasks runs the steps of tasks; nil means that such steps are refused.
	Tasks Tasks
	// Secrets finds the values of ${secret.NAME}; nil means that there are none.
	Secrets bind.Secrets
	// Distributed: child jobs and splits with `remote: auto` run on workers of other machines.
	Distributed bool
}

// Tasks runs the steps of tasks: a *runtime.StepTasks.
type Tasks interface {
	step.TaskGroups
	HandlerTypes
}

// HandlerTypes are the types of tasks that have a handler.
type HandlerTypes interface {
	Handlers() (known []string, closed bool)
	HandlerOff(handler string) (how string)
}
