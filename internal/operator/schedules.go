package operator

import (
	"context"
	"time"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/schedule"
)

// SchedulesRequest requests the due times of registered jobs.
type SchedulesRequest struct {
	// Count is the number of times of each job to return, at most 1000; 0 means 1.
	Count int `json:"count,omitempty"`
}

type (
	// ScheduleView is the schedule of a registered job that is enabled.
	ScheduleView struct {
		Job string `json:"job"`
		taskports.Schedule
		// DecidedUntil is the time up to which scheduled times were submitted or skipped.
		DecidedUntil time.Time `json:"decided_until"`
		// Due are the times up to now that a server submits next, and Missed the number that it
		// skips; 100 means that many or more.
		Due    []ScheduledTime `json:"due,omitempty"`
		Missed int             `json:"missed,omitempty"`
		// Next are the first times after now.
		Next []ScheduledTime `json:"next,omitempty"`
		// Error is why this program does not understand the schedule; then there are no times.
		Error string `json:"error,omitempty"`
	}

	// ScheduledTime is one time of a schedule.
	ScheduledTime struct {
		// Key is the local time that identifies the run.
		Key string `json:"key"`
		// At is in the time zone of the schedule. It differs from Key if a clock change skips that
		// time.
		At time.Time `json:"at"`
	}
)

const maxNextTimes = 1000

// Schedules lists the schedules of registered jobs that are enabled, by name, with the times at
// which they are due, computed by the same code as in a server.
func (s *Service) Schedules(ctx context.Context, req SchedulesRequest) ([]ScheduleView, error) {
	if req.Count < 0 || req.Count > maxNextTimes {
		return nil, &RequestError{Field: "count", Reason: "1 to 1000 times can be asked for"}
	}
	list, err := s.definitions(ctx, taskports.DefinitionFilter{Scheduled: true})
	views := make([]ScheduleView, 0, len(list))
	for _, d := range list {
		view := ScheduleView{Job: d.Name, Schedule: *d.Schedule, DecidedUntil: d.ScheduledUntil}
		if err := view.foresee(s.config.Now(), max(req.Count, 1)); err != nil {
			view.Error = err.Error()
		}
		views = append(views, view)
	}
	return views, err
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
