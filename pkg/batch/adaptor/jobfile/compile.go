package jobfile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile/internal/strict"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Deps are what a compiled job runs on.
type Deps struct {
	// Provider finds the databases that the file names.
	Provider tx.Provider
	// Registry has the factories of the file's components.
	Registry *core.Registry
}

// Compile makes the job. What the file asks of the databases and they cannot do
// (an unknown name, an isolation level) is reported like the problems of [Load];
// a missing factory is an error of its own.
func (f *File) Compile(deps Deps) (*core.Job, error) {
	c := &compiler{file: f, deps: deps, problems: f.doc.NewCollector()}
	c.checkDatabases()
	if err := c.problems.Err(); err != nil {
		return nil, err
	}
	compiled := &core.Job{
		Name: f.name, Description: f.model.Description, Parameters: f.Parameters(),
		Definition: f.Definition(), Restartable: f.model.Restartable, Bind: f.bind,
	}
	var errs []error
	for _, s := range f.steps {
		element, err := c.element(s)
		if err != nil {
			errs = append(errs, fmt.Errorf("step %s: %w", s.name, err))
			continue
		}
		compiled.Flow.Elements = append(compiled.Flow.Elements, element)
	}
	errs = append(errs, c.missing...)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if err := compiled.Flow.Validate(); err != nil {
		return nil, err
	}
	return compiled, nil
}

// compiler is the state of one Compile.
type compiler struct {
	file     *File
	deps     Deps
	problems *strict.Collector
	missing  []error
	// assembled changes how a chunk step gets its parts; nil: it does not.
	assembled func(assemble) assemble
}

// assemble is the function of a chunk step that makes its parts.
type assemble = func(ctx context.Context, run *core.StepRun) (chunk.Parts, error)

// checkDatabases checks every database that the file names, and what its
// transactions ask of them (rule T4).
func (c *compiler) checkDatabases() {
	root := c.file.doc.Root
	if _, err := c.deps.Provider.Database(c.file.model.Database); err != nil {
		at := root.Get("database")
		if at == nil {
			at = root.KeyOf("job")
		}
		c.problems.Add(at, err.Error(), "")
		return
	}
	for _, s := range c.file.steps {
		good := true
		for _, u := range s.uses() {
			name, has := u.database()
			if !has || name == "" {
				continue
			}
			if _, err := c.deps.Provider.Database(name); err != nil {
				c.problems.Add(u.find("database"), u.what+": "+err.Error(), "")
				good = false
			}
		}
		t := s.model.Transaction
		if !good || t == nil {
			continue
		}
		db, err := c.deps.Provider.Database(c.database(s))
		if err == nil {
			err = db.Check(c.attr(s))
		}
		if err != nil {
			at := t.Node
			for _, key := range []string{"propagation", "read_only", "isolation"} {
				if t.Node.Get(key) != nil {
					at = t.Node.Get(key)
				}
			}
			c.problems.Add(at, "transaction: "+err.Error(), "")
		}
	}
}

// database is the name of the step's own database: where its writers or its
// tasklet work, else the job's.
func (c *compiler) database(s *stepDef) string {
	for _, u := range append([]*use{s.tasklet}, s.writers...) {
		if name, _ := u.database(); name != "" {
			return name
		}
	}
	return c.file.model.Database
}

// attr is the transaction of a tasklet step, or of each chunk.
func (c *compiler) attr(s *stepDef) tx.Attr {
	attr := tx.Attr{}
	if s.tasklet != nil && s.tasklet.component.NoTransaction {
		attr.Propagation = tx.NotSupported
	}
	t := s.model.Transaction
	if t == nil {
		return attr
	}
	if t.Propagation != "" {
		attr.Propagation = tx.Propagation(t.Propagation)
	}
	attr.Isolation = isolation(t.Isolation)
	attr.ReadOnly = t.ReadOnly
	attr.Timeout = timeout(t.Timeout)
	return attr
}

func isolation(name string) sql.IsolationLevel {
	switch name {
	case "read_uncommitted":
		return sql.LevelReadUncommitted
	case "read_committed":
		return sql.LevelReadCommitted
	case "repeatable_read":
		return sql.LevelRepeatableRead
	case "serializable":
		return sql.LevelSerializable
	}
	return sql.LevelDefault
}

func timeout(d *time.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return *d
}

