package operator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/surfin-batch/surfin/internal/confine"
	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/operator/catalog"
	"github.com/surfin-batch/surfin/internal/place"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

type jobs struct {
	places  *place.Set
	judge   *judge
	records interface {
		Executions(ctx context.Context, filter ports.ExecutionFilter) ([]core.JobExecution, error)
	}
	files       map[string]*jobfile.File
	build       func(ctx context.Context, name string) (*model.Job, error) // Config.Jobs
	definitions taskports.Definitions                                      // may be nil
	registry    *registry.Registry
	compiler    jobfile.Deps // without a registry
	seen        sync.Map     // a jobfile.Source by the job's name
}

type definition struct {
	file  *jobfile.File // nil for a job of Go code
	job   *model.Job    // compiled; if nil, file is to be compiled
	path  string        // of file, as in the request
	given map[string]string
}

// reading is a context in which the files of a job are read.
func (s *jobs) reading(ctx context.Context, j *model.Job) context.Context {
	return place.With(confine.With(ctx, confine.New(j.Confinement)), s.places)
}

func (d definition) specs() []core.ParameterSpec {
	if d.job != nil {
		return d.job.Parameters
	}
	return d.file.Parameters()
}

func (s *jobs) find(ctx context.Context, from jobSource) (definition, error) {
	switch {
	case from.job != nil:
		return definition{job: from.job}, nil
	case from.checked != nil:
		return definition{file: from.checked, path: from.checked.Path()}, nil
	case !from.from.IsZero():
		return s.read(ctx, from.from)
	case from.name != "":
		return s.named(ctx, from.name)
	}
	return definition{}, &Refusal{Reason: refusal.File, Err: errors.New("the request names no job: set a file or a name")}
}

// named finds a job: one of Config.Files or Config.Jobs, a registered one, a
// file that this service has run, or the newest execution's.
func (s *jobs) named(ctx context.Context, name string) (definition, error) {
	return s.byName(ctx, name, true)
}

// byName is named; without here it leaves out files that only this service has run.
func (s *jobs) byName(ctx context.Context, name string, here bool) (definition, error) {
	if file := s.files[name]; file != nil {
		return definition{file: file, path: file.Path()}, nil
	}
	if s.build != nil {
		j, err := s.build(ctx, name)
		if err == nil {
			return definition{job: j}, nil
		}
		if !errors.Is(err, ports.ErrNoSuchJob) {
			return definition{}, fmt.Errorf("job %w", err)
		}
	}
	if d, ok, err := s.registered(ctx, name); ok || err != nil {
		return d, err
	}
	if from, ok := s.seen.Load(name); ok && here {
		return s.read(ctx, from.(jobfile.Source)) //nolint:forcetypeassert // only compile stores
	}
	page, err := s.records.Executions(ctx, ports.ExecutionFilter{JobName: name, Limit: 1})
	if err != nil {
		return definition{}, err
	}
	if len(page) == 0 || page[0].Definition.Path == "" {
		return definition{}, &Refusal{Reason: refusal.NoSuchJob,
			Err: fmt.Errorf("job %s: %w: no execution of it has the path of its file", name, ports.ErrNoSuchJob)}
	}
	return s.read(ctx, jobfile.Path(page[0].Definition.Path))
}

func (s *jobs) registered(ctx context.Context, name string) (d definition, ok bool, err error) {
	if s.definitions == nil {
		return definition{}, false, nil
	}
	stored, err := s.definitions.Definition(ctx, name)
	if errors.Is(err, core.ErrNotFound) {
		return definition{}, false, nil
	}
	if err != nil {
		return definition{}, false, err
	}
	file, _, err := s.storedFile(stored.Files, name)
	if err != nil {
		return definition{}, false, &Refusal{Reason: refusal.File, Err: fmt.Errorf("the registered file of job %s: %w", name, err)}
	}
	return definition{file: file, path: file.Path()}, true, nil
}

type parsedKey struct{}

// withParsed lets what follows parse each job file once, as a dry run for many executions should.
func withParsed(ctx context.Context) context.Context {
	return context.WithValue(ctx, parsedKey{}, map[string]*jobfile.File{})
}

