package jobfile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/confine"
	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// builder makes the components of one step, new ones for each execution.
type builder struct {
	file *File
	name string
	step *stepDef // nil for the job, or for a decision
	deps Deps
	// redriveOf is the redriven instance; 0 means none.
	redriveOf core.JobInstanceID
	// redriveLater makes registry.BuildContext.RedriveLater for a run; nil if nothing is redriven.
	redriveLater func(run *model.StepRun) func(ctx context.Context) error
	// run is the step execution; nil means that the components are for none.
	run *model.StepRun
}

func (a builder) forRun(run *model.StepRun) builder {
	a.run = run
	return a
}

// builder returns a builder for the components of a step. It adds those that the application cannot make to
// c.missing.
func (c *compiler) builder(step string, of *stepDef, uses ...*componentUse) builder {
	for _, u := range withNested(uses...) {
		if found, _ := c.deps.Registry.Component(u.kind, u.component.Name); found.New == nil {
			c.missing = append(c.missing, fmt.Errorf("this application cannot make %s: its registry only describes it", u.what))
		}
	}
	return builder{file: c.file, name: step, step: of, deps: c.deps, redriveOf: c.redriveOf, redriveLater: c.redriveLater}
}

func (a builder) parts(ctx context.Context, run *model.StepRun) (chunk.Parts, error) {
	var parts chunk.Parts
	if err := markFile(ctx, run); err != nil {
		return parts, err
	}
	made, err := a.forRun(run).make(ctx, run.View(), a.step.work()...)
	if err != nil {
		return parts, err
	}
	bound, err := a.file.bound(run.View(), a.step.work())
	if err != nil {
		return parts, err
	}
	var errs []error
	for i, u := range a.step.work() {
		switch u.kind {
		case registry.KindReader:
			errs = append(errs, as(u, made[i], func(r item.Reader) { parts.Reader = r }))
			parts.Bound = append([]chunk.Bound{bound[i]}, parts.Bound...)
		case registry.KindProcessor:
			errs = append(errs, as(u, made[i], func(p item.Processor) { parts.Processors = append(parts.Processors, p) }))
		case registry.KindWriter:
			errs = append(errs, as(u, made[i], func(w item.Writer) { parts.Writers = append(parts.Writers, w) }))
			parts.Bound = append(parts.Bound, bound[i])
		case registry.KindTasklet, registry.KindListener, registry.KindPartitioner, registry.KindDecider: // no parts of a chunk
		}
	}
	return parts, errors.Join(errs...)
}

func (a builder) tasklet(ctx context.Context, run *model.StepRun) (core.Tasklet, error) {
	if err := markFile(ctx, run); err != nil {
		return nil, err
	}
	return one[core.Tasklet](ctx, a.forRun(run), run.View(), a.step.tasklet)
}

// markFile records the state of a partition's file in the context when an attempt begins to read it: the file
// may have been corrected since it was listed (rule TL3a).
func markFile(ctx context.Context, run *model.StepRun) error {
	if run.Data.Part == nil || run.Step == nil {
		return nil
	}
	known := run.StepContext()
	path, _ := known.Get(filestream.PartPathKey)
	if _, marked := known.Get(filestream.PartMarkKey); !marked {
		return nil
	}
	info, err := confine.From(ctx).Stat(fmt.Sprint(path))
	if err != nil {
		return nil //nolint:nilerr // the reader says so, with its own words
	}
	return known.Put(filestream.PartMarkKey, filestream.MarkOf(info))
}

func (a builder) partitioner(ctx context.Context, run *model.StepRun) (core.Partitioner, error) {
	return one[core.Partitioner](ctx, a, run.View(), a.step.partitioner)
}

func one[T any](ctx context.Context, a builder, view *core.View, u *componentUse) (made T, err error) {
	list, err := a.make(ctx, view, u)
	if err != nil {
		return made, err
	}
	err = as(u, list[0], func(t T) { made = t })
	return made, err
}

func as[T any](u *componentUse, made any, set func(T)) error {
	t, ok := made.(T)
	if !ok {
		return fmt.Errorf("the constructor of %s made a %T, which is no %s", u.what, made, u.kind)
	}
	set(t)
	return nil
}

// inZone is item.InZone for a type that may be nil.
func inZone(t item.Type, zone *time.Location) item.Type {
	if t == nil {
		return nil
	}
	return item.InZone(t, zone)
}

