package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/schedule"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// SchedulesRequest requests the due times of registered jobs.
type SchedulesRequest struct {
	// Count is at most 1000; 0 means 1.
	Count int `json:"count,omitempty"`
}

type (
	// ScheduleView is the schedule of a registered job. A disabled one has no
	// times.
	ScheduleView struct {
		Job     string `json:"job"`
		Enabled bool   `json:"enabled"`
		taskports.Schedule
		// Times up to DecidedUntil were submitted or skipped.
		DecidedUntil time.Time `json:"decided_until"`
		// Due are times that a server submits next, Missed those that it skips,
		// at most 100.
		Due    []ScheduledTime `json:"due,omitempty"`
		Missed int             `json:"missed,omitempty"`
		Next   []ScheduledTime `json:"next,omitempty"`
		// Error is why this program does not understand the schedule.
		Error string `json:"error,omitempty"`
	}

	// ScheduledTime is one time of a schedule.
	ScheduledTime struct {
		// Key is the local time that identifies the run.
		Key string `json:"key"`
		// At differs from Key if a clock change skips that time.
		At time.Time `json:"at"`
	}
)

const maxNextTimes = 1000

// Schedules lists the schedules by name, the enabled ones with their due times,
// computed as in a server.
func (s *schedules) Schedules(ctx context.Context, req SchedulesRequest) ([]ScheduleView, error) {
	if req.Count < 0 || req.Count > maxNextTimes {
		return nil, &RequestError{Field: "count", Reason: "must be from 1 to 1000"}
	}
	list, err := s.definitions(ctx, taskports.DefinitionFilter{})
	views := make([]ScheduleView, 0, len(list))
	for _, d := range list {
		if d.Schedule == nil {
			continue
		}
		views = append(views, foreseen(d, s.now(), max(req.Count, 1)))
	}
	return views, err
}

func foreseen(d taskports.Definition, now time.Time, count int) ScheduleView {
	view := ScheduleView{Job: d.Name, Enabled: d.Enabled, Schedule: *d.Schedule, DecidedUntil: d.ScheduledUntil}
	err := d.Unreadable
	if err == nil {
		err = view.foresee(now, count)
	}
	if err != nil {
		view.Error = err.Error()
	}
	return view
}

func (v *ScheduleView) foresee(now time.Time, count int) error {
	c, err := schedule.Of(v.Schedule)
	if err != nil {
		return err
	}
	zone := c.Zone()
	due, err := c.Due(v.DecidedUntil, now, schedule.CatchUp(v.CatchUp))
	if err != nil {
		return err
	}
	if !v.Enabled {
		return nil
	}
	v.Missed = due.Missed
	for _, t := range due.Times {
		v.Due = append(v.Due, ScheduledTime{t.Key, t.At.In(zone)})
	}
	for t := range c.All(now) {
		if v.Next = append(v.Next, ScheduledTime{t.Key, t.At.In(zone)}); len(v.Next) == count {
			break
		}
	}
	return nil
}

// ScheduledRuns makes the run of a registered job at a scheduled time: one task
// of type job. Wrong parameters are submitted, so the run's refusal reports
// them. A job without an incrementer, with constant parameters, runs again each
// time (RunRequest.Again).
func ScheduledRuns(s *Service) func(ctx context.Context, d taskports.Definition, at schedule.Time) (task.Submission, error) {
	return s.scheduledRun
}

func (s *schedules) scheduledRun(_ context.Context, d taskports.Definition, at schedule.Time) (task.Submission, error) {
	file, _, err := s.jobs.storedFile(d.Files, d.Name)
	if err != nil {
		return task.Submission{}, err
	}
	planned := file.Schedule()
	if planned == nil {
		return task.Submission{}, errors.New("the stored file has no schedule")
	}
	texts, err := planned.Parameters(at)
	if err != nil && !errors.As(err, new(*ports.ParameterError)) {
		return task.Submission{}, err
	}
	payload, err := json.Marshal(JobTask{
		Job: d.Name, Params: texts, Again: file.Incrementer() == "" && !planned.Varies(),
		Retry: d.Budget != task.Budget{}, InTurn: planned.Overlap == schedule.OverlapQueue,
		CatchUp: file.Incrementer() != "" && texts[file.Incrementer()] == "",
	})
	if err != nil {
		return task.Submission{}, err
	}
	title := fmt.Sprintf("%s %s", d.Name, at.Key)
	return task.Submission{Title: title, Type: task.TypeJob, Budget: d.Budget, Tasks: []task.Spec{{Title: title, Payload: payload, On: file.On()}}}, nil
}
