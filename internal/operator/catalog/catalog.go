// Package catalog has the jobs that clients of a server may run, by name. It imports core, jobfile and
// refusal.
package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Catalog holds the only jobs that clients may run, by name. They are immutable.
type Catalog struct {
	registry *registry.Registry
	carried  map[string]*jobfile.File
	jobs     map[string]jobfile.Source
	checks   checks
}

// New makes a catalog of the carried jobs and of the job files in paths (of a
// folder, *.yaml and *.yml, not in subfolders). Errors are joined. Two jobs
// with the same name are an error.
func New(components *registry.Registry, carried map[string]*jobfile.File, paths ...string) (*Catalog, error) {
	c := &Catalog{registry: components, carried: carried, jobs: map[string]jobfile.Source{}, checks: checks{jobs: map[string]check{}}}
	var errs []error
	for _, path := range paths {
		files, err := Files(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, file := range files {
			errs = append(errs, c.add(file))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return c, nil
}

// Files returns path or, if it is a folder, its files *.yaml and *.yml, as
// absolute paths.
func Files(path string) ([]string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("jobs: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("jobs: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("jobs: %w", err)
	}
	var files []string
	for _, e := range entries {
		if extension := filepath.Ext(e.Name()); e.Type()&fs.ModeDir == 0 && (extension == ".yaml" || extension == ".yml") {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("jobs: no file *.yaml or *.yml in %s", path)
	}
	return files, nil
}

func (c *Catalog) add(path string) error {
	from, before := jobfile.Path(path), stateOf(path)
	file, err := from.Load(c.registry)
	if err != nil {
		return err
	}
	other := c.jobs[file.Name()].String()
	if own := c.carried[file.Name()]; own != nil {
		other = own.Path()
	}
	if other != "" && other != path {
		return fmt.Errorf("jobs: %s and %s both define job %s", other, path, file.Name())
	}
	c.jobs[file.Name()] = from
	c.checks.jobs[file.Name()] = checkOf(path, before, file, nil)
	return nil
}

// Names returns the jobs' names, sorted.
func (c *Catalog) Names() []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(c.jobs)), maps.Keys(c.carried))
	slices.Sort(names)
	return names
}

// File reads the job file again, so a corrected one takes effect. The error is a Refusal.
func (c *Catalog) File(name string) (*jobfile.File, error) {
	if file := c.carried[name]; file != nil {
		return file, nil
	}
	from, known := c.jobs[name]
	if !known {
		return nil, &refusal.Refusal{Reason: refusal.NoSuchJob, Err: fmt.Errorf("job %q: %w%s", name, ports.ErrNoSuchJob, nearest.Hint(name, c.Names()))}
	}
	file, err := Load(c.registry, from)
	if err == nil && file.Name() != name {
		err = &refusal.Refusal{Reason: refusal.File, Err: fmt.Errorf("%s now defines job %s; when the server started it defined job %s", from, file.Name(), name)}
	}
	return file, err
}

// Job describes a job. The error is as from File.
func (c *Catalog) Job(name string) (*JobDescription, error) {
	file, err := c.File(name)
	if err != nil {
		return nil, err
	}
	return describeJob(file), nil
}

// Jobs describes all jobs, sorted by name. For an invalid file, only name and
// error are set.
func (c *Catalog) Jobs() []JobDescription {
	list := []JobDescription{}
	for _, name := range c.Names() {
		job, err := c.Job(name)
		if err != nil {
			job = &JobDescription{JobName: name, Error: err.Error()}
		}
		list = append(list, *job)
	}
	return list
}

// JobDescription describes how a client can run a job.
type JobDescription struct {
	JobName     string                 `json:"job"`
	Description string                 `json:"description,omitempty"`
	Parameters  []ParameterDescription `json:"parameters"`
	Incrementer string                 `json:"incrementer,omitempty"`
	Steps       []string               `json:"steps,omitempty"`
	Error       string                 `json:"error,omitempty"`
}

// ParameterDescription is a declared parameter.
type ParameterDescription struct {
	Name        string             `json:"name"`
	Type        core.ParameterType `json:"type"`
	Description string             `json:"description,omitempty"`
	Required    bool               `json:"required"`
	Identifying bool               `json:"identifying"`
	Secret      bool               `json:"secret,omitempty"`
	Default     *string            `json:"default,omitempty"`
	Enum        []string           `json:"enum,omitempty"`
	Min         *string            `json:"min,omitempty"`
	Max         *string            `json:"max,omitempty"`
	Pattern     string             `json:"pattern,omitempty"`
}

func describeJob(file *jobfile.File) *JobDescription {
	d := &JobDescription{
		JobName: file.Name(), Description: file.Description(), Parameters: []ParameterDescription{},
		Incrementer: file.Incrementer(), Steps: file.Steps(),
	}
	for _, spec := range file.Parameters() {
		text := func(value any) *string {
			if value == nil {
				return nil
			}
			canonical, err := core.Parameter{Name: spec.Name, Type: spec.Type, Value: value}.Canonical()
			if err != nil {
				canonical = fmt.Sprint(value) // the loader has checked it
			}
			return &canonical
		}
		d.Parameters = append(d.Parameters, ParameterDescription{
			Name: spec.Name, Type: spec.Type, Description: spec.Doc, Required: spec.Required && spec.Default == nil, Identifying: spec.Identifying, Secret: spec.Secret,
			Default: text(spec.Default), Enum: spec.Enum, Min: text(spec.Min), Max: text(spec.Max), Pattern: spec.Pattern,
		})
	}
	return d
}

// Load reads a job file. The error is a Refusal.
func Load(components *registry.Registry, from jobfile.Source) (*jobfile.File, error) {
	file, err := from.Load(components)
	if err != nil {
		return nil, &refusal.Refusal{Reason: refusal.File, Err: err}
	}
	return file, nil
}
