package batchtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// A long lease adds no heartbeats to observations. Dead processes are known by their pid.
const (
	lease     = 10 * time.Minute
	heartbeat = 2 * time.Minute
)

// Option adjusts an [Env].
type Option func(*config)

type config struct {
	dir    string
	urls   map[string]string
	opts   []fx.Option
	faults *Faults
}

// On runs on this database (sqlite:PATH or postgres://...), which also holds the history, instead of an own
// SQLite file.
func On(url string) Option { return OnDatabase(tx.Default, url) }

// OnDatabase adds a named database.
func OnDatabase(name, url string) Option { return func(c *config) { c.urls[name] = url } }

// With adds registrations and other options of the application.
func With(opts ...fx.Option) Option { return func(c *config) { c.opts = append(c.opts, opts...) } }

// WithFaults makes components fail. A fault that never fires fails the test.
func WithFaults(faults ...Fault) Option {
	return func(c *config) { c.faults.add(faults) }
}

// Env is an application for one test, closed when it ends. Its methods end the test at once if they fail.
type Env struct {
	t        testing.TB
	app      *batch.App
	config   config
	registry *registry.Registry
	provider tx.Provider
	launcher *job.Launcher
}

// New builds an application for t.
func New(t testing.TB, opts ...Option) *Env {
	t.Helper()
	c := config{dir: t.TempDir(), urls: map[string]string{}, faults: NewFaults()}
	for _, o := range opts {
		o(&c)
	}
	if c.urls[tx.Default] == "" {
		c.urls[tx.Default] = sqliteURL(t)
	}
	e := open(t, c)
	t.Cleanup(func() {
		e.close()
		if never := c.faults.Unfired(); len(never) > 0 && !t.Failed() {
			t.Errorf("these faults never fired, so the test was not about them:\n%s", strings.Join(never, "\n"))
		}
	})
	return e
}

func sqliteURL(t testing.TB) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "test.db")
}

func open(t testing.TB, c config) *Env {
	t.Helper()
	e := &Env{t: t, config: c}
	opts := append([]fx.Option{fx.Populate(&e.registry, &e.provider, &e.launcher), c.faults.Option(), batch.Log(nil)}, c.opts...)
	app, err := batch.New(t.Context(), c.settings(), opts...)
	if err != nil {
		t.Fatalf("batchtest: open the application: %v", err)
	}
	e.app = app
	if err := app.Prepare(t.Context()); err != nil {
		e.close()
		t.Fatalf("batchtest: prepare the history of executions: %v", err)
	}
	return e
}

func (c config) settings() batch.Settings {
	s := batch.Settings{
		Databases:   map[string]settings.Database{},
		Repository:  settings.Repository{Database: tx.Default, Prefix: repositoryPrefix},
		AutoMigrate: settings.MigrateAlways,
		Lease:       lease, Heartbeat: heartbeat,
	}
	for name, url := range c.urls {
		s.Databases[name] = settings.Database{URL: url}
	}
	return s
}

func (e *Env) close() {
	e.t.Helper()
	if err := e.app.Close(context.WithoutCancel(e.t.Context())); err != nil {
		e.t.Errorf("batchtest: %v", err)
	}
}

// Dir returns a folder for the test's files.
func (e *Env) Dir() string { return e.config.dir }

// Path returns the path of a file in Dir.
func (e *Env) Path(name string) string { return filepath.Join(e.config.dir, filepath.FromSlash(name)) }

// File writes a file into Dir and returns its path.
func (e *Env) File(name, text string) string {
	e.t.Helper()
	path := e.Path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		e.t.Fatalf("batchtest: %v", err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		e.t.Fatalf("batchtest: %v", err)
	}
	return path
}

// Database returns a database by name; "" is the default.
func (e *Env) Database(name string) tx.Database {
	e.t.Helper()
	db, err := e.provider.Database(name)
	if err != nil {
		e.t.Fatalf("batchtest: %v", err)
	}
	return db
}

