package repository

import (
	"context"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type patientSpans struct {
	ports.Spans
	patience
}

// AttemptSpans implements ports.Spans, and the others it and ports.Parts.
func (r patientSpans) AttemptSpans(ctx context.Context, id core.JobInstanceID, limit int) ([]ports.AttemptSpan, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]ports.AttemptSpan, error) { return r.Spans.AttemptSpans(ctx, id, limit) })
}

// StepSpans waits.
func (r patientSpans) StepSpans(ctx context.Context, id core.JobExecutionID, after core.StepExecutionID, limit int) ([]ports.StepSpan, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]ports.StepSpan, error) { return r.Spans.StepSpans(ctx, id, after, limit) })
}

// Holds waits.
func (r patientSpans) Holds(ctx context.Context, id core.JobExecutionID, after int64) (list []ports.Hold, next int64, err error) {
	err = writing(ctx, r.patience, func(ctx context.Context) (err error) { list, next, err = r.Spans.Holds(ctx, id, after); return err })
	return list, next, err
}

// TaskSpans waits.
func (r patientSpans) TaskSpans(ctx context.Context, steps []core.StepExecutionID, limit int) ([]ports.TaskSpan, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]ports.TaskSpan, error) { return r.Spans.TaskSpans(ctx, steps, limit) })
}

// ChildSpans waits.
func (r patientSpans) ChildSpans(ctx context.Context, parents []core.JobExecutionID, limit int) ([]ports.ChildSpan, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]ports.ChildSpan, error) { return r.Spans.ChildSpans(ctx, parents, limit) })
}

// WorkerNames waits.
func (r patientSpans) WorkerNames(ctx context.Context) (map[core.Owner]string, error) {
	return reading(ctx, r.patience, func(ctx context.Context) (map[core.Owner]string, error) { return r.Spans.WorkerNames(ctx) })
}

type patientParts struct {
	ports.Parts
	patience
}

// PartedSteps waits.
func (r patientParts) PartedSteps(ctx context.Context, id core.JobExecutionID) ([]ports.StepSpan, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]ports.StepSpan, error) { return r.Parts.PartedSteps(ctx, id) })
}

// PartCounts waits.
func (r patientParts) PartCounts(ctx context.Context, manager core.StepExecutionID) (map[core.Status]int, error) {
	return reading(ctx, r.patience, func(ctx context.Context) (map[core.Status]int, error) { return r.Parts.PartCounts(ctx, manager) })
}

// PartPage waits.
func (r patientParts) PartPage(ctx context.Context, f ports.PartFilter) ([]ports.ListedPart, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]ports.ListedPart, error) { return r.Parts.PartPage(ctx, f) })
}