func (s *jobs) read(ctx context.Context, from jobfile.Source) (definition, error) {
	d := definition{path: from.String()}
	parsed, _ := ctx.Value(parsedKey{}).(map[string]*jobfile.File) //nolint:errcheck // absent is nil
	if d.file = parsed[d.path]; d.file != nil {
		return d, nil
	}
	var err error
	if d.file, err = catalog.Load(s.registry, from); err == nil && parsed != nil {
		parsed[d.path] = d.file
	}
	return d, err
}

func (s *jobs) ofExecution(ctx context.Context, from jobSource, e *core.JobExecution, hooks Hooks) (definition, error) {
	if !from.isZero() {
		d, err := s.find(ctx, from)
		return d, withAction(err, e.ID, s.judge.restartAction(e, true))
	}
	if e.Definition.Path == "" {
		d, err := s.named(ctx, e.JobName)
		var r *Refusal
		if errors.As(err, &r) && r.Reason == refusal.NoSuchJob && e.Definition.Text != "" {
			if there, wrong := s.ofHistory(e); wrong == nil { // else it is from a program that had the job
				hooks.notice(Notice{Kind: NoticeFileGone, Execution: e.ID})
				return there, nil
			}
		}
		if errors.As(err, &r) && r.Reason == refusal.NoSuchJob && s.build == nil {
			err = &Refusal{Reason: refusal.File, Execution: e.ID, Actions: []Action{s.judge.restartAction(e, true)},
				Err: fmt.Errorf("execution %d has no job file in the history", e.ID)}
		}
		return d, err
	}
	d, err := s.read(ctx, jobfile.Path(e.Definition.Path))
	if errors.Is(err, fs.ErrNotExist) { // it was started from the registered file, on a machine without the file
		if there, ok, failure := s.registered(ctx, e.JobName); ok && there.path == e.Definition.Path || failure != nil {
			return there, failure
		}
	}
	return d, withAction(err, e.ID, s.judge.restartAction(e, true))
}

func (s *jobs) stored(ctx context.Context, from jobSource, e *core.JobExecution, hooks Hooks) (definition, error) {
	was := e.Definition
	if !from.isZero() || was.Text == "" || s.files[e.JobName] != nil {
		return s.ofExecution(ctx, from, e, hooks)
	}
	_, change, path := onDisk(was)
	if change != FileGone {
		return s.ofExecution(ctx, from, e, hooks)
	}
	hooks.notice(Notice{Kind: NoticeFileGone, Execution: e.ID, File: path})
	return s.ofHistory(e)
}

func (s *jobs) ofHistory(e *core.JobExecution) (definition, error) {
	file, err := jobfile.ParseStored(e.Definition, e.JobName, s.registry)
	if err != nil {
		return definition{}, &Refusal{Reason: refusal.File, Execution: e.ID, Err: err}
	}
	return definition{file: file, path: e.Definition.Path}, nil
}

func (s *jobs) carries(name string) bool {
	return s.build != nil || s.files[name] != nil
}

func (s *jobs) storedFile(d core.Definition, name string) (file, carried *jobfile.File, err error) {
	if d.Path == "" {
		carried = s.files[name]
	}
	if carried != nil {
		file, err = carried.Earlier(d, s.registry)
	} else {
		file, err = jobfile.ParseStored(d, name, s.registry)
	}
	return file, carried, err
}

func (s *jobs) jobOf(ctx context.Context, e *core.JobExecution) *model.Job {
	if e.Definition.Path == "" && s.files[e.JobName] == nil && s.build != nil {
		if j, err := s.build(ctx, e.JobName); err == nil {
			return j
		}
	}
	if e.Definition.Text == "" && s.files[e.JobName] == nil {
		return nil
	}
	file, _, err := s.storedFile(e.Definition, e.JobName)
	if err != nil {
		return nil
	}
	j, err := s.compileFile(file)
	if err != nil {
		return nil
	}
	return j
}

