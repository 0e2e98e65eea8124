package jobfile

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"time"

	"github.com/surfin-batch/surfin/internal/confine"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/chunk"
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
	Secrets Secrets
	// Distributed reports that the engine delivers to workers on many machines: child jobs and splits with
	// `remote: auto` run there.
	Distributed bool
}

// Compile makes the job. Requirements of the file that the databases cannot meet (an unknown name, an
// isolation level) are reported like the problems of [Load]; a component that Registry only describes is an
// error of its own.
func (f *File) Compile(deps Deps) (*model.Job, error) {
	c := &compiler{file: f, deps: deps, problems: f.doc.NewCollector()}
	c.checkDatabases()
	if err := c.problems.Err(); err != nil {
		return nil, err
	}
	compiled := &model.Job{
		Name: f.name, Description: f.model.Description, Parameters: f.Parameters(),
		Definition: f.Definition(), Restartable: f.model.Restartable, Bind: c.bind,
		Incrementer: f.increment(), Inherit: f.model.Inherit, Expect: f.expect.compiled(f), Listeners: c.jobListeners(),
		CheckRestart: c.checkRestart, Exclusive: f.Exclusive, Timeout: timeout(f.model.Timeout),
	}
	var errs []error
	var err error
	if compiled.Flow, err = c.flow(f.flow); err != nil {
		errs = append(errs, err)
	}
	if compiled.Finally, err = c.flow(f.finally); err != nil {
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
	file     *File
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

// checkDatabases checks every database that the file names, and the transaction attributes that are required
// of it (rule T4).
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
		switch {
		case s.child == nil:
			c.checkStepDatabases(s)
		case s.child.file == nil:
			c.problems.Add(s.child.model.Node.Find("file"), s.child.missing, "")
		}
	}
	if c.file.flow != nil {
		c.file.flow.walk(func(e *elementDef) {
			if e.kind == atomicKind {
				c.checkGroup(e)
			}
		})
	}
}

func (c *compiler) checkStepDatabases(s *stepDef) {
	c.checkHandler(s)
	good := true
	for _, u := range withNested(s.components()...) {
		name, has := u.database()
		if !has || name == "" {
			continue
		}
		if _, err := c.deps.Provider.Database(name); err != nil {
			c.problems.Add(u.find("database"), u.what+": "+err.Error(), "")
			good = false
		}
	}
	if !good {
		return
	}
	db, err := c.deps.Provider.Database(c.database(s))
	if err != nil {
		return // reported
	}
	if t := c.file.transaction(s); t != nil {
		c.checkAttr(t, db, c.attr(s))
	}
	c.checkConnections(s)
	if p := s.model.Partition; p != nil && p.Workers != nil {
		if err := step.CheckPool(db, *p.Workers); err != nil {
			c.problems.Add(p.Node.Get("workers"), "workers: "+err.Error(), "")
		}
	}
}

// checkAttr reports transaction attributes that the database does not support.
func (c *compiler) checkAttr(t *transactionModel, db tx.Database, attr tx.Attr) {
	err := db.Check(attr)
	if err == nil {
		return
	}
	at := t.Node
	for _, key := range []string{"propagation", "read_only", "isolation"} {
		for _, node := range []*yamlfile.Node{c.file.model.Defaults.Node.Get("transaction"), t.Node} {
			if written := node.Get(key); written != nil {
				at = written
			}
		}
	}
	c.problems.Add(at, "transaction: "+err.Error(), "")
}

// database is the name of the step's own database, used by its writers or its tasklet, else the job's.
func (c *compiler) database(s *stepDef) string {
	for _, u := range append([]*componentUse{s.tasklet}, withNested(s.writers...)...) {
		if name, _ := u.database(); name != "" {
			return name
		}
	}
	return c.file.model.Database
}

// attr is the transaction of a tasklet step, or of each chunk.
func (c *compiler) attr(s *stepDef) tx.Attr {
	attr := c.file.transaction(s).attr()
	if attr.Propagation == "" && s.tasklet != nil && s.tasklet.component.NoTransaction {
		attr.Propagation = tx.NotSupported
	}
	return attr
}

func (t *transactionModel) attr() tx.Attr {
	if t == nil {
		return tx.Attr{}
	}
	return tx.Attr{
		Propagation: tx.Propagation(t.Propagation), Isolation: isolation(t.Isolation), ReadOnly: t.ReadOnly, Timeout: timeout(t.Timeout),
	}
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

func (c *compiler) bind(ctx context.Context, params core.Parameters) error {
	return c.file.bind(ctx, c.deps.Secrets, params)
}

// bind decodes every config with the values known at launch, so that a value that does not fit, or a missing
// secret, refuses the launch before an execution exists.
func (f *File) bind(ctx context.Context, secrets Secrets, params core.Parameters) error {
	problems := f.doc.NewCollector()
	f.checkSecrets(ctx, secrets, problems)
	if err := problems.Err(); err != nil {
		return err
	}
	for _, u := range f.components() {
		f.config(u, f.launchValues(params).with(ctx, secrets).confined(ctx, confine.From(ctx).Confinement(), nil), problems)
	}
	for _, s := range f.steps {
		if s.child != nil {
			f.bindChild(s.child, params, problems)
		}
		if s.tasks != nil {
			if _, err := f.payloads(s, f.launchValues(params)); err != nil {
				problems.Add(s.tasks.model.Items.node, err.Error(), "")
			}
		}
	}
	return problems.Err()
}

// config decodes a config with values into a fresh struct. It returns nil if the component has none.
func (f *File) config(u *componentUse, v *values, problems *yamlfile.Collector) any {
	if u.component.Config == nil {
		return nil
	}
	b := &binding{file: f, use: u, collector: problems, types: f.types, values: v, env: v.env(u.env)}
	cfg, _ := b.decode()
	return cfg
}
