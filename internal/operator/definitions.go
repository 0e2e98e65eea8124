package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/schedule"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type schedules struct {
	schema     *schema
	jobs       *jobs
	registered taskports.Definitions // may be nil
	figures    FiguresSource         // may be nil
	now        func() time.Time
	actor      actor
}

// RegisterRequest registers a job file with the servers that share the history.
type RegisterRequest struct {
	// The first that is set, as in RunRequest.
	Checked *jobfile.File  `json:"-"`
	Source  jobfile.Source `json:"-"`
	File    string         `json:"file,omitempty"`
}

type (
	// DefinitionView is a registered job.
	DefinitionView struct {
		Job string `json:"job"`
		// Version is the hash of the job file and of the files that it names.
		Version  string              `json:"version"`
		File     string              `json:"file,omitempty"`
		Enabled  bool                `json:"enabled"`
		Schedule *taskports.Schedule `json:"schedule,omitempty"`
		Budget   BudgetView          `json:"budget"`
		Created  time.Time           `json:"created"`
		Updated  time.Time           `json:"updated"`
		By       string              `json:"updated_by"`
		Error    string              `json:"error,omitempty" doc:"Why stored data of it are left out: they cannot be read"`
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
		Before  string `json:"before,omitempty"`
		Changed bool   `json:"changed"`
	}
)

var errNoDefinitions = errors.New("this service stores no registered jobs")

// Register stores a job file, with the files that it names, under its job's
// name. A wrong one is a Refusal (refusal.File), and the registered one stays.
// A new name is enabled.
func (s *schedules) Register(ctx context.Context, req RegisterRequest) (*Registered, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	d, err := s.jobs.find(ctx, jobSource{checked: req.Checked, from: fileOf(req.Source, req.File)})
	if err != nil {
		return nil, err
	}
	if _, err := s.jobs.compile(d, Hooks{}); err != nil {
		return nil, err
	}
	made, err := s.registered.Register(ctx, definitionOf(d.file), s.actor.of(ctx))
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
func (s *schedules) Definitions(ctx context.Context) ([]DefinitionView, error) {
	list, err := s.definitions(ctx, taskports.DefinitionFilter{})
	views := make([]DefinitionView, 0, len(list))
	for _, d := range list {
		views = append(views, definitionView(d))
	}
	return views, err
}

func (s *schedules) definitions(ctx context.Context, filter taskports.DefinitionFilter) ([]taskports.Definition, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	return s.registered.Definitions(ctx, filter)
}

// Unregister removes a registered job. Running executions continue, and its
// history stays. A task that waits to run it fails. An unregistered name is
// refused.
func (s *schedules) Unregister(ctx context.Context, name string) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	err := s.registered.Unregister(ctx, name, s.actor.of(ctx))
	return notRegistered(err, name)
}

// Enable activates a schedule from now on: missed times are not caught up. An
// unregistered name is refused.
func (s *schedules) Enable(ctx context.Context, name string) (*DefinitionView, error) {
	view, _, err := s.EnableAnswer(ctx, name)
	return view, err
}

// EnableAnswer is Enable, and reports whether it was enabled before.
func (s *schedules) EnableAnswer(ctx context.Context, name string) (*DefinitionView, core.Answer, error) {
	return s.setEnabled(ctx, name, true)
}

// Disable deactivates a schedule. Running and submitted work continues.
func (s *schedules) Disable(ctx context.Context, name string) (*DefinitionView, error) {
	view, _, err := s.DisableAnswer(ctx, name)
	return view, err
}

// DisableAnswer is Disable, and reports whether it was disabled before.
func (s *schedules) DisableAnswer(ctx context.Context, name string) (*DefinitionView, core.Answer, error) {
	return s.setEnabled(ctx, name, false)
}

func (s *schedules) setEnabled(ctx context.Context, name string, enabled bool) (*DefinitionView, core.Answer, error) {
	if err := s.ready(ctx); err != nil {
		return nil, "", err
	}
	d, changed, err := s.registered.EnableDefinition(ctx, name, enabled, s.actor.of(ctx))
	if err != nil {
		return nil, "", notRegistered(err, name)
	}
	view := definitionView(d)
	if !changed {
		return &view, core.Duplicate, nil
	}
	return &view, core.Applied, nil
}

func definitionView(d taskports.Definition) DefinitionView {
	b := d.Budget.Filled()
	return DefinitionView{
		Job: d.Name, Version: d.Files.Hash, File: d.Files.Path, Enabled: d.Enabled, Schedule: d.Schedule,
		Budget:  BudgetView{b.MaxAttempts, b.MaxTotalAttempts, b.Deadline.Seconds(), b.MaxNoProgress},
		Created: d.CreatedAt, Updated: d.UpdatedAt, By: d.UpdatedBy, Error: withUnreadable("", d.Unreadable),
	}
}

func (s *schedules) ready(ctx context.Context) error {
	if s.registered == nil {
		return errNoDefinitions
	}
	return s.schema.Prepare(ctx)
}

func notRegistered(err error, name string) error {
	if errors.Is(err, core.ErrNotFound) {
		return &Refusal{Reason: refusal.NoSuchJob, Err: fmt.Errorf("job %s is not registered: %w", name, ports.ErrNoSuchJob)}
	}
	return err
}

// Figures reads numbers of the history for metrics, with five statements (rule
// OP1). It does not wait for an unreachable database.
func (s *schedules) Figures(ctx context.Context) (core.Figures, error) {
	if s.figures == nil {
		return core.Figures{}, fmt.Errorf("figures of the history: %w", core.ErrNotFound)
	}
	f, waiting, err := s.figures.Figures(ctx)
	if err != nil || s.registered == nil {
		return f, err
	}
	list, err := s.registered.Definitions(ctx, taskports.DefinitionFilter{Scheduled: true})
	for _, d := range list {
		// This program may not understand it: `schedules` reports why.
		if c, err := schedule.Of(*d.Schedule); err == nil {
			f.Schedules = append(f.Schedules, scheduleFigure(c, d, f.At, waiting[d.ID]))
		}
	}
	return f, err
}

func scheduleFigure(c *schedule.Cron, d taskports.Definition, now, since time.Time) core.ScheduleFigure {
	v := core.ScheduleFigure{JobName: d.Name, Next: c.Next(now).At}
	if undecided := c.Next(d.ScheduledUntil).At; since.IsZero() && !undecided.IsZero() && !undecided.After(now) {
		since = undecided // no leader has submitted its run
	}
	if !since.IsZero() {
		v.Late = max(0, now.Sub(since))
	}
	return v
}
