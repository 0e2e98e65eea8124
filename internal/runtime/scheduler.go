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

// TimeRuns make the runs of schedules.
type TimeRuns struct {
	Definitions taskports.Definitions
	// Run returns the submission for a time, without JobDefinition,
	// ScheduledFor and IdempotencyKey. An error leaves the definition until the
	// next call.
	Run func(ctx context.Context, d taskports.Definition, at schedule.Time) (task.Submission, error)
}

// of returns the submission for a time: the same one however often it is asked.
func (r TimeRuns) of(ctx context.Context, d taskports.Definition, at schedule.Time) (task.Submission, error) {
	run, err := r.Run(ctx, d, at)
	if err != nil {
		return run, fmt.Errorf("job %s at %s: %w", d.Name, at.Key, err)
	}
	for i := range run.Tasks {
		run.Tasks[i].JobDefinition, run.Tasks[i].ScheduledFor = d.ID, at.Key
		run.Tasks[i].IdempotencyKey = fmt.Sprintf(ownKeys+"time %d %s", d.ID, at.Key)
	}
	return run, nil
}

// Scheduler submits the runs of schedules (rules S1 to S6). It is a duty of the
// leader.
type Scheduler struct {
	TimeRuns
	tasks  *TaskService
	report func(err error)
}

// NewScheduler returns the scheduler of a service with TimeRuns. It submits in
// the duty's transaction. report receives errors and skipped times; may be nil.
func NewScheduler(tasks *TaskService, report func(err error)) (*Scheduler, error) {
	if tasks == nil || tasks.runs.Definitions == nil || tasks.runs.Run == nil {
		return nil, errors.New("a scheduler needs a service of tasks with definitions and a run")
	}
	if report == nil {
		report = func(error) {}
	}
	return &Scheduler{tasks.runs, tasks, report}, nil
}

// Duty submits the due runs of all definitions and moves their decided times in
// one transaction.
func (s *Scheduler) Duty(every time.Duration) Duty {
	return Duty{Name: "submit scheduled runs", Every: every, Do: s.submitDue}
}

func (s *Scheduler) submitDue(ctx context.Context) (more bool, err error) {
	now, err := s.Definitions.Now(ctx)
	if err != nil {
		return false, err
	}
	list, err := s.Definitions.Definitions(ctx, taskports.DefinitionFilter{Scheduled: true})
	if err != nil {
		return false, err
	}
	for _, d := range list {
		due, err := dueOf(d, now)
		if err = errors.Join(d.Unreadable, err); err != nil {
			s.report(fmt.Errorf("the schedule of job %s: %w", d.Name, err))
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
	d, err := s.Definitions.Lock(ctx, name)
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
		run, err := s.of(ctx, d, at)
		if err != nil { // this process may lack a component that another has
			s.report(err)
			return false, nil
		}
		runs = append(runs, run)
	}
	left, err := s.submitAll(ctx, d, due, runs)
	if err != nil {
		return false, err
	}
	note := leftOut(due.Missed, left)
	if note != "" {
		s.report(fmt.Errorf("job %s: %s", name, note))
	}
	moved, err := s.Definitions.Advance(ctx, d, due.Until, note)
	if err == nil && !moved {
		err = errMoved
	}
	return err == nil, err
}

// forbidding returns the unfinished run that forbids another one, or 0.
func forbidding(ctx context.Context, tasks taskports.TaskQueries, d taskports.Definition) (task.ID, error) {
	if schedule.Overlap(d.Schedule.Overlap) != schedule.OverlapForbid {
		return 0, nil
	}
	earlier, err := tasks.Tasks(ctx, task.Filter{JobDefinition: d.ID, Unfinished: true, Limit: 1})
	if err != nil || len(earlier) == 0 {
		return 0, err
	}
	return earlier[0].ID, nil
}

// runOf returns the run of a time, or nil.
func runOf(ctx context.Context, tasks taskports.TaskQueries, d taskports.Definition, key string) (*task.Task, error) {
	list, err := tasks.Tasks(ctx, task.Filter{JobDefinition: d.ID, ScheduledFor: key, Limit: 1})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// errMoved rolls back: another process has changed the definition, and the next
// call reads it again.
var errMoved = errors.New("it was changed meanwhile")

func (s *Scheduler) submitAll(ctx context.Context, d taskports.Definition, due schedule.Due, runs []task.Submission) (left []string, err error) {
	earlier, err := forbidding(ctx, s.tasks.tasks, d)
	if err != nil {
		return nil, err
	}
	busy := earlier != 0
	for i, run := range runs {
		key := due.Times[i].Key
		if busy {
			byHand, err := runOf(ctx, s.tasks.tasks, d, key)
			if err != nil {
				return nil, err
			}
			if byHand == nil {
				left = append(left, key)
			}
			continue
		}
		accepted, err := s.tasks.submit(ctx, run)
		if errors.Is(err, taskports.ErrOtherSubmission) { // this local time was run before, by another zone or version
			left = append(left, key)
			continue
		}
		if err != nil {
			return nil, err
		}
		busy = schedule.Overlap(d.Schedule.Overlap) == schedule.OverlapForbid && !accepted.Duplicate
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
