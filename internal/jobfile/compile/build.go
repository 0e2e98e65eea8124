package compile

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/jobfile/bind"
	"github.com/surfin-batch/surfin/internal/jobfile/tree"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/place"
	"github.com/surfin-batch/surfin/internal/trait"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

type builder struct {
	file         *tree.File
	name         string
	step         *tree.Step // nil for the job, or for a decision
	deps         Deps
	redriveOf    core.JobInstanceID
	redriveLater func(run *model.StepRun) func(ctx context.Context) error
	run          *model.StepRun
}

func (a builder) forRun(run *model.StepRun) builder {
	a.run = run
	return a
}

func (a builder) parts(ctx context.Context, run *model.StepRun) (chunk.Parts, error) {
	var parts chunk.Parts
	if err := markFile(ctx, run); err != nil {
		return parts, err
	}
	made, err := a.forRun(run).make(ctx, run.View(), a.step.Work()...)
	if err != nil {
		return parts, err
	}
	bound, err := boundOf(a.file, run.View(), a.step.Work())
	if err != nil {
		return parts, err
	}
	var errs []error
	for i, u := range a.step.Work() {
		switch u.Kind {
		case registry.KindReader:
			errs = append(errs, as(u, made[i], func(r item.Reader) { parts.Reader = r }))
			errs = append(errs, confineReader(run, parts.Reader))
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

// joinWriters makes the writers that join the parts of the step; the others are nil.
func (a builder) joinWriters(ctx context.Context, run *model.StepRun) ([]item.Writer, error) {
	view := run.View()
	if view.Part == nil {
		view.Part = &core.Partition{Context: core.NewExecutionContext()}
		for name, of := range a.step.Part { // conditions of a route need values, which nothing depends on here
			if err := view.Part.Context.Put(name, reflect.Zero(of.Type).Interface()); err != nil {
				return nil, err
			}
		}
	}
	writers := make([]item.Writer, len(a.step.Writers))
	for i, u := range a.step.Writers {
		if !slices.ContainsFunc(tree.WithNested(u), (*tree.ComponentUse).Together) {
			continue
		}
		w, err := one[item.Writer](ctx, a.forRun(run), view, u)
		if err != nil {
			return nil, err
		}
		writers[i] = w
	}
	return writers, nil
}

func (a builder) tasklet(ctx context.Context, run *model.StepRun) (core.Tasklet, error) {
	if err := markFile(ctx, run); err != nil {
		return nil, err
	}
	return one[core.Tasklet](ctx, a.forRun(run), run.View(), a.step.Tasklet)
}

func (a builder) partitioner(ctx context.Context, run *model.StepRun) (core.Partitioner, error) {
	p, err := one[core.Partitioner](ctx, a, run.View(), a.step.Partitioner)
	if asks, is := p.(filestream.OfReader); is {
		asks.SetReader(func(ctx context.Context, part core.Partition) (item.Reader, error) {
			own := *run // it is only read
			own.Data.Part = &part
			return one[item.Reader](ctx, a.forRun(&own), own.View(), a.step.Reader)
		})
	}
	return p, err
}

func confineReader(run *model.StepRun, r item.Reader) error {
	if run.Data.Part == nil || run.Step == nil || r == nil {
		return nil
	}
	return filestream.Confine(r, run.StepContext())
}

func (a builder) targets(ctx context.Context, run *model.StepRun) ([]string, error) {
	return a.paths(ctx, run, false)
}

// togetherPaths are the files that all parts of the step write.
func (a builder) togetherPaths(ctx context.Context, run *model.StepRun) ([]string, error) {
	return a.paths(ctx, run, true)
}

func (a builder) paths(ctx context.Context, run *model.StepRun, together bool) ([]string, error) {
	problems := a.file.Doc.NewCollector()
	var list []string
	for _, w := range tree.WithNested(a.step.Writers...) {
		files := w.Files()
		if len(files) == 0 || w.Together() != together {
			continue
		}
		cfg := bind.Config(a.file, w, bind.View(a.file, run.View()).With(ctx, a.deps.Secrets).Confined(ctx, run.Data.Job.Confinement, a.step), problems)
		if err := problems.Err(); err != nil {
			return nil, err
		}
		for _, f := range files {
			if path := f.Path(cfg); path != f.Std() { // each process has its own
				list = append(list, path)
			}
		}
	}
	return list, nil
}

// markFile records the file's state when an attempt begins to read it: it may have been corrected
// since (rule TL3a).
func markFile(ctx context.Context, run *model.StepRun) error {
	if run.Data.Part == nil || run.Step == nil {
		return nil
	}
	known := run.StepContext()
	path, _ := known.Get(filestream.PartPathKey)
	if _, marked := known.Get(filestream.PartMarkKey); !marked {
		return nil
	}
	info, err := place.Stat(ctx, fmt.Sprint(path))
	if err != nil {
		return nil //nolint:nilerr // the reader says so, with its own words
	}
	return known.Put(filestream.PartMarkKey, info.Mark())
}

func one[T any](ctx context.Context, a builder, view *core.View, u *tree.ComponentUse) (made T, err error) {
	list, err := a.make(ctx, view, u)
	if err != nil {
		return made, err
	}
	err = as(u, list[0], func(t T) { made = t })
	return made, err
}

func as[T any](u *tree.ComponentUse, made any, set func(T)) error {
	t, ok := made.(T)
	if !ok {
		return fmt.Errorf("the constructor of %s made a %T, which is not a %s", u.What, made, u.Kind)
	}
	set(t)
	return nil
}

func inZone(t item.Type, zone *time.Location) item.Type {
	if t == nil {
		return nil
	}
	return item.InZone(t, zone)
}

func (a builder) make(ctx context.Context, view *core.View, uses ...*tree.ComponentUse) ([]any, error) {
	problems := a.file.Doc.NewCollector()
	config := func(u *tree.ComponentUse) any {
		configured := func(v *bind.Values) any {
			return bind.Config(a.file, u, v.With(ctx, a.deps.Secrets).Confined(ctx, view.Job.Confinement, a.step), problems)
		}
		made := configured(bind.View(a.file, view))
		if sender, ok := made.(trait.Sender); ok && view.Outcome != nil && !sender.SendsRowData() {
			return configured(bind.View(a.file, view).WithoutRowData(view))
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
		if err := checkBound(a.step, uses, config); err != nil {
			return nil, err
		}
	}
	b := registry.BuildContext{
		Job: a.file.Name, Step: a.name, Execution: view.Job.ID,
		Databases: a.deps.Provider, Database: a.file.Model.Database, FileMode: a.deps.FileMode,
		Zone: a.file.Clock.Zone, Registry: a.deps.Registry, RedriveOf: a.redriveOf, Instance: view.Job.InstanceID,
	}
	b.Environ, b.Hide = bind.Guards(a.deps.Secrets)
	if a.step != nil {
		b.StepDatabase = a.file.DatabaseOf(a.step)
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
		component, _ := a.deps.Registry.Component(u.Kind, u.Component.Name)
		b.In, b.Out = inZone(u.In, a.file.Clock.Zone), inZone(u.Out, a.file.Clock.Zone)
		instance, err := component.New(ctx, configs[i], b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", u.What, err)
		}
		made[i] = instance
	}
	return made, nil
}

func (a builder) stepListeners(ctx context.Context, run *model.StepRun) ([]any, error) {
	inChunk := a.step.Model.Chunk != nil
	return a.listeners(ctx, run.View(), a.step.Listeners, func(u *tree.ComponentUse, made any) error {
		switch {
		case listensToSteps(made), inChunk && listensToChunks(made):
			return nil
		case listensToChunks(made):
			return fmt.Errorf("%s listens to chunks and items, which a tasklet step does not have: there it needs BeforeStep or AfterStep", u.What)
		case listensToJobs(made):
			return fmt.Errorf("%s listens to jobs (BeforeJob, AfterJob), not to steps: name it in the listeners of the job", u.What)
		}
		return errNoListener(u, made)
	})
}

// listeners are checked by instance; if one is wrong, all are closed.
func (a builder) listeners(ctx context.Context, view *core.View, uses []*tree.ComponentUse, check func(u *tree.ComponentUse, made any) error) ([]any, error) {
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

func errNoListener(u *tree.ComponentUse, made any) error {
	return fmt.Errorf("the constructor of %s made a %T, which is not a listener", u.What, made)
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

func checkBound(s *tree.Step, uses []*tree.ComponentUse, config func(u *tree.ComponentUse) any) error {
	known := map[string]*tree.ComponentUse{}
	for _, u := range tree.WithNested(uses...) {
		if u.Kind != registry.KindReader && u.Kind != registry.KindWriter {
			continue
		}
		for _, f := range u.Files() {
			path := f.Path(config(u))
			if first, twice := known[path]; twice && u.Kind == registry.KindWriter {
				return fmt.Errorf("step %s: %s and %s have one file, %s: a file belongs to one writer, and is not read by its own step", s.Name, first.What, u.What, path)
			}
			known[path] = u
		}
	}
	return nil
}

func createsTargets(s *tree.Step) bool {
	for _, w := range s.Writers {
		if c, ok := w.Cfg.(trait.Creator); ok && c.Creates() {
			return true
		}
	}
	return false
}

func writesTogether(s *tree.Step) bool {
	return s.Partitioner != nil && slices.ContainsFunc(tree.WithNested(s.Writers...), (*tree.ComponentUse).Together)
}

func hasTargets(s *tree.Step) bool {
	for _, w := range tree.WithNested(s.Writers...) {
		if len(w.Files()) > 0 {
			return true
		}
	}
	return false
}
