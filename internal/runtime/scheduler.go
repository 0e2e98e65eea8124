package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/schedule"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// SchedulerConfig configures a Scheduler.
type SchedulerConfig struct {
	Definitions taskports.Definitions
	// Tasks submits in the duty's transaction.
	Tasks   *TaskService
	Queries taskports.TaskQueries
	// Run returns the submission for a time, without JobDefinition,
	// ScheduledFor and IdempotencyKey. An error leaves the definition until the
	// next call.
	Run func(ctx context.Context, d taskports.Definition, at schedule.Time) (task.Submission, error)
	// Report receives errors and skipped times; may be nil.
	Report func(err error)
}

// Scheduler submits the runs of schedules (rules S1 to S6). It is a duty of the
// leader.
type Scheduler struct{ config SchedulerConfig }

// NewScheduler checks the configuration.
func NewScheduler(config SchedulerConfig) (*Scheduler, error) {
	if config.Definitions == nil || config.Tasks == nil || config.Queries == nil || config.Run == nil {
		return nil, errors.New("a scheduler needs definitions, a service of tasks, queries and a run")
	}
	if config.Report == nil {
		config.Report = func(error) {}
	}
	return &Scheduler{config}, nil
}

// Duty submits the due runs of all definitions and moves their decided times in
// one transaction.
func (s *Scheduler) Duty(every time.Duration) Duty {
	return Duty{Name: "submit scheduled runs", Every: every, Do: s.submitDue}
}

func (s *Scheduler) submitDue(ctx context.Context) (more bool, err error) {
	now, err := s.config.Definitions.Now(ctx)
	if err != nil {
		return false, err
	}
	list, err := s.config.Definitions.Definitions(ctx, taskports.DefinitionFilter{Scheduled: true})
	if err != nil {
		return false, err
	}
	for _, d := range list {
		due, err := dueOf(d, now)
		if err != nil {
			s.config.Report(fmt.Errorf("the schedule of job %s: %w", d.Name, err))
			continue
		}
		if len(due.Times) == 0 && due.Missed == 0 {
			continue
		}
		submitted, err := s.submit(ctx, d.Name, now)
		if err != nil {
			return false, fmt.Errorf("the schedule of job %s: %w", d.Name, err)
		}
		more = more || submitted && due.More
	}
	return more, nil
}

func dueOf(d taskports.Definition, now time.Time) (schedule.Due, error) {
	c, err := schedule.Of(*d.Schedule)
	if err != nil {
		return schedule.Due{}, err
	}
	return c.Due(d.ScheduledUntil, now, schedule.CatchUp(d.Schedule.CatchUp))
}

func (s *Scheduler) submit(ctx context.Context, name string, now time.Time) (bool, error) {
	d, err := s.config.Definitions.Definition(ctx, name)
	if err != nil {
		return false, err
	}
	if d.Schedule == nil {
		return false, errMoved
	}
	due, err := dueOf(d, now) // of the files as they are now
	if err != nil {
		return false, err
	}
	runs := make([]task.Submission, 0, len(due.Times))
	for _, at := range due.Times {
		run, err := s.config.Run(ctx, d, at)
		if err != nil { // this process may lack a component that another has
			s.config.Report(fmt.Errorf("job %s at %s: %w", name, at.Key, err))
			return false, nil
		}
		for i := range run.Tasks {
			run.Tasks[i].JobDefinition, run.Tasks[i].ScheduledFor = d.ID, at.Key
			run.Tasks[i].IdempotencyKey = fmt.Sprintf(ownKeys+"time %d %s", d.ID, at.Key)
		}
		runs = append(runs, run)
	}
	left, err := s.submitAll(ctx, d, due, runs)
	if err != nil {
		return false, err
	}
	note := leftOut(due.Missed, left)
	if note != "" {
		s.config.Report(fmt.Errorf("job %s: %s", name, note))
	}
	moved, err := s.config.Definitions.Advance(ctx, d, due.Until, note)
	if err == nil && !moved {
		err = errMoved
	}
	return err == nil, err
}

// errMoved rolls back: another process has changed the definition, and the next
// call reads it again.
var errMoved = errors.New("it was changed meanwhile")

func (s *Scheduler) submitAll(ctx context.Context, d taskports.Definition, due schedule.Due, runs []task.Submission) (left []string, err error) {
	busy := false
	if schedule.Overlap(d.Schedule.Overlap) == schedule.OverlapForbid && len(runs) > 0 {
		earlier, err := s.config.Queries.Tasks(ctx, task.Filter{JobDefinition: d.ID, Unfinished: true, Limit: 1})
		if err != nil {
			return nil, err
		}
		busy = len(earlier) > 0
	}
	for i, run := range runs {
		if busy {
			left = append(left, due.Times[i].Key)
			continue
		}
		_, err := s.config.Tasks.submit(ctx, run)
		if errors.Is(err, taskports.ErrOtherSubmission) { // this local time was run before, by another zone or version
			left = append(left, due.Times[i].Key)
			continue
		}
		if err != nil {
			return nil, err
		}
		busy = schedule.Overlap(d.Schedule.Overlap) == schedule.OverlapForbid
	}
	return left, nil
}

const maxNamed = 10

func leftOut(missed int, left []string) string {
	var parts []string
	if missed > 0 {
		parts = append(parts, fmt.Sprintf("%d times were missed", missed))
	}
	if len(left) > 0 {
		parts = append(parts, "skipped, because an earlier run is not over or had the same local time: "+strings.Join(left[:min(len(left), maxNamed)], ", "))
	}
	return strings.Join(parts, "; ")
}