// Repository returns the history of executions.
func (e *Env) Repository() ports.Repository { return e.app.Repository }

// Job runs a job file on a fresh SQLite file: New(t).Job(file, params...).
func Job(t testing.TB, file string, params ...string) *Run {
	t.Helper()
	return New(t).Job(file, params...)
}

// Job runs a job file to its end; params are NAME=VALUE. A refused launch ends the test; a failed job does
// not: check the [Run].
func (e *Env) Job(file string, params ...string) *Run {
	e.t.Helper()
	r, err := e.Launch(file, params...)
	if err != nil {
		e.t.Fatalf("batchtest: run %s: %v", file, err)
	}
	return r
}

// Named is Job for a registered job, such as one in Go.
func (e *Env) Named(name string, params ...string) *Run {
	e.t.Helper()
	exec, err := e.app.Run(e.t.Context(), batch.RunRequest{Name: name, Params: e.given(params)})
	if err != nil {
		e.t.Fatalf("batchtest: run %s: %v", name, err)
	}
	return e.outcome(exec.ID)
}

// Launch is Job that returns the error of [batch.App.Run], for wrong files and refused launches.
func (e *Env) Launch(file string, params ...string) (*Run, error) {
	e.t.Helper()
	exec, err := e.app.Run(e.t.Context(), batch.RunRequest{File: file, Params: e.given(params)})
	if err != nil {
		return nil, err
	}
	return e.outcome(exec.ID), nil
}

// Step runs one step of a job file as a job of one step. The results of earlier steps are missing: the test
// must prepare them.
func (e *Env) Step(file, step string, params ...string) *Run {
	e.t.Helper()
	f, err := jobfile.Load(file, e.registry)
	if err != nil {
		e.t.Fatalf("batchtest: %v", err)
	}
	values, err := job.ValidateParameters(f.Parameters(), e.given(params))
	if err != nil {
		e.t.Fatalf("batchtest: %v", err)
	}
	j, err := f.Compile(jobfile.Deps{Provider: e.provider, Registry: e.registry})
	if err != nil {
		e.t.Fatalf("batchtest: %v", err)
	}
	found, ok := j.Flow.Find(step)
	if !ok {
		e.t.Fatalf("batchtest: %s has no step %q", file, step)
	}
	alone, ok := found.(*model.StepElement)
	if !ok {
		e.t.Fatalf("batchtest: %q of %s is a %T, not a step", step, file, found)
	}
	only := *alone
	only.Next = nil
	j.Flow.Elements = []model.Element{&only}
	j.Name += "/" + step
	return e.run(j, values)
}

// RunStep runs a step made in Go (chunk.New, step.NewTasklet) as a job of one step. A second call continues
// after a failed first one.
func (e *Env) RunStep(s model.Step) *Run {
	e.t.Helper()
	return e.run(&model.Job{
		Name: "test/" + s.Name(), Restartable: true, Definition: core.Definition{Hash: "batchtest", Text: "batchtest"},
		Flow: model.Flow{Elements: []model.Element{&model.StepElement{Step: s}}},
	}, core.Parameters{})
}

func (e *Env) run(j *model.Job, params core.Parameters) *Run {
	e.t.Helper()
	exec, err := e.launcher.Run(e.t.Context(), j, params, nil)
	if err != nil {
		e.t.Fatalf("batchtest: run %s: %v", j.Name, err)
	}
	return e.outcome(exec.ID)
}

func (e *Env) given(params []string) map[string]string {
	e.t.Helper()
	given, err := parameters(params)
	if err != nil {
		e.t.Fatalf("batchtest: %v", err)
	}
	return given
}

func parameters(words []string) (map[string]string, error) {
	given := map[string]string{}
	for _, w := range words {
		name, value, ok := strings.Cut(w, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("parameter %q is not NAME=VALUE", w)
		}
		given[name] = value
	}
	return given, nil
}
