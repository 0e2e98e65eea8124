package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// RegisterRequest registers a job file with the servers that share the history: they start it by
// name, and at the times of its schedule, and need no file for it.
type RegisterRequest struct {
	// The job file is the first of these that is set, as in RunRequest.
	Checked *jobfile.File  `json:"-"`
	Source  jobfile.Source `json:"-"`
	File    string         `json:"file,omitempty"`
}

type (
	// DefinitionView is a registered job.
	DefinitionView struct {
		Job string `json:"job"`
		// Version is the hash of the job file and of the files that it names.
		Version string `json:"version"`
		// File is the path of the job file; empty if it was not on a disk.
		File string `json:"file,omitempty"`
		// Enabled means that its schedule is active.
		Enabled  bool                `json:"enabled"`
		Schedule *taskports.Schedule `json:"schedule,omitempty"`
		Budget   BudgetView          `json:"budget"`
		Created  time.Time           `json:"created"`
		Updated  time.Time           `json:"updated"`
		By       string              `json:"updated_by"`
	}

	// BudgetView is a budget with its defaults filled in; 0 means no bound.
	BudgetView struct {
		MaxAttempts      int     `json:"max_attempts"`
		MaxTotalAttempts int     `json:"max_total_attempts"`
		Deadline         float64 `json:"deadline"` // seconds
		MaxNoProgress    int     `json:"max_no_progress"`
	}

	// Registered is the result of a RegisterRequest.
	Registered struct {
		DefinitionView
		// Before is the replaced version, or empty.
		Before string `json:"before,omitempty"`
		// Changed is false if the job was already registered identically.
		Changed bool `json:"changed"`
	}
)

var errNoDefinitions = errors.New("this service keeps no definitions")

// Register stores a job file, with the files that it names, under the name of its job. It is
// checked and compiled first, as for a run: a wrong one is a Refusal (ReasonFile), and the
// registered one stays. A new name is enabled. Running executions are not affected.
func (s *Service) Register(ctx context.Context, req RegisterRequest) (*Registered, error) {
	if s.config.Definitions == nil {
		return nil, errNoDefinitions
	}
	if err := s.Prepare(ctx); err != nil {
		return nil, err
	}
	d, err := s.find(ctx, source{checked: req.Checked, from: fileOf(req.Source, req.File)})
	if err != nil {
		return nil, err
	}
	if _, err := s.compile(d, s.config.Registry); err != nil {
		return nil, err
	}
	made, err := s.config.Definitions.Register(ctx, definitionOf(d.file), s.actor(ctx))
	if err != nil {
		return nil, err
	}
	return &Registered{DefinitionView: definitionView(made.Definition), Before: made.Before, Changed: made.Changed}, nil
}

func definitionOf(f *jobfile.File) taskports.Definition {
	d := taskports.Definition{Name: f.Name(), Files: f.Definition(), Budget: f.Budget()}
	if s := f.Schedule(); s != nil {
		d.Schedule = &taskports.Schedule{Cron: s.Cron.String(), Timezone: s.Cron.Zone().String(), CatchUp: string(s.CatchUp), Overlap: string(s.Overlap)}
		if s.Calendar != nil {
			days := s.Calendar.Days()
			d.Schedule.Calendar, d.Schedule.WhenClosed = &days, string(s.WhenClosed)
		}
	}
	return d
}

// Definitions lists the registered jobs by name.
func (s *Service) Definitions(ctx context.Context) ([]DefinitionView, error) {
	list, err := s.definitions(ctx, taskports.DefinitionFilter{})
	views := make([]DefinitionView, 0, len(list))
	for _, d := range list {
		views = append(views, definitionView(d))
	}
	return views, err
}

func (s *Service) definitions(ctx context.Context, filter taskports.DefinitionFilter) ([]taskports.Definition, error) {
	if s.config.Definitions == nil {
		return nil, errNoDefinitions
	}
	if err := s.Prepare(ctx); err != nil {
		return nil, err
	}
	return s.config.Definitions.Definitions(ctx, filter)
}

