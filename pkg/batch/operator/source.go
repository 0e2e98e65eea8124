package operator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/job"
)

// Check reads a job file and checks the parameters that a request gives, without a
// database: its components need no New. The error is a Refusal. Parameters that lack
// or are wrong pass where an incrementer may make them: the run judges them.
func Check(components *registry.Registry, req RunRequest) (*jobfile.File, error) {
	file, err := load(components, req.File)
	if err != nil {
		return nil, err
	}
	if file.Incrementer() == "" && !req.Next {
		if _, err := job.ValidateParameters(file.Parameters(), req.Params); err != nil {
			return file, &Refusal{Reason: ReasonParameters, Err: err, Actions: []Action{{Kind: ActHelp, File: req.File}}}
		}
	}
	return file, nil
}

func load(components *registry.Registry, path string) (*jobfile.File, error) {
	file, err := jobfile.Load(path, components)
	if err != nil {
		return nil, &Refusal{Reason: ReasonFile, Err: err}
	}
	return file, nil
}

// definition is a job that was found and is not compiled yet.
type definition struct {
	file *jobfile.File // nil: a job of Go code
	job  *core.Job     // compiled; nil: file is to be compiled
	path string        // of file, as it was named
}

// find finds the job of a request.
func (s *Service) find(ctx context.Context, from source) (definition, error) {
	switch {
	case from.job != nil:
		return definition{job: from.job}, nil
	case from.checked != nil:
		return definition{file: from.checked, path: from.checked.Path()}, nil
	case from.file != "":
		return s.read(from.file)
	case from.name != "":
		return s.named(ctx, from.name)
	}
	return definition{}, &Refusal{Reason: ReasonFile, Err: errors.New("the request names no job: a file or a name is needed")}
}

func (s *Service) read(path string) (definition, error) {
	file, err := load(s.config.Registry, path)
	return definition{file: file, path: path}, err
}

// named finds a job by its name: one of Config.Jobs, a file that this service has run,
// or the file of the newest execution.
func (s *Service) named(ctx context.Context, name string) (definition, error) {
	if s.config.Jobs != nil {
		j, err := s.config.Jobs(ctx, name)
		if err == nil {
			return definition{job: j}, nil
		}
		if !errors.Is(err, core.ErrNoSuchJob) {
			return definition{}, fmt.Errorf("job %w", err)
		}
	}
	if path, ok := s.files.Load(name); ok {
		return s.read(path.(string)) //nolint:forcetypeassert // only compile stores
	}
	page, err := s.config.Repository.Executions(ctx, core.ExecutionFilter{JobName: name, Limit: 1})
	if err != nil {
		return definition{}, err
	}
	if len(page) == 0 || page[0].Definition.Path == "" {
		return definition{}, &Refusal{Reason: ReasonNoSuchJob,
			Err: fmt.Errorf("job %s: %w: no execution of it says where its file is", name, core.ErrNoSuchJob)}
	}
	return s.read(page[0].Definition.Path)
}

// ofExecution finds the job of an execution: that of the request, else the one that it
// was started with.
func (s *Service) ofExecution(ctx context.Context, from source, e *core.JobExecution) (definition, error) {
	if from != (source{}) {
		d, err := s.find(ctx, from)
		return d, withAction(err, e.ID, s.goOn(e, true))
	}
	if e.Definition.Path == "" && s.config.Jobs != nil {
		return s.named(ctx, e.JobName)
	}
	if e.Definition.Path == "" {
		return definition{}, &Refusal{Reason: ReasonFile, Execution: e.ID,
			Err: fmt.Errorf("execution %d does not know its job file", e.ID), Actions: []Action{s.goOn(e, true)}}
	}
	d, err := s.read(e.Definition.Path)
	return d, withAction(err, e.ID, s.goOn(e, true))
}

// stored is ofExecution, and takes a file that is gone from the history.
func (s *Service) stored(ctx context.Context, from source, e *core.JobExecution, hooks Hooks) (definition, error) {
	path := e.Definition.Path
	_, missing := os.Stat(path)
	if from != (source{}) || e.Definition.Text == "" || !errors.Is(missing, fs.ErrNotExist) {
		return s.ofExecution(ctx, from, e)
	}
	hooks.notice(Notice{Kind: NoticeFileGone, Execution: e.ID, File: path})
	file, err := jobfile.Parse(path, []byte(e.Definition.Text), s.config.Registry)
	if err != nil {
		return definition{}, &Refusal{Reason: ReasonFile, Execution: e.ID, Err: err}
	}
	return definition{file: file, path: path}, nil
}

// compile makes the job of a definition. components are the service's, or
// what watches them.
func (s *Service) compile(d definition, components *registry.Registry) (*core.Job, error) {
	if d.job != nil {
		return d.job, nil
	}
	j, err := d.file.Compile(s.deps(components))
	if err != nil {
		return nil, &Refusal{Reason: ReasonFile, Err: err}
	}
	return s.located(j, d.path)
}

func (s *Service) deps(components *registry.Registry) jobfile.Deps {
	return jobfile.Deps{Provider: s.config.Provider, Registry: components, FileMode: s.config.FileMode}
}

// located keeps where the file of a job is.
func (s *Service) located(j *core.Job, path string) (*core.Job, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("job file: %w", err)
	}
	j.Definition.Path = abs
	s.files.Store(j.Name, abs)
	return j, nil
}
