package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/danielgtaylor/huma/v2"

	"github.com/surfin-batch/surfin/internal/access"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type (
	// ActInput is embedded in the input of an act on an execution.
	ActInput struct {
		ExecutionPath
		KeyHeader
	}
	// BoundBody is embedded in the body of an act on an execution.
	BoundBody struct {
		Epoch int64 `json:"epoch,omitempty" minimum:"0" doc:"The epoch of the execution, or of the plan, that you act on: if it has another one now, nothing is done and the reason is moved. 0 means any"`
		ReasonBody
	}
	boundInput struct {
		ActInput
		Body *BoundBody
	}
	restartInput struct {
		ActInput
		Body *struct {
			RestartBody
			BoundBody
		}
	}
	// RestartBody configures the restart of an execution.
	RestartBody struct {
		FromStart     bool   `json:"from_start,omitempty" doc:"Run every step from its start"`
		From          string `json:"from,omitempty" maxLength:"1000" doc:"Run this step, or other element of the flow, and everything after it again, even if they completed"`
		IfComplete    bool   `json:"if_complete,omitempty" doc:"With from: also if the execution is COMPLETED"`
		AcceptChanges bool   `json:"accept_changes,omitempty" doc:"Continue although the job file has changed in parts with committed work"`
	}
	restartPlanInput struct {
		ExecutionPath
		Body *struct {
			RestartBody
			Sample int `json:"sample,omitempty" minimum:"0" maximum:"1000" doc:"How many items of each step are read; 0 means 20"`
		}
	}
	redriveInput struct {
		ActInput
		Body *struct {
			BoundBody
			RedriveBody
		}
	}
	redrivePlanInput struct {
		ExecutionPath
		Body *struct {
			RedriveBody
			Limit int   `json:"limit,omitempty" minimum:"0" maximum:"5000" doc:"Without items: how many are checked; 0 means 1,000"`
			After int64 `json:"after,omitempty" minimum:"0" doc:"Without items: only those with a greater number: next of the previous page"`
		}
	}
	// RedriveBody selects the items of a redrive.
	RedriveBody struct {
		Step   string                     `json:"step,omitempty" maxLength:"1000" doc:"The step whose items are redriven; empty means the only step with skipped items"`
		Params map[string]json.RawMessage `json:"params,omitempty" doc:"Changed parameters of the execution"`
		Items  []json.RawMessage          `json:"items,omitempty" doc:"Redrives only these items, as given here: skipped items as in their list, with the item or the raw text corrected; without both, as stored"`
	}
	recoverInput struct{ KeyHeader }
	recovered    struct {
		Applied    bool                 `json:"applied" doc:"False if there was none to end"`
		Executions []operator.Execution `json:"executions" doc:"The executions that were ended; they can be restarted"`
		Warning    string               `json:"warning,omitempty" doc:"Errors that did not prevent it"`
	}
)

