package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// backfills run the instances of a range as tasks (rule OP17).
type backfills struct {
	runs    *runs
	records interface {
		Instances(ctx context.Context, filter ports.InstanceFilter) ([]ports.JobInstance, error)
	}
}

// The instances that a back-fill by tasks runs.
const (
	OnlyMissing = "missing"
	OnlyFailed  = "failed"
	OnlyAll     = "all"
)

// BackfillTasksRequest requests a task for each instance of a range.
type BackfillTasksRequest struct {
	// Wait, Stop, Done and the hooks have no meaning. Parallel bounds the tasks that are begun.
	BackfillRequest
	// Only is OnlyMissing, OnlyFailed (run, and not complete), or OnlyAll; empty means all.
	Only string
	// Expect is the number of instances that the caller saw; 0 means any.
	Expect int
}

// BackfillEffect is the predicted effect on an instance.
type BackfillEffect string

// The effects. Tasks are submitted for the first two.
const (
	BackfillNew     BackfillEffect = "new"
	BackfillResume  BackfillEffect = "resume"
	BackfillLeft    BackfillEffect = "left_out"
	BackfillRefused BackfillEffect = "refused"
)

type (
	// BackfillPlan is the predicted effect on each instance of a range.
	BackfillPlan struct {
		Job      string         `json:"job"`
		Param    string         `json:"param"`
		Selected int            `json:"selected" doc:"How many instances would run"`
		Items    []BackfillItem `json:"items" doc:"All values of the range"`
	}
	// BackfillItem is the predicted effect on the instance of a value.
	BackfillItem struct {
		Value     string              `json:"value"`
		Effect    BackfillEffect      `json:"effect" enum:"new,resume,left_out,refused" doc:"new and resume run; left_out is complete, or not selected by only"`
		Execution core.JobExecutionID `json:"execution,omitempty" doc:"The newest execution of the instance"`
		Status    core.Status         `json:"status,omitempty" doc:"Its status"`
		Refused   *Refusal            `json:"refused,omitempty"`

		params map[string]string
	}
)

// PlanBackfill predicts the effect on each instance of a range. Changes of the job file are compared for
// two seconds.
func (s *backfills) PlanBackfill(ctx context.Context, req BackfillTasksRequest) (*BackfillPlan, error) {
	if !slices.Contains([]string{"", OnlyMissing, OnlyFailed, OnlyAll}, req.Only) {
		return nil, &RequestError{Field: "only", Value: req.Only, Reason: "no such selection", Allowed: []string{OnlyMissing, OnlyFailed, OnlyAll}}
	}
	if req.Parallel < 0 {
		return nil, &RequestError{Field: "parallel", Value: fmt.Sprint(req.Parallel), Reason: "must be at least 1"}
	}
	if err := s.runs.schema.Prepare(ctx); err != nil {
		return nil, err
	}
	l, instances, err := s.instances(ctx, &req)
	if err != nil {
		return nil, err
	}
	newest, err := s.newest(ctx, l.job.Name, instances)
	if err != nil {
		return nil, err
	}
	plan := &BackfillPlan{Job: l.job.Name, Param: req.Param, Items: make([]BackfillItem, 0, len(instances))}
	compare := time.Now().Add(bulkPlanTime)
	for _, of := range instances {
		item := BackfillItem{Value: of.value, Effect: BackfillNew, params: of.given}
		l.params = of.params
		if last, is := newest[of.params.Key()]; is {
			if err := s.judge(ctx, &item, l, req, last, time.Now().Before(compare)); err != nil {
				return nil, err
			}
		} else if req.Only == OnlyFailed {
			item.Effect = BackfillLeft
		}
		if item.Effect == BackfillNew || item.Effect == BackfillResume {
			plan.Selected++
		}
		plan.Items = append(plan.Items, item)
	}
	return plan, nil
}

// instances checks the range, the parameters and their paths, and that workers know the job.
func (s *backfills) instances(ctx context.Context, req *BackfillTasksRequest) (*launch, []instanceOf, error) {
	d, j, instances, err := s.runs.backfillOf(ctx, &req.BackfillRequest, maxDays)
	if err != nil {
		return nil, nil, err
	}
	asTask := req.RunRequest
	asTask.Task = 1 // as a task gets them
	if _, _, err := withoutSecrets(d, asTask); err != nil {
		return nil, nil, err
	}
	if _, err := s.runs.jobs.byName(ctx, j.Name, false); err != nil {
		if !errors.Is(err, ports.ErrNoSuchJob) {
			return nil, nil, err
		}
		return nil, nil, &Refusal{Reason: refusal.NoSuchJob, Actions: []Action{{Kind: refusal.ActRegister, File: d.path, Job: j.Name}},
			Err: fmt.Errorf("workers do not know job %s: it is not registered, and no execution of it has the path of its file", j.Name)}
	}
	l := &launch{definition: d, job: j}
	l.confine(ctx, instances[0].given, nil)
	for _, of := range instances {
		l.params = of.params
		if _, err := l.checkPaths(ctx); err != nil {
			return nil, nil, err
		}
	}
	return l, instances, nil
}