// Unregister removes a registered job: its schedule ends, and it can no longer be started by name.
// Running executions continue, and its history stays. A task that waits to run it fails. An
// unregistered name is refused.
func (s *Service) Unregister(ctx context.Context, name string) error {
	if s.config.Definitions == nil {
		return errNoDefinitions
	}
	if err := s.Prepare(ctx); err != nil {
		return err
	}
	err := s.config.Definitions.Unregister(ctx, name, s.actor(ctx))
	if errors.Is(err, core.ErrNotFound) {
		return &Refusal{Reason: ReasonNoSuchJob, Err: fmt.Errorf("job %s is not registered: %w", name, core.ErrNoSuchJob)}
	}
	return err
}

// Enable activates the schedule of a registered job from now on: times that were due while it was
// disabled are not caught up. An unregistered name is refused.
func (s *Service) Enable(ctx context.Context, name string) (*DefinitionView, error) {
	view, _, err := s.EnableAnswer(ctx, name)
	return view, err
}

// EnableAnswer is Enable, and also reports whether it was enabled before.
func (s *Service) EnableAnswer(ctx context.Context, name string) (*DefinitionView, core.Answer, error) {
	return s.setEnabled(ctx, name, true)
}

// Disable deactivates the schedule of a registered job. Running and submitted work continues; the
// job can still be started by name.
func (s *Service) Disable(ctx context.Context, name string) (*DefinitionView, error) {
	view, _, err := s.DisableAnswer(ctx, name)
	return view, err
}

// DisableAnswer is Disable, and also reports whether it was disabled before.
func (s *Service) DisableAnswer(ctx context.Context, name string) (*DefinitionView, core.Answer, error) {
	return s.setEnabled(ctx, name, false)
}

func (s *Service) setEnabled(ctx context.Context, name string, enabled bool) (*DefinitionView, core.Answer, error) {
	if s.config.Definitions == nil {
		return nil, "", errNoDefinitions
	}
	if err := s.Prepare(ctx); err != nil {
		return nil, "", err
	}
	d, changed, err := s.config.Definitions.EnableDefinition(ctx, name, enabled, s.actor(ctx))
	if errors.Is(err, core.ErrNotFound) {
		return nil, "", &Refusal{Reason: ReasonNoSuchJob, Err: fmt.Errorf("job %s is not registered: %w", name, core.ErrNoSuchJob)}
	}
	if err != nil {
		return nil, "", err
	}
	view := definitionView(d)
	if !changed {
		return &view, core.Duplicate, nil
	}
	return &view, core.Applied, nil
}

// registered finds a job by its registered name; ok is false if there is none.
func (s *Service) registered(ctx context.Context, name string) (d definition, ok bool, err error) {
	if s.config.Definitions == nil {
		return definition{}, false, nil
	}
	stored, err := s.config.Definitions.Definition(ctx, name)
	if errors.Is(err, core.ErrNotFound) {
		return definition{}, false, nil
	}
	if err != nil {
		return definition{}, false, err
	}
	file, _, err := s.storedFile(stored.Files, name)
	if err != nil {
		return definition{}, false, &Refusal{Reason: ReasonFile, Err: fmt.Errorf("job %s as it is registered: %w", name, err)}
	}
	return definition{file: file, path: file.Path()}, true, nil
}

func definitionView(d taskports.Definition) DefinitionView {
	b := d.Budget.Filled()
	return DefinitionView{
		Job: d.Name, Version: d.Files.Hash, File: d.Files.Path, Enabled: d.Enabled, Schedule: d.Schedule,
		Budget:  BudgetView{b.MaxAttempts, b.MaxTotalAttempts, b.Deadline.Seconds(), b.MaxNoProgress},
		Created: d.CreatedAt, Updated: d.UpdatedAt, By: d.UpdatedBy,
	}
}