func (a *api) addActs(h huma.API) {
	huma.Register(h, post(h, "restart-execution", "/v1/executions/{execution}/restart", "Restart it",
		"Starts another attempt of the instance with the same parameters and returns its number at once; the server runs it. The execution must be the newest of its instance and FAILED or STOPPED; with `from` and `if_complete` it may be COMPLETED."),
		func(ctx context.Context, in *restartInput) (*keyed[acted], error) {
			return once(a, ctx, in.Key, request{"restart-execution", in.ID, in.Body}, func(ctx context.Context, key ports.RequestKey) (*acted, error) {
				return a.restart(ctx, in, key)
			})
		})
	huma.Register(h, post(h, "plan-restart", "/v1/executions/{execution}/plan", "Preview a restart",
		"A dry run of its restart: reads the first items of each chunk step with the real readers and processors, and writes nothing."),
		func(ctx context.Context, in *restartPlanInput) (*output[operator.DryRun], error) {
			return answer(a, ctx, func() (*operator.DryRun, error) { return a.planRestart(ctx, in) })
		})
	huma.Register(h, post(h, "redrive-execution", "/v1/executions/{execution}/redrive", "Redrive its skipped items",
		"Starts an execution that runs the skipped items through their step again and returns its number at once; the server runs it."),
		func(ctx context.Context, in *redriveInput) (*keyed[acted], error) {
			return once(a, ctx, in.Key, request{"redrive-execution", in.ID, in.Body}, func(ctx context.Context, key ports.RequestKey) (*acted, error) {
				return a.redrive(ctx, in, key)
			})
		})
	huma.Register(h, post(h, "plan-redrive", "/v1/executions/{execution}/redrive/plan", "Preview a redrive",
		"Runs the given skipped items, or the first 1,000 that are left, through the reader and the processors of their step, and writes nothing. Says of each item whether it would be written, or what is still wrong and where. Writers are not called."),
		func(ctx context.Context, in *redrivePlanInput) (*output[operator.RedrivePlan], error) {
			return answer(a, ctx, func() (*operator.RedrivePlan, error) { return a.planRedrive(ctx, in) })
		})
	huma.Register(h, post(h, "stop-execution", "/v1/executions/{execution}/stop", "Stop it",
		"Asks it to stop, in any process; it finishes the current chunk. An execution that is over is refused."),
		func(ctx context.Context, in *boundInput) (*keyed[acted], error) {
			return once(a, ctx, in.Key, request{"stop-execution", in.ID, in.Body}, func(ctx context.Context, _ ports.RequestKey) (*acted, error) {
				return in.act(ctx, a.Service.StopAnswer)
			})
		})
	huma.Register(h, post(h, "abandon-execution", "/v1/executions/{execution}/abandon", "Abandon an execution",
		"Its instance can never be resumed. An execution that is running or COMPLETED is refused."),
		func(ctx context.Context, in *boundInput) (*keyed[acted], error) {
			return once(a, ctx, in.Key, request{"abandon-execution", in.ID, in.Body}, func(ctx context.Context, _ ports.RequestKey) (*acted, error) {
				return in.act(ctx, a.Service.AbandonAnswer)
			})
		})
	huma.Register(h, post(h, "recover", "/v1/recover", "Recover executions without a process",
		"Marks executions as FAILED whose process is gone, so that they can be restarted."),
		func(ctx context.Context, in *recoverInput) (*keyed[recovered], error) {
			return once(a, ctx, in.Key, request{"recover", 0, nil}, func(ctx context.Context, _ ports.RequestKey) (*recovered, error) {
				return a.recover(ctx)
			})
		})
}

// because returns ctx with the reason for the audit.
func (b ReasonBody) because(ctx context.Context) (context.Context, error) {
	return operator.WithReason(ctx, b.Reason), noNUL("reason", b.Reason)
}

func (in *boundInput) act(ctx context.Context, act func(context.Context, core.JobExecutionID, int64) (*operator.Execution, core.Answer, error)) (*acted, error) {
	body := BoundBody{}
	if in.Body != nil {
		body = *in.Body
	}
	ctx, err := body.because(ctx)
	if err != nil {
		return nil, err
	}
	return actedOn(act(ctx, in.id(), body.Epoch))
}

// A *NotEndedError means that the request stands, although this process cannot
// complete it.
func actedOn(e *operator.Execution, answered core.Answer, err error) (*acted, error) {
	if err != nil && (e == nil || !errors.As(err, new(*operator.NotEndedError))) {
		return nil, err
	}
	got := &acted{ID: e.ID, Status: e.Status, Applied: answered == core.Applied}
	if err != nil {
		got.Warning = err.Error()
	}
	return got, nil
}

func (a *api) restart(ctx context.Context, in *restartInput, key ports.RequestKey) (*acted, error) {
	file, err := a.fileOf(ctx, in.id())
	if err != nil {
		return nil, err
	}
	req := operator.RestartRequest{Execution: in.id(), Checked: file, Key: key}
	if b := in.Body; b != nil {
		if ctx, err = b.because(ctx); err != nil {
			return nil, err
		}
		req.Epoch, req.FromStart, req.From, req.IfComplete, req.AcceptChanges = b.Epoch, b.FromStart, b.From, b.IfComplete, b.AcceptChanges
	}
	return a.start(func(hooks operator.Hooks) (*operator.Running, error) {
		req.Hooks = hooks
		return a.Service.Restart(ctx, req)
	})
}