// make binds the configs with all values and makes the instances.
func (a builder) make(ctx context.Context, view *core.View, uses ...*componentUse) ([]any, error) {
	problems := a.file.doc.NewCollector()
	config := func(u *componentUse) any {
		bind := func(v *values) any {
			return a.file.config(u, v.with(ctx, a.deps.Secrets).confined(ctx, view.Job.Confinement, a.step), problems)
		}
		made := bind(a.file.viewValues(view))
		if sender, ok := made.(registry.Sender); ok && view.Outcome != nil && !sender.SendsRowData() {
			return bind(a.file.viewValues(view).withoutRowData(view))
		}
		return made
	}
	configs := make([]any, len(uses))
	for i, u := range uses {
		configs[i] = config(u)
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	if a.run != nil && a.step != nil {
		if err := a.step.checkBound(uses, config); err != nil {
			return nil, err
		}
	}
	b := registry.BuildContext{
		Job: a.file.name, Step: a.name, Execution: view.Job.ID,
		Databases: a.deps.Provider, Database: a.file.model.Database, FileMode: a.deps.FileMode,
		Zone: a.file.zone, Registry: a.deps.Registry, RedriveOf: a.redriveOf, Instance: view.Job.InstanceID,
	}
	b.Environ, b.Hide = a.deps.guards()
	if a.step != nil {
		b.StepDatabase = (&compiler{file: a.file}).database(a.step)
	}
	if a.run != nil {
		b.StepContext = a.run.StepContext
		b.Continues = a.run.Step != nil && len(a.run.Step.Position) > 0
		b.Attempt, b.Previous, b.Skips = chunk.AttemptOf(a.run), chunk.PreviousOf(a.run), a.run.Services.Attempts
		b.StepRecords = func(ctx context.Context, step string) ([]core.StepExecution, error) {
			return a.run.Services.Attempts.Newest(ctx, b.Instance, step)
		}
		if a.redriveLater != nil {
			b.RedriveLater = a.redriveLater(a.run)
		}
	}
	made := make([]any, len(uses))
	for i, u := range uses {
		component, _ := a.deps.Registry.Component(u.kind, u.component.Name)
		b.In, b.Out = inZone(u.in, a.file.zone), inZone(u.out, a.file.zone)
		instance, err := component.New(ctx, configs[i], b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", u.what, err)
		}
		made[i] = instance
	}
	return made, nil
}

// stepListeners makes the listeners of a step.
func (a builder) stepListeners(ctx context.Context, run *model.StepRun) ([]any, error) {
	inChunk := a.step.model.Chunk != nil
	return a.listeners(ctx, run.View(), a.step.listeners, func(u *componentUse, made any) error {
		switch {
		case listensToSteps(made), inChunk && listensToChunks(made):
			return nil
		case listensToChunks(made):
			return fmt.Errorf("%s listens to chunks and items, which a tasklet step does not have: there it needs BeforeStep or AfterStep", u.what)
		case listensToJobs(made):
			return fmt.Errorf("%s listens to jobs (BeforeJob, AfterJob), not to steps: name it in the listeners of the job", u.what)
		}
		return errNoListener(u, made)
	})
}

// jobListeners makes the listeners of an execution; nil if there are none.
func (c *compiler) jobListeners() func(ctx context.Context, view *core.View) ([]any, error) {
	uses := c.file.listeners
	if len(uses) == 0 {
		return nil
	}
	a := c.builder("", nil, uses...)
	return func(ctx context.Context, view *core.View) ([]any, error) {
		return a.listeners(ctx, view, uses, func(u *componentUse, made any) error {
			switch {
			case listensToJobs(made):
				return nil
			case listensToSteps(made), listensToChunks(made):
				return fmt.Errorf("%s listens to steps, chunks or items, not to jobs: name it in the listeners of a step; here it needs BeforeJob or AfterJob", u.what)
			}
			return errNoListener(u, made)
		})
	}
}

// listeners makes listeners and checks the events that each listens to, which only the instance shows. If one
// is wrong, all are closed.
func (a builder) listeners(ctx context.Context, view *core.View, uses []*componentUse, check func(u *componentUse, made any) error) ([]any, error) {
	made, err := a.make(ctx, view, uses...)
	if err != nil {
		return nil, err
	}
	for i, u := range uses {
		err = errors.Join(err, check(u, made[i]))
	}
	if err == nil {
		return made, nil
	}
	for _, one := range made {
		if closer, ok := one.(item.Closer); ok {
			err = errors.Join(err, closer.Close(context.WithoutCancel(ctx)))
		}
	}
	return nil, err
}

func errNoListener(u *componentUse, made any) error {
	return fmt.Errorf("the constructor of %s made a %T, which is no listener", u.what, made)
}

func listensToJobs(listener any) bool {
	_, before := listener.(core.BeforeJob)
	_, after := listener.(core.AfterJob)
	return before || after
}

func listensToSteps(listener any) bool {
	_, before := listener.(core.BeforeStep)
	_, after := listener.(core.AfterStep)
	return before || after
}

func listensToChunks(listener any) bool {
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
