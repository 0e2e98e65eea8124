package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/schedule"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// TimeRunRequest requests the run of a schedule for a time, by hand.
type TimeRunRequest struct {
	Job string
	// Time is as for schedule.Cron.At; "" means now.
	Time string
	// DryRun only shows the run.
	DryRun bool
	By     By
}

// RunTime submits the run of a schedule for a time as the leader would, once
// for each time (rule OP18).
func (s *TaskService) RunTime(ctx context.Context, req TimeRunRequest) (*taskports.TimeRun, error) {
	if s.runs.Run == nil {
		return nil, errors.New("this service has no schedules")
	}
	var run *taskports.TimeRun
	err := s.manager.Do(ctx, tx.Attr{ReadOnly: req.DryRun}, func(ctx context.Context) (err error) {
		run, err = s.runTime(ctx, req)
		return err
	})
	if err != nil {
		return nil, refusalOf(err)
	}
	return run, nil
}

func (s *TaskService) runTime(ctx context.Context, req TimeRunRequest) (*taskports.TimeRun, error) {
	d, err := s.runs.scheduled(ctx, req)
	if err != nil {
		return nil, err
	}
	run, sub, err := s.timeRun(ctx, d, req.Time)
	if err != nil || run.ID != 0 {
		return run, err
	}
	earlier, err := forbidding(ctx, s.tasks, d)
	if err != nil {
		return nil, err
	}
	if earlier != 0 {
		return nil, refuse(refusal.Running, fmt.Errorf("job %s: its schedule has overlap: forbid, and its task %d is not over: wait for it, or cancel it", d.Name, earlier))
	}
	warning, err := s.NoWorker(ctx)
	if warning != "" {
		run.Warnings = []string{warning}
	}
	if err != nil || req.DryRun {
		return run, err
	}
	accepted, err := s.submit(ctx, sub)
	if err != nil {
		return nil, err
	}
	run.ID, run.Status, run.Applied, run.Warnings = accepted.Tasks[0], task.Pending, true, append(run.Warnings, accepted.Warnings...)
	detail := fmt.Sprintf("for %s, task %d", run.Key, run.ID)
	if req.By.Reason != "" {
		detail += ": " + req.By.Reason
	}
	return run, s.runs.Definitions.NoteRun(ctx, d.Name, s.who(ctx, req.By), detail)
}

func (r TimeRuns) scheduled(ctx context.Context, req TimeRunRequest) (d taskports.Definition, err error) {
	read := r.Definitions.Lock
	if req.DryRun {
		read = r.Definitions.Definition
	}
	d, err = read(ctx, req.Job)
	switch {
	case errors.Is(err, core.ErrNotFound):
		return d, refuse(refusal.NoSuchJob, fmt.Errorf("job %s is not registered: %w", req.Job, ports.ErrNoSuchJob))
	case err == nil && d.Schedule == nil:
		return d, refuse(refusal.Invalid, fmt.Errorf("job %s has no schedule: run it by its name", req.Job))
	}
	return d, err
}

// timeRun returns the run, with the task that it has, and its submission.
func (s *TaskService) timeRun(ctx context.Context, d taskports.Definition, text string) (*taskports.TimeRun, task.Submission, error) {
	var sub task.Submission
	c, err := schedule.Of(*d.Schedule)
	if err != nil {
		return nil, sub, refuse(refusal.File, fmt.Errorf("the schedule of job %s: %w", d.Name, err))
	}
	now, err := s.runs.Definitions.Now(ctx)
	if err != nil {
		return nil, sub, err
	}
	at, due, err := c.At(text, now)
	if err != nil {
		return nil, sub, refuse(refusal.Invalid, fmt.Errorf("time: %w", err))
	}
	if sub, err = s.runs.of(ctx, d, at); err != nil {
		return nil, sub, err
	}
	var payload struct {
		Params map[string]string `json:"params"`
	}
	if err := json.Unmarshal(sub.Tasks[0].Payload, &payload); err != nil {
		return nil, sub, fmt.Errorf("the run of job %s at %s: %w", d.Name, at.Key, err)
	}
	run := &taskports.TimeRun{Job: d.Name, Key: at.Key, At: at.At.In(c.Zone()), Timezone: c.Zone().String(), Due: due, Params: payload.Params}
	had, err := runOf(ctx, s.tasks, d, at.Key)
	if had != nil {
		run.ID, run.Status = had.ID, had.State
	}
	return run, sub, err
}