// fileOf refuses the jobs of the history that this server does not offer.
func (a *api) fileOf(ctx context.Context, id core.JobExecutionID) (*jobfile.File, error) {
	shown, err := a.Service.Show(ctx, operator.ShowRequest{Execution: id})
	if err != nil {
		return nil, err
	}
	return a.Jobs.File(shown.JobName)
}

func (a *api) planRestart(ctx context.Context, in *restartPlanInput) (*operator.DryRun, error) {
	file, err := a.fileOf(ctx, in.id())
	if err != nil {
		return nil, err
	}
	req := operator.PlanRequest{Execution: in.id(), Checked: file}
	if b := in.Body; b != nil {
		req.FromStart, req.From, req.IfComplete, req.AcceptChanges, req.Sample = b.FromStart, b.From, b.IfComplete, b.AcceptChanges, b.Sample
	}
	return a.Planner.Plan(ctx, req)
}

func (a *api) redrive(ctx context.Context, in *redriveInput, key ports.RequestKey) (*acted, error) {
	var body *RedriveBody
	if in.Body != nil {
		body = &in.Body.RedriveBody
	}
	req, err := a.redriveOf(ctx, in.id(), body)
	if err != nil {
		return nil, err
	}
	if b := in.Body; b != nil {
		if ctx, err = b.because(ctx); err != nil {
			return nil, err
		}
		req.Epoch = b.Epoch
	}
	req.Key = key
	return a.start(func(hooks operator.Hooks) (*operator.Running, error) {
		req.Hooks = hooks
		return a.Service.Redrive(ctx, req)
	})
}

func (a *api) planRedrive(ctx context.Context, in *redrivePlanInput) (*operator.RedrivePlan, error) {
	var body *RedriveBody
	var req operator.RedrivePlanRequest
	if in.Body != nil {
		body, req.Limit, req.After = &in.Body.RedriveBody, in.Body.Limit, in.Body.After
	}
	var err error
	if req.RedriveRequest, err = a.redriveOf(ctx, in.id(), body); err != nil {
		return nil, err
	}
	return a.Planner.PlanRedrive(ctx, req)
}

func (a *api) redriveOf(ctx context.Context, id core.JobExecutionID, body *RedriveBody) (req operator.RedriveRequest, err error) {
	req.Execution = id
	if req.Checked, err = a.fileOf(ctx, id); err != nil || body == nil {
		return req, err
	}
	if !access.IsText(body.Step) {
		return req, &operator.RequestError{Field: "body.step", Reason: "it contains a NUL character"}
	}
	if req.Step = body.Step; len(body.Params) > 0 {
		if req.Params, err = texts(body.Params); err != nil {
			return req, err
		}
	}
	if body.Items != nil {
		req.Edited, err = editedItems(body.Items)
	}
	return req, err
}

func editedItems(items []json.RawMessage) (map[int64]operator.Edit, error) {
	const field = "body.items"
	var lines bytes.Buffer
	for _, item := range items {
		if err := json.Compact(&lines, item); err != nil {
			return nil, &operator.RequestError{Field: field, Reason: err.Error()}
		}
		lines.WriteByte('\n')
	}
	edited, err := operator.ReadExport(field, &lines)
	if err != nil {
		return nil, &operator.RequestError{Field: field, Reason: err.Error()}
	}
	return edited, nil
}

func (a *api) recover(ctx context.Context) (*recovered, error) {
	ended, err := a.Service.Recover(ctx)
	if err != nil && len(ended) == 0 && !errors.As(err, new(*operator.NotEndedError)) {
		return nil, err
	}
	got := &recovered{Applied: len(ended) > 0, Executions: append([]operator.Execution{}, ended...)}
	if err != nil {
		got.Warning = err.Error()
	}
	return got, nil
}
