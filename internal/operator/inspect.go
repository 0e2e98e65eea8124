package operator

import (
	"context"
	"fmt"
	"slices"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type inspector struct {
	history   *history
	explainer *explainer
	flows     *flows
	progress  *progress
	records   interface {
		PartTotals(ctx context.Context, id core.JobExecutionID) (map[core.StepExecutionID]ports.PartTotal, error)
	}
}

// InspectRequest names the execution to inspect.
type InspectRequest struct {
	Execution core.JobExecutionID
	// Before is of an earlier inspection of the same execution: data that no step has changed since is not read again.
	// May be nil.
	Before *Inspected
}

// Inspection is an execution with its explanation, its flow and its progress, all of them of the same records.
type Inspection struct {
	Execution   *ExecutionView
	Explanation *Explanation
	Flow        *ExecutionFlow
	// Progress has the running steps, with speeds since they began; empty if the execution is over.
	Progress []ProgressView
	// Stage is the same in two inspections if no step has begun or ended in between, and no execution of the instance.
	Stage string
	// Known is for the next inspection.
	Known Inspected

	exec core.JobExecution
}

// Inspected are data for the next inspection of an execution.
type Inspected struct {
	walked walked
	meter  *Meter
}

// Size is about the number of bytes that it needs.
func (i *Inspected) Size() int {
	const ofRow, ofStep = 250, 1500
	w := &i.walked
	size := ofRow * (len(w.visits) + len(w.entries) + len(w.attempts))
	for _, s := range w.earlier {
		size += ofStep + len(s.Error) + len(s.Position)
	}
	if i.meter != nil {
		for _, b := range i.meter.baselines {
			if b != nil {
				size += ofRow * len(b.steps)
			}
		}
	}
	return size
}

// Inspect returns what Show, Explain, ExecutionFlow and Progress return, and reads the history once for all of
// them. It may return core.ErrNotFound.
func (s *inspector) Inspect(ctx context.Context, req InspectRequest) (*Inspection, error) {
	var before *walked
	if req.Before != nil {
		before = &req.Before.walked
	}
	p, err := s.explainer.gather(ctx, req.Execution, before)
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
	i := &Inspection{Execution: shown, Explanation: explained, Flow: flow, Stage: p.stage, Known: Inspected{walked: p.walked}, exec: p.exec}
	if req.Before != nil {
		i.Known.meter = req.Before.meter
	}
	return i, s.measure(ctx, p, i)
}

// measure adds the progress of an execution that is not over.
func (s *inspector) measure(ctx context.Context, p *findings, i *Inspection) error {
	if p.exec.Status.IsOver() {
		return nil
	}
	meter := i.Known.meter
	if meter == nil {
		meter = s.progress.Meter(ProgressRequest{Job: p.exec.JobName})
		i.Known.meter = meter
	}
	if err := meter.loadBaseline(ctx, &p.exec); err != nil {
		return err
	}
	totals := map[core.StepExecutionID]ports.PartTotal{}
	if len(p.ofStep) > 0 {
		var err error
		if totals, err = s.records.PartTotals(ctx, p.exec.ID); err != nil {
			return err
		}
	}
	var steps []partitioned
	for n := range p.own {
		step := &p.own[n]
		if step.Manager != 0 {
			continue
		}
		of := partitioned{StepExecution: step}
		if parts := p.ofStep[step.ID]; len(parts) > 0 {
			of.sum = &partSum{len(parts), parts.statuses()[core.StatusCompleted], totals[step.ID]}
		}
		steps = append(steps, of)
	}
	i.Progress = meter.measureSteps(&p.exec, p.newest, steps, ports.StepWork{}, map[core.StepExecutionID]measured{})
	for n := range i.Progress {
		view := &i.Progress[n]
		view.Waiting, view.Placed = i.Execution.Waiting, i.Execution.Placed
		at := slices.IndexFunc(i.Execution.Steps, func(of StepView) bool { return of.Step == view.Step && !of.Status.IsOver() })
		if at >= 0 {
			of := &i.Execution.Steps[at]
			view.Tasks, view.Child, view.ChildStatus = of.Tasks, of.Child, of.ChildStatus
		}
	}
	return nil
}

// Parted are the steps that have parts, in their order.
func (i *Inspection) Parted() []core.StepExecutionID {
	var ids []core.StepExecutionID
	for n := range i.Execution.Steps {
		if i.Execution.Steps[n].Partitions != nil {
			ids = append(ids, i.Execution.Steps[n].ID)
		}
	}
	return ids
}