// element compiles one step.
func (c *compiler) element(s *stepDef) (core.Element, error) {
	db, err := c.deps.Provider.Database(c.database(s))
	if err != nil {
		return nil, err
	}
	e := &core.StepElement{Next: s.edges, AllowStartIfComplete: s.model.AllowStartIfComplete}
	if s.model.StartLimit != nil {
		e.StartLimit = *s.model.StartLimit
	}
	a := assembly{file: c.file, step: s, factories: map[*use]core.Factory{}}
	for _, u := range s.uses() {
		factory, ok := c.deps.Registry.Factory(u.kind, u.component.Name)
		if !ok {
			c.missing = append(c.missing, fmt.Errorf("%s has no factory in this application", u.what))
		}
		a.factories[u] = factory
	}
	if s.tasklet != nil {
		e.Step, err = step.NewTasklet(step.TaskletConfig{
			Name: s.name, Database: db, Attr: c.attr(s), Timeout: timeout(s.model.Timeout), Assemble: a.tasklet,
		})
		return e, err
	}
	config := chunk.Config{
		Name: s.name, Size: *s.chunk.Size, Database: db, Attr: c.attr(s), Timeout: timeout(s.model.Timeout), Assemble: a.parts,
	}
	if err := c.tolerance(s, &config); err != nil {
		return nil, err
	}
	if c.assembled != nil {
		config.Assemble = c.assembled(config.Assemble)
	}
	e.Step, err = chunk.New(config)
	return e, err
}

// bind decodes every config with what the launch knows, so that a value that does
// not fit refuses the launch, before an execution exists.
func (f *File) bind(_ context.Context, params core.Parameters) error {
	problems := f.doc.NewCollector()
	for _, s := range f.steps {
		for _, u := range s.uses() {
			f.config(u, f.launchValues(params), problems)
		}
	}
	return problems.Err()
}

// config decodes a config with values into a fresh struct; nil where the
// component has none.
func (f *File) config(u *use, v *values, problems *strict.Collector) any {
	if u.component.Config == nil {
		return nil
	}
	b := &binding{file: f, use: u, collector: problems, types: f.types, values: v, env: v.env(f.env)}
	cfg, _ := b.decode()
	return cfg
}

// assembly makes the components of one step, anew for every execution.
type assembly struct {
	file      *File
	step      *stepDef
	factories map[*use]core.Factory
}

func (a assembly) parts(ctx context.Context, run *core.StepRun) (chunk.Parts, error) {
	var parts chunk.Parts
	made, err := a.make(ctx, run)
	if err != nil {
		return parts, err
	}
	var errs []error
	for _, u := range a.step.uses() {
		switch u.kind {
		case core.KindReader:
			errs = append(errs, as(u, made[u], func(r core.Reader) { parts.Reader = r }))
		case core.KindProcessor:
			errs = append(errs, as(u, made[u], func(p core.Processor) { parts.Processors = append(parts.Processors, p) }))
		case core.KindWriter:
			errs = append(errs, as(u, made[u], func(w core.Writer) { parts.Writers = append(parts.Writers, w) }))
		case core.KindListener:
			if !core.Listens(reflect.TypeOf(made[u])) {
				errs = append(errs, fmt.Errorf("the factory of %s made a %T, which is no listener", u.what, made[u]))
				continue
			}
			parts.Listeners = append(parts.Listeners, made[u])
		case core.KindTasklet:
		}
	}
	return parts, errors.Join(errs...)
}

func (a assembly) tasklet(ctx context.Context, run *core.StepRun) (core.Tasklet, error) {
	made, err := a.make(ctx, run)
	if err != nil {
		return nil, err
	}
	var tasklet core.Tasklet
	err = as(a.step.tasklet, made[a.step.tasklet], func(t core.Tasklet) { tasklet = t })
	return tasklet, err
}

func as[T any](u *use, made any, set func(T)) error {
	t, ok := made.(T)
	if !ok {
		return fmt.Errorf("the factory of %s made a %T, which is no %s", u.what, made, u.kind)
	}
	set(t)
	return nil
}

// make binds the configs with all values and calls the factories.
func (a assembly) make(ctx context.Context, run *core.StepRun) (map[*use]any, error) {
	problems := a.file.doc.NewCollector()
	configs := map[*use]any{}
	for _, u := range a.step.uses() {
		configs[u] = a.file.config(u, a.file.stepValues(run), problems)
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	made := map[*use]any{}
	for _, u := range a.step.uses() {
		instance, err := a.factories[u].New(ctx, configs[u], core.Use{
			Job: a.file.name, Step: a.step.name, Execution: run.Job.ID,
			Database: a.file.model.Database, In: u.in, Out: u.out,
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", u.what, err)
		}
		made[u] = instance
	}
	return made, nil
}
