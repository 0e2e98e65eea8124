package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/danielgtaylor/huma/v2"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type (
	// acted is the answer to a POST that performed an act, or had performed it before.
	acted struct {
		ID      core.JobExecutionID `json:"id" doc:"The execution that was started, or is meant"`
		Status  core.Status         `json:"status" doc:"Its status then"`
		Applied bool                `json:"applied" doc:"False where it had been done before"`
		Notices []operator.Notice   `json:"notices,omitempty" doc:"What is worth knowing of the run before it began"`
		Warning string              `json:"warning,omitempty" doc:"What did not work besides"`
	}
	// ActInput is the input of an act on an execution.
	ActInput struct {
		ExecutionPath
		KeyHeader
	}
	restartInput struct {
		ActInput
		Body *RestartBody
	}
	// RestartBody configures the restart of an execution.
	RestartBody struct {
		FromStart     bool   `json:"from_start,omitempty" doc:"Run every step from its start"`
		From          string `json:"from,omitempty" maxLength:"1000" doc:"Run this step, or this other element of the flow, and what comes after it anew, though they completed"`
		IfComplete    bool   `json:"if_complete,omitempty" doc:"With from: also where the execution is COMPLETED"`
		AcceptChanges bool   `json:"accept_changes,omitempty" doc:"Continue though the job file has changed in what is committed"`
	}
	restartPlanInput struct {
		ExecutionPath
		Body *struct {
			RestartBody
			Sample int `json:"sample,omitempty" minimum:"0" maximum:"1000" doc:"How many items of each step are read; 0: 20"`
		}
	}
	redriveInput struct {
		ActInput
		Body *struct {
			Step   string                     `json:"step,omitempty" maxLength:"1000" doc:"The step whose items are redriven; empty: the only one that has any"`
			Params map[string]json.RawMessage `json:"params,omitempty" doc:"Parameters of the execution that change"`
			Items  []json.RawMessage          `json:"items,omitempty" doc:"Only these are redriven, as they are here: skipped items as the list of them has them, with the item or the raw text corrected"`
		}
	}
	recoverInput struct{ KeyHeader }
	recovered    struct {
		Applied    bool                 `json:"applied" doc:"False where there was none to end"`
		Executions []operator.Execution `json:"executions" doc:"Those that were ended: they can be restarted"`
		Warning    string               `json:"warning,omitempty" doc:"What did not work besides"`
	}
)

func (a *api) addActs(h huma.API) {
	huma.Register(h, post(h, "restart-execution", "/v1/executions/{execution}/restart", "Restart it",
		"Starts another attempt of the instance with the same parameters, and answers at once with its number: the server runs it. The execution is the newest of its instance, FAILED or STOPPED; with `from` and `if_complete` it may be COMPLETED."),
		func(ctx context.Context, in *restartInput) (*keyed[acted], error) {
			return once(a, ctx, in.Key, request{"restart-execution", in.ID, in.Body}, func(ctx context.Context, key ports.RequestKey) (*acted, error) {
				return a.restart(ctx, in, key)
			})
		})
	huma.Register(h, post(h, "plan-restart", "/v1/executions/{execution}/plan", "What a restart would do",
		"A dry run of its restart: reads the first items of each chunk step with its real readers and processors, and writes nothing."),
		func(ctx context.Context, in *restartPlanInput) (*output[operator.DryRun], error) {
			return answer(a, ctx, func() (*operator.DryRun, error) { return a.planRestart(ctx, in) })
		})
	huma.Register(h, post(h, "redrive-execution", "/v1/executions/{execution}/redrive", "Redrive what it skipped",
		"Starts an execution that runs the skipped items through their step again, and answers at once with its number: the server runs it."),
		func(ctx context.Context, in *redriveInput) (*keyed[acted], error) {
			return once(a, ctx, in.Key, request{"redrive-execution", in.ID, in.Body}, func(ctx context.Context, key ports.RequestKey) (*acted, error) {
				return a.redrive(ctx, in, key)
			})
		})
	huma.Register(h, post(h, "stop-execution", "/v1/executions/{execution}/stop", "Stop it",
		"Asks it to stop, in whatever process it runs: the chunk in hand is finished. One that is over is refused."),
		func(ctx context.Context, in *ActInput) (*keyed[acted], error) {
			return once(a, ctx, in.Key, request{"stop-execution", in.ID, nil}, func(ctx context.Context, _ ports.RequestKey) (*acted, error) {
				e, answered, err := a.Service.StopAnswer(ctx, in.id())
				return actedOn(e, answered, err)
			})
		})
	huma.Register(h, post(h, "abandon-execution", "/v1/executions/{execution}/abandon", "Give it up",
		"Its instance does not go on any more. One that runs or completed is refused."),
		func(ctx context.Context, in *ActInput) (*keyed[acted], error) {
			return once(a, ctx, in.Key, request{"abandon-execution", in.ID, nil}, func(ctx context.Context, _ ports.RequestKey) (*acted, error) {
				e, answered, err := a.Service.AbandonAnswer(ctx, in.id())
				return actedOn(e, answered, err)
			})
		})
	huma.Register(h, post(h, "recover", "/v1/recover", "End what has lost its process",
		"Executions that no process works on any more become FAILED, so that they can be restarted."),
		func(ctx context.Context, in *recoverInput) (*keyed[recovered], error) {
			return once(a, ctx, in.Key, request{"recover", 0, nil}, func(ctx context.Context, _ ports.RequestKey) (*recovered, error) {
				return a.recover(ctx)
			})
		})
}

