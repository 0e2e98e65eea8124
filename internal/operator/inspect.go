package operator

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type inspector struct {
	history   *history
	explainer *explainer
	flows     *flows
}

// InspectRequest names the execution to inspect.
type InspectRequest struct {
	Execution core.JobExecutionID
}

// Inspection is an execution with its explanation and its flow, all of them of the same records.
type Inspection struct {
	Execution   *ExecutionView
	Explanation *Explanation
	Flow        *ExecutionFlow
}

// Inspect returns what Show, Explain and ExecutionFlow return, and reads the history once for all of them. It
// may return core.ErrNotFound.
func (s *inspector) Inspect(ctx context.Context, req InspectRequest) (*Inspection, error) {
	p, err := s.explainer.gather(ctx, req.Execution)
	if err != nil {
		return nil, err
	}
	judged := &ports.JudgedExecution{Execution: p.exec, Newest: p.newest}
	shown, err := s.history.show(ctx, judged, p.stepRecords, p.decisions, ShowRequest{Execution: p.exec.ID})
	if err != nil {
		return nil, err
	}
	p.placed = &shown.Placed
	explained, err := p.explain(ctx)
	if err != nil {
		return nil, fmt.Errorf("explain execution %d: %w", p.exec.ID, err)
	}
	flow, err := s.flows.flow(ctx, p, explained)
	if err != nil {
		return nil, err
	}
	return &Inspection{shown, explained, flow}, nil
}