// StoredJob builds the job of an execution from its stored definition and
// parameters. It reads no job file.
func (s *jobs) StoredJob(ctx context.Context, e core.JobExecution) (*model.Job, error) {
	d := e.Definition
	if d.Text == "" {
		return nil, errors.New("the execution has no stored definition: its job was built in Go")
	}
	f, _, err := s.storedFile(e.Definition, e.JobName)
	if err != nil {
		return nil, fmt.Errorf("the stored definition: %w", err)
	}
	j, err := s.compileFile(f)
	if err != nil {
		return nil, err
	}
	if j.Definition.Hash != d.Hash {
		return nil, fmt.Errorf("the stored definition has hash %s, but the execution has %s", j.Definition.Hash, d.Hash)
	}
	if j.Bind != nil {
		if err := j.Bind(ctx, e.Params); err != nil {
			return nil, err
		}
	}
	return j, nil
}

func (s *jobs) compile(d definition, hooks Hooks) (*model.Job, error) {
	if d.job != nil {
		return d.job, nil
	}
	j, err := d.file.Compile(s.depsOf(d, s.watched(hooks)))
	if err != nil {
		return nil, &Refusal{Reason: refusal.File, Err: err}
	}
	return s.located(j, d), nil
}

func (s *jobs) compileFile(file *jobfile.File) (*model.Job, error) {
	return file.Compile(s.deps(s.registry))
}

func (s *jobs) watched(hooks Hooks) *registry.Registry {
	if hooks.OnTarget == nil {
		return s.registry
	}
	return watch(s.registry, hooks.OnTarget)
}

func (s *jobs) depsOf(d definition, components *registry.Registry) jobfile.Deps {
	deps := s.deps(components)
	deps.Secrets = jobfile.Given(d.given, deps.Secrets)
	return deps
}

func (s *jobs) deps(components *registry.Registry) jobfile.Deps {
	deps := s.compiler
	deps.Registry = components
	return deps
}

func (s *jobs) located(j *model.Job, d definition) *model.Job {
	s.seen.Store(j.Name, d.file.Source())
	return j
}

// withoutSecrets removes the values of secret parameters: they are not stored
// or shown with a launch.
func withoutSecrets(d definition, req RunRequest) (RunRequest, map[string]string, error) {
	given := map[string]string{}
	for _, spec := range d.specs() {
		if !spec.Secret {
			continue
		}
		if value, ok := req.Params[spec.Name]; ok {
			given[spec.Name] = value
		}
		if req.Exactly == nil {
			continue
		}
		if p, ok := req.Exactly.Get(spec.Name); ok {
			given[spec.Name] = p.Text()
		}
	}
	if len(given) == 0 {
		return req, nil, nil
	}
	isGiven := func(name, _ string) bool { _, ok := given[name]; return ok }
	if req.Params = maps.Clone(req.Params); req.Params != nil {
		maps.DeleteFunc(req.Params, isGiven)
	}
	if req.Task != 0 {
		return req, nil, &Refusal{Reason: refusal.Parameters, Err: fmt.Errorf("the secret parameters %s cannot be set by a task, because its payload is stored: give the workers these secrets",
			strings.Join(slices.Sorted(maps.Keys(given)), ", "))}
	}
	if req.Exactly != nil {
		left, err := core.NewParameters(slices.DeleteFunc(req.Exactly.All(), func(p core.Parameter) bool { return isGiven(p.Name, "") })...)
		if err != nil {
			return req, nil, err
		}
		req.Exactly = &left
	}
	return req, given, nil
}

// Check reads a job file and checks the parameters, without a database. The
// error is a Refusal. Missing or wrong parameters pass if an incrementer may
// make them.
func Check(components *registry.Registry, req RunRequest) (*jobfile.File, error) {
	file := req.Checked
	if file == nil {
		var err error
		if file, err = catalog.Load(components, fileOf(req.Source, req.File)); err != nil {
			return nil, err
		}
	}
	if file.Incrementer() == "" && !req.Next {
		if _, err := job.ValidateParameters(file.Parameters(), typed(file.Parameters(), req.Params, req.Folder)); err != nil {
			return file, &Refusal{Reason: refusal.Parameters, Err: err, Actions: []Action{{Kind: refusal.ActHelp, File: req.File}}}
		}
	}
	return file, nil
}
