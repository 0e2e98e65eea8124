package jobfile

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// assembly makes the components of one step, anew for every execution.
type assembly struct {
	file *File
	step string
	of   *stepDef // nil: of the job, or of a decision
	deps Deps
	// run is the step execution; nil: the components are for none.
	run *core.StepRun
}

// attempt is the assembly for one step execution.
func (a assembly) attempt(run *core.StepRun) assembly {
	a.run = run
	return a
}

// assembly checks that the application can make the components; those that it cannot
// are c.missing.
func (c *compiler) assembly(step string, of *stepDef, uses ...*use) assembly {
	for _, u := range uses {
		if found, _ := c.deps.Registry.Component(u.kind, u.component.Name); found.New == nil {
			c.missing = append(c.missing, fmt.Errorf("this application cannot make %s: its registry only describes it", u.what))
		}
	}
	return assembly{file: c.file, step: step, of: of, deps: c.deps}
}

func (a assembly) parts(ctx context.Context, run *core.StepRun) (chunk.Parts, error) {
	var parts chunk.Parts
	made, err := a.attempt(run).make(ctx, run.View(), a.of.work()...)
	if err != nil {
		return parts, err
	}
	var errs []error
	for i, u := range a.of.work() {
		switch u.kind {
		case registry.KindReader:
			errs = append(errs, as(u, made[i], func(r core.Reader) { parts.Reader = r }))
		case registry.KindProcessor:
			errs = append(errs, as(u, made[i], func(p core.Processor) { parts.Processors = append(parts.Processors, p) }))
		case registry.KindWriter:
			errs = append(errs, as(u, made[i], func(w core.Writer) { parts.Writers = append(parts.Writers, w) }))
		case registry.KindTasklet, registry.KindListener, registry.KindPartitioner, registry.KindDecider: // no parts of a chunk
		}
	}
	return parts, errors.Join(errs...)
}

func (a assembly) tasklet(ctx context.Context, run *core.StepRun) (core.Tasklet, error) {
	return one[core.Tasklet](ctx, a, run.View(), a.of.tasklet)
}

func (a assembly) partitioner(ctx context.Context, run *core.StepRun) (core.Partitioner, error) {
	return one[core.Partitioner](ctx, a, run.View(), a.of.partitioner)
}

// one makes the only component of its kind.
func one[T any](ctx context.Context, a assembly, view *core.View, u *use) (made T, err error) {
	list, err := a.make(ctx, view, u)
	if err != nil {
		return made, err
	}
	err = as(u, list[0], func(t T) { made = t })
	return made, err
}

func as[T any](u *use, made any, set func(T)) error {
	t, ok := made.(T)
	if !ok {
		return fmt.Errorf("the constructor of %s made a %T, which is no %s", u.what, made, u.kind)
	}
	set(t)
	return nil
}

// make binds the configs with all values and makes the instances.
func (a assembly) make(ctx context.Context, view *core.View, uses ...*use) ([]any, error) {
	problems := a.file.doc.NewCollector()
	configs := make([]any, len(uses))
	for i, u := range uses {
		configs[i] = a.file.config(u, a.file.viewValues(view), problems)
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	if a.run != nil && a.of != nil {
		if err := a.of.checkBound(uses, configs); err != nil {
			return nil, err
		}
	}
	b := registry.BuildContext{
		Job: a.file.name, Step: a.step, Execution: view.Job.ID,
		Databases: a.deps.Provider, Database: a.file.model.Database, FileMode: a.deps.FileMode,
	}
	if a.run != nil {
		b.Attempt = chunk.AttemptOf(a.run)
	}
	made := make([]any, len(uses))
	for i, u := range uses {
		component, _ := a.deps.Registry.Component(u.kind, u.component.Name)
		b.In, b.Out = u.in, u.out
		instance, err := component.New(ctx, configs[i], b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", u.what, err)
		}
		made[i] = instance
	}
	return made, nil
}

// stepListeners makes the listeners of a step.
func (a assembly) stepListeners(ctx context.Context, run *core.StepRun) ([]any, error) {
	made, err := a.make(ctx, run.View(), a.of.listeners...)
	if err != nil {
		return nil, err
	}
	var errs []error
	for i, u := range a.of.listeners {
		errs = append(errs, listensToStep(u, made[i], a.of.model.Chunk != nil))
	}
	return listening(ctx, made, errs)
}

// listening answers the listeners, or closes them where one of them is wrong.
func listening(ctx context.Context, made []any, errs []error) ([]any, error) {
	err := errors.Join(errs...)
	if err == nil {
		return made, nil
	}
	for _, one := range made {
		if closer, ok := one.(core.Closer); ok {
			err = errors.Join(err, closer.Close(context.WithoutCancel(ctx)))
		}
	}
	return nil, err
}

// What a listener is told of is known only when New has made it.
func listensToStep(u *use, made any, chunk bool) error {
	if toldOfSteps(made) || chunk && toldOfChunks(made) {
		return nil
	}
	switch {
	case toldOfChunks(made):
		return fmt.Errorf("%s is told of chunks and items, which a tasklet step has not: there it needs BeforeStep or AfterStep", u.what)
	case toldOfJobs(made):
		return fmt.Errorf("%s is told of jobs (BeforeJob, AfterJob), not of steps: name it in the listeners of the job", u.what)
	}
	return notListening(u, made)
}

// jobListeners makes the listeners of an execution; nil if there are none.
func (c *compiler) jobListeners() func(ctx context.Context, view *core.View) ([]any, error) {
	uses := c.file.listeners
	if len(uses) == 0 {
		return nil
	}
	a := c.assembly("", nil, uses...)
	return func(ctx context.Context, view *core.View) ([]any, error) {
		made, err := a.make(ctx, view, uses...)
		if err != nil {
			return nil, err
		}
		var errs []error
		for i, u := range uses {
			switch {
			case toldOfJobs(made[i]):
			case toldOfSteps(made[i]) || toldOfChunks(made[i]):
				errs = append(errs, fmt.Errorf("%s is told of steps, chunks or items, not of jobs: name it in the listeners of a step; here it needs BeforeJob or AfterJob", u.what))
			default:
				errs = append(errs, notListening(u, made[i]))
			}
		}
		return listening(ctx, made, errs)
	}
}

func notListening(u *use, made any) error {
	return fmt.Errorf("the constructor of %s made a %T, which is no listener", u.what, made)
}

func toldOfJobs(listener any) bool {
	_, before := listener.(core.BeforeJob)
	_, after := listener.(core.AfterJob)
	return before || after
}

func toldOfSteps(listener any) bool {
	_, before := listener.(core.BeforeStep)
	_, after := listener.(core.AfterStep)
	return before || after
}

func toldOfChunks(listener any) bool {
	switch listener.(type) {
	case core.BeforeChunk, core.AfterChunk, core.OnChunkError,
		core.BeforeRead, core.AfterRead, core.OnReadError,
		core.BeforeProcess, core.AfterProcess, core.OnProcessError,
		core.BeforeWrite, core.AfterWrite, core.OnWriteError,
		core.OnSkipRead, core.OnSkipProcess, core.OnSkipWrite, core.BeforeRetry:
		return true
	}
	return false
}