// actedOn returns the answer to an act. A *NotEndedError means that the request stands, although
// this process cannot complete it.
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

// restart restarts with the job file of the catalog: this server must not run other jobs of the
// history.
func (a *api) restart(ctx context.Context, in *restartInput, key ports.RequestKey) (*acted, error) {
	shown, err := a.Service.Show(ctx, operator.ShowRequest{Execution: in.id()})
	if err != nil {
		return nil, err
	}
	file, err := a.Jobs.File(shown.JobName)
	if err != nil {
		return nil, err
	}
	req := operator.RestartRequest{Execution: in.id(), Checked: file, Key: key}
	if b := in.Body; b != nil {
		req.FromStart, req.From, req.IfComplete, req.AcceptChanges = b.FromStart, b.From, b.IfComplete, b.AcceptChanges
	}
	return a.start(func(hooks operator.Hooks) (*operator.Running, error) {
		req.Hooks = hooks
		return a.Service.Restart(ctx, req)
	})
}

// planRestart plans with the job file of the catalog, as restart does.
func (a *api) planRestart(ctx context.Context, in *restartPlanInput) (*operator.DryRun, error) {
	shown, err := a.Service.Show(ctx, operator.ShowRequest{Execution: in.id()})
	if err != nil {
		return nil, err
	}
	file, err := a.Jobs.File(shown.JobName)
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
	shown, err := a.Service.Show(ctx, operator.ShowRequest{Execution: in.id()})
	if err != nil {
		return nil, err
	}
	file, err := a.Jobs.File(shown.JobName)
	if err != nil {
		return nil, err
	}
	req := operator.RedriveRequest{Execution: in.id(), Checked: file, Key: key}
	if b := in.Body; b != nil {
		if !isText(b.Step) {
			return nil, &operator.RequestError{Field: "body.step", Reason: "it has a NUL"}
		}
		if req.Step = b.Step; len(b.Params) > 0 {
			if req.Params, err = texts(b.Params); err != nil {
				return nil, err
			}
		}
	}
	if in.Body != nil && in.Body.Items != nil {
		if req.Edited, err = editedItems(in.Body.Items); err != nil {
			return nil, err
		}
	}
	return a.start(func(hooks operator.Hooks) (*operator.Running, error) {
		req.Hooks = hooks
		return a.Service.Redrive(ctx, req)
	})
}

// editedItems reads corrected items like the lines of an edited export: the first is line 1.
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
