package api

import (
	"context"
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
)

type (
	backfillInput struct {
		JobPath
		KeyHeader
		Body BackfillBody
	}
	// BackfillBody selects instances of a job by a range.
	BackfillBody struct {
		Param         string                     `json:"param" maxLength:"200" doc:"An identifying parameter of type date or int"`
		From          string                     `json:"from" maxLength:"50" doc:"First value, such as 2026-11-01"`
		To            string                     `json:"to" maxLength:"50" doc:"Last value; at most 1,000 values are between them"`
		Step          int64                      `json:"step,omitempty" minimum:"0" doc:"Takes each so-manyth value; 0 means 1"`
		Params        map[string]json.RawMessage `json:"params,omitempty" doc:"The other parameters, as of a run; not secret ones"`
		Parallel      int                        `json:"parallel,omitempty" minimum:"0" maximum:"1000" doc:"How many instances may run at once, on all workers; 0 means 1"`
		Only          string                     `json:"only,omitempty" enum:"missing,failed,all" doc:"Which instances: those that never ran, those that ran and are not complete, or both (the default). Complete ones are always left out"`
		AcceptChanges bool                       `json:"accept_changes,omitempty" doc:"Resume instances although the job file has changed in parts with committed work"`
		Expect        int                        `json:"expect,omitempty" minimum:"0" maximum:"1000" doc:"How many instances you saw: if another number would run now, nothing is done"`
		DryRun        bool                       `json:"dry_run,omitempty" doc:"Only show the effect on each value, or the reason of its refusal"`
		ReasonBody
	}
	backfillAnswer struct {
		Selected int           `json:"selected" doc:"How many instances run, or would run"`
		Plan     *backfillPlan `json:"plan,omitempty" doc:"With dry_run: the effect"`
		Group    *submitted    `json:"group,omitempty" doc:"The group of tasks, one for each instance; cancel it to end the rest"`
	}
	backfillPlan operator.BackfillPlan
)

func addBackfill(a *api, h huma.API) {
	huma.Register(h, post(h, "backfill-job", "/v1/jobs/{job}/backfill", "Run the instances of a range",
		"Submits a group of tasks, one for each date or number without a complete instance: workers run new instances, and resume failed and stopped ones."),
		func(ctx context.Context, in *backfillInput) (*keyed[backfillAnswer], error) {
			if in.Body.DryRun {
				in.Key = ""
			}
			return together(a, ctx, in.Key, request{"backfill-job", in.Job, in.Body}, func(ctx context.Context, key ports.RequestKey) (*backfillAnswer, error) {
				return in.do(ctx, a, key)
			})
		})
}

func (in *backfillInput) do(ctx context.Context, a *api, key ports.RequestKey) (*backfillAnswer, error) {
	b := &in.Body
	ctx, err := b.because(ctx)
	if err != nil {
		return nil, err
	}
	file, err := a.Jobs.File(in.Job)
	if err != nil {
		return nil, err
	}
	params, err := texts(b.Params)
	if err != nil {
		return nil, err
	}
	req := operator.BackfillTasksRequest{Only: b.Only, Expect: b.Expect, BackfillRequest: operator.BackfillRequest{
		RunRequest: operator.RunRequest{Checked: file, Params: params, AcceptChanges: b.AcceptChanges},
		Param:      b.Param, From: b.From, To: b.To, Step: b.Step, Parallel: b.Parallel,
	}}
	if b.DryRun {
		plan, err := a.Service.PlanBackfill(ctx, req)
		if err != nil {
			return nil, err
		}
		return &backfillAnswer{Selected: plan.Selected, Plan: (*backfillPlan)(plan)}, nil
	}
	sub, err := a.Service.BackfillTasks(ctx, req)
	if err != nil {
		return nil, err
	}
	group, err := a.submitAs(ctx, sub, key)
	return &backfillAnswer{Selected: len(sub.Tasks), Group: group}, err
}
