package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

type (
	bulkInput struct {
		KeyHeader
		Body BulkBody
	}
	// BulkBody selects executions and an act on them.
	BulkBody struct {
		Act        string                `json:"act" enum:"restart,redrive,stop,abandon" doc:"The act on each execution"`
		Executions []core.JobExecutionID `json:"executions,omitempty" maxItems:"10000" doc:"Numbers of executions, instead of filter"`
		Filter     *operator.ListRequest `json:"filter,omitempty" doc:"Selects executions with the filters of GET /v1/executions (params in place of param), at most 10,000"`
		Expect     int                   `json:"expect,omitempty" minimum:"0" maximum:"10000" doc:"How many executions you saw: if another number is selected now, nothing is done"`
		DryRun     bool                  `json:"dry_run,omitempty" doc:"Only show the effect on each, or the reason of its refusal"`
		After      core.JobExecutionID   `json:"after,omitempty" minimum:"0" doc:"With dry_run: next of the previous page"`
		ReasonBody
	}
	bulkAnswer struct {
		Selected int        `json:"selected" doc:"How many executions are selected"`
		Plan     *bulkPlan  `json:"plan,omitempty" doc:"With dry_run: the effect"`
		Group    *submitted `json:"group,omitempty" doc:"The group of tasks, one for each execution; cancel it to end the rest"`
	}
	bulkPlan operator.BulkPlan
)

func (a *api) addBulk(h huma.API) {
	huma.Register(h, post(h, "bulk", "/v1/bulk", "Act on many executions",
		"Submits a group of tasks, one for each execution, which workers execute: a task of a restart or redrive ends with the new execution. An execution that has changed since refuses its task."),
		func(ctx context.Context, in *bulkInput) (*keyed[bulkAnswer], error) {
			if in.Body.DryRun {
				in.Key = ""
			}
			return together(a, ctx, in.Key, request{"bulk", 0, in.Body}, func(ctx context.Context, key ports.RequestKey) (*bulkAnswer, error) {
				return a.bulk(ctx, in.Body, key)
			})
		})
}

func (a *api) bulk(ctx context.Context, b BulkBody, key ports.RequestKey) (*bulkAnswer, error) {
	ctx, err := b.because(ctx)
	if err != nil {
		return nil, err
	}
	req := operator.BulkRequest{Act: b.Act, Executions: b.Executions, Filter: b.Filter, Expect: b.Expect, Offers: func(job string) error {
		_, err := a.Jobs.File(job)
		return err
	}}
	if b.DryRun {
		plan, err := a.Service.PlanBulk(ctx, req, b.After)
		if err != nil {
			return nil, err
		}
		return &bulkAnswer{Selected: plan.Selected, Plan: (*bulkPlan)(plan)}, nil
	}
	sub, err := a.Service.Bulk(ctx, req)
	if err != nil {
		return nil, err
	}
	return a.submitActs(ctx, sub, key)
}

func (a *api) submitActs(ctx context.Context, sub task.Submission, key ports.RequestKey) (*bulkAnswer, error) {
	group, err := a.submitAs(ctx, sub, key)
	return &bulkAnswer{Selected: len(sub.Tasks), Group: group}, err
}
