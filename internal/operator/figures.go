package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/schedule"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// FiguresSource reads figures of the history: a repository.Repository.
type FiguresSource interface {
	// Figures returns all figures except the schedules', and when the oldest scheduled run of each
	// definition that has not begun was submitted, by the definition's ID.
	Figures(ctx context.Context) (core.Figures, map[int64]time.Time, error)
}

// Figures reads numbers of the whole history, for metrics, with five statements (rule OP1). It
// queries once: an unreachable database is an error, and is not waited for.
func (s *Service) Figures(ctx context.Context) (core.Figures, error) {
	if s.config.Figures == nil {
		return core.Figures{}, fmt.Errorf("figures of the history: %w", core.ErrNotFound)
	}
	f, waiting, err := s.config.Figures.Figures(ctx)
	if err != nil || s.config.Definitions == nil {
		return f, err
	}
	list, err := s.config.Definitions.Definitions(ctx, taskports.DefinitionFilter{Scheduled: true})
	for _, d := range list {
		// A schedule that this program does not understand has no times here: `schedules` reports
		// why.
		if c, err := schedule.Of(*d.Schedule); err == nil {
			f.Schedules = append(f.Schedules, scheduleFigure(c, d, f.At, waiting[d.ID]))
		}
	}
	return f, err
}

// scheduleFigure returns the figure of one schedule. since is when its oldest run that has not
// begun was submitted.
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