// newest are the newest attempts of the instances that have one, by key.
func (s *backfills) newest(ctx context.Context, job string, instances []instanceOf) (map[string]ports.NewestAttempt, error) {
	found := map[string]ports.NewestAttempt{}
	for batch := range slices.Chunk(instances, maxDays/2) {
		filter := ports.InstanceFilter{JobName: job, Limit: len(batch)}
		for _, of := range batch {
			filter.Keys = append(filter.Keys, of.params.Key())
		}
		list, err := s.records.Instances(ctx, filter)
		if err != nil || len(list) == 0 {
			return found, err
		}
		ids := make([]core.JobInstanceID, len(list))
		for i, of := range list {
			ids[i] = of.ID
		}
		attempts, err := s.runs.judge.records.NewestAttempts(ctx, s.runs.judge.dead, ids...)
		if err != nil {
			return nil, err
		}
		for _, of := range list {
			if last, is := attempts[of.ID]; is {
				found[of.Key] = last
			}
		}
	}
	return found, nil
}

func (s *backfills) judge(ctx context.Context, item *BackfillItem, l *launch, req BackfillTasksRequest, last ports.NewestAttempt, compare bool) error {
	item.Execution, item.Status = last.Execution.ID, last.Execution.Status
	if item.Effect = BackfillLeft; item.Status == core.StatusCompleted || req.Only == OnlyMissing {
		return nil
	}
	item.Effect = BackfillResume
	err := last.Refusal(l.job.Restartable)
	switch {
	case err != nil:
		err = s.runs.admission.refused(ctx, err, l)
	case compare && l.file != nil && !req.AcceptChanges:
		var e *core.JobExecution
		if e, err = s.runs.judge.found(ctx, item.Execution); err == nil {
			_, err = s.runs.changes.changes(ctx, e, l)
		}
	}
	if err != nil {
		item.Effect = BackfillRefused
		item.Refused, err = refusedIn(err)
	}
	return err
}

// BackfillTasks returns the tasks of a back-fill, one for each instance that would run now.
func (s *backfills) BackfillTasks(ctx context.Context, req BackfillTasksRequest) (task.Submission, error) {
	plan, err := s.PlanBackfill(ctx, req)
	if err != nil {
		return task.Submission{}, err
	}
	if n := plan.Selected; req.Expect != 0 && n != req.Expect {
		return task.Submission{}, &Refusal{Reason: refusal.Moved, Err: fmt.Errorf("%s would run now, and %d were expected: look at them again", humanize.Plural(n, "instance"), req.Expect)}
	}
	if plan.Selected == 0 {
		return task.Submission{}, &Refusal{Reason: refusal.NotFound, Err: fmt.Errorf("no instance of job %s from %s to %s is left to run", plan.Job, req.From, req.To),
			Actions: []Action{{Kind: refusal.ActHistory, Job: plan.Job}}}
	}
	title, reason := titleOf(ctx, fmt.Sprintf("back-fill of %s by %s from %s to %s: %s", plan.Job, plan.Param, req.From, req.To, humanize.Plural(plan.Selected, "instance")))
	sub := task.Submission{Title: title, Type: task.TypeJob, Parallel: max(req.Parallel, 1), Budget: bulkBudget()}
	for _, item := range plan.Items {
		if item.Effect != BackfillNew && item.Effect != BackfillResume {
			continue
		}
		payload, err := json.Marshal(JobTask{
			Job: plan.Job, Params: item.params, Backfill: plan.Param, AcceptChanges: req.AcceptChanges, Actor: s.runs.actor.of(ctx), Reason: reason,
		})
		if err != nil {
			return sub, err
		}
		sub.Tasks = append(sub.Tasks, task.Spec{Key: item.Value, Title: fmt.Sprintf("run %s with %s=%s", plan.Job, plan.Param, item.Value), Payload: payload})
	}
	return sub, nil
}
