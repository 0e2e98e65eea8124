package operator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Check reads a job file and checks the parameters of a request, without a database: its components
// need no New. The error is a Refusal. Missing or wrong parameters pass if an incrementer may make
// them: the run judges them.
func Check(components *registry.Registry, req RunRequest) (*jobfile.File, error) {
	file := req.Checked
	if file == nil {
		var err error
		if file, err = load(components, fileOf(req.Source, req.File)); err != nil {
			return nil, err
		}
	}
	if file.Incrementer() == "" && !req.Next {
		if _, err := job.ValidateParameters(file.Parameters(), typed(file.Parameters(), req.Params, req.Folder)); err != nil {
			return file, &Refusal{Reason: ReasonParameters, Err: err, Actions: []Action{{Kind: ActHelp, File: req.File}}}
		}
	}
	return file, nil
}

func load(components *registry.Registry, from jobfile.Source) (*jobfile.File, error) {
	file, err := from.Load(components)
	if err != nil {
		return nil, &Refusal{Reason: ReasonFile, Err: err}
	}
	return file, nil
}

// definition is a job that was found and is not compiled yet.
type definition struct {
	file *jobfile.File // nil for a job of Go code
	job  *model.Job    // compiled; if nil, file is to be compiled
	path string        // of file, as in the request
	// given are the values of the request's secret parameters, by name.
	given map[string]string
}

func (s *Service) find(ctx context.Context, from source) (definition, error) {
	switch {
	case from.job != nil:
		return definition{job: from.job}, nil
	case from.checked != nil:
		return definition{file: from.checked, path: from.checked.Path()}, nil
	case !from.from.IsZero():
		return s.read(from.from)
	case from.name != "":
		return s.named(ctx, from.name)
	}
	return definition{}, &Refusal{Reason: ReasonFile, Err: errors.New("the request names no job: a file or a name is needed")}
}

func (s *Service) read(from jobfile.Source) (definition, error) {
	file, err := load(s.config.Registry, from)
	return definition{file: file, path: from.String()}, err
}

func (s *Service) carries(name string) bool {
	return s.config.Jobs != nil || s.config.Files[name] != nil
}

// named finds a job by its name: one of Config.Files or Config.Jobs, a registered one, a file that
// this service has run, or the file of the newest execution.
func (s *Service) named(ctx context.Context, name string) (definition, error) {
	if file := s.config.Files[name]; file != nil {
		return definition{file: file, path: file.Path()}, nil
	}
	if s.config.Jobs != nil {
		j, err := s.config.Jobs(ctx, name)
		if err == nil {
			return definition{job: j}, nil
		}
		if !errors.Is(err, core.ErrNoSuchJob) {
			return definition{}, fmt.Errorf("job %w", err)
		}
	}
	if d, ok, err := s.registered(ctx, name); ok || err != nil {
		return d, err
	}
	if from, ok := s.files.Load(name); ok {
		return s.read(from.(jobfile.Source)) //nolint:forcetypeassert // only compile stores
	}
	page, err := s.config.Repository.Executions(ctx, ports.ExecutionFilter{JobName: name, Limit: 1})
	if err != nil {
		return definition{}, err
	}
	if len(page) == 0 || page[0].Definition.Path == "" {
		return definition{}, &Refusal{Reason: ReasonNoSuchJob,
			Err: fmt.Errorf("job %s: %w: no execution of it says where its file is", name, core.ErrNoSuchJob)}
	}
	return s.read(jobfile.Path(page[0].Definition.Path))
}

// ofExecution finds the job of an execution: the request's, else the one with which it was started.
// A job without a file, such as the job of `copy`, is in the history.
func (s *Service) ofExecution(ctx context.Context, from source, e *core.JobExecution, hooks Hooks) (definition, error) {
	if !from.isZero() {
		d, err := s.find(ctx, from)
		return d, withAction(err, e.ID, s.restartAction(e, true))
	}
	if e.Definition.Path == "" {
		d, err := s.named(ctx, e.JobName)
		var r *Refusal
		if errors.As(err, &r) && r.Reason == ReasonNoSuchJob && e.Definition.Text != "" {
			if there, wrong := s.ofHistory(e); wrong == nil { // else it is from a program that had the job
				hooks.notice(Notice{Kind: NoticeFileGone, Execution: e.ID})
				return there, nil
			}
		}
		if errors.As(err, &r) && r.Reason == ReasonNoSuchJob && s.config.Jobs == nil {
			err = &Refusal{Reason: ReasonFile, Execution: e.ID, Actions: []Action{s.restartAction(e, true)},
				Err: fmt.Errorf("execution %d does not know its job file", e.ID)}
		}
		return d, err
	}
	d, err := s.read(jobfile.Path(e.Definition.Path))
	if errors.Is(err, fs.ErrNotExist) { // it was started from the registered file, on a machine without the file
		if there, ok, failure := s.registered(ctx, e.JobName); ok && there.path == e.Definition.Path || failure != nil {
			return there, failure
		}
	}
	return d, withAction(err, e.ID, s.restartAction(e, true))
}

// stored is ofExecution, and takes missing files from the history.
func (s *Service) stored(ctx context.Context, from source, e *core.JobExecution, hooks Hooks) (definition, error) {
	was := e.Definition
	if !from.isZero() || was.Text == "" || s.config.Files[e.JobName] != nil {
		return s.ofExecution(ctx, from, e, hooks)
	}
	_, change, path := onDisk(was)
	if change != FileGone {
		return s.ofExecution(ctx, from, e, hooks)
	}
	hooks.notice(Notice{Kind: NoticeFileGone, Execution: e.ID, File: path})
	return s.ofHistory(e)
}

func (s *Service) ofHistory(e *core.JobExecution) (definition, error) {
	file, err := jobfile.ParseStored(e.Definition, e.JobName, s.config.Registry)
	if err != nil {
		return definition{}, &Refusal{Reason: ReasonFile, Execution: e.ID, Err: err}
	}
	return definition{file: file, path: e.Definition.Path}, nil
}

// compile makes the job of a definition. components are the service's, or the registry that watches
// them.
func (s *Service) compile(d definition, components *registry.Registry) (*model.Job, error) {
	if d.job != nil {
		return d.job, nil
	}
	j, err := d.file.Compile(s.depsOf(d, components))
	if err != nil {
		return nil, &Refusal{Reason: ReasonFile, Err: err}
	}
	return s.located(j, d), nil
}

func (s *Service) deps(components *registry.Registry) jobfile.Deps {
	return jobfile.Deps{
		Provider: s.config.Provider, Registry: components, FileMode: s.config.FileMode, Tasks: s.config.Tasks, Distributed: s.config.Distributed,
		Secrets: s.config.Secrets,
	}
}

func (s *Service) depsOf(d definition, components *registry.Registry) jobfile.Deps {
	deps := s.deps(components)
	deps.Secrets = jobfile.Given(d.given, deps.Secrets)
	return deps
}

func (s *Service) located(j *model.Job, d definition) *model.Job {
	s.files.Store(j.Name, d.file.Source())
	return j
}
