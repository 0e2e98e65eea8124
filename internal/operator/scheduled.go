package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/schedule"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// ScheduledRuns returns a function that makes the run of a registered job at a scheduled time: a
// group with one task of type job, and the budget of the file. Parameters that break their
// declarations at this time are submitted unchanged, so that the refusal of the run reports them.
//
// A job that has no incrementer, and has the same parameters at all times, is run again each time
// (RunRequest.Again).
func ScheduledRuns(s *Service) func(ctx context.Context, d taskports.Definition, at schedule.Time) (task.Submission, error) {
	return s.scheduledRun
}

func (s *Service) scheduledRun(_ context.Context, d taskports.Definition, at schedule.Time) (task.Submission, error) {
	file, _, err := s.storedFile(d.Files, d.Name)
	if err != nil {
		return task.Submission{}, err
	}
	planned := file.Schedule()
	if planned == nil {
		return task.Submission{}, errors.New("the stored file has no schedule")
	}
	texts, err := planned.Parameters(at)
	if err != nil && !errors.As(err, new(*core.ParameterError)) {
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
