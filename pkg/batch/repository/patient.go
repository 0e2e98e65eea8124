package repository

import (
	"context"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Patient returns the repository with ports that retry calls while the database is unreachable, with the
// patience of their context (rule O1). It covers everything that jobs wait for or start with: reads, and
// writes that find their own work done if a reply was lost. Heartbeats, checkpoints, assignments
// and acts of operators fail at once: their callers have a better answer than to wait. So does a
// call within a transaction, which is lost with its connection.
func (r *Repository) Patient() ports.Repository {
	all, p := r.Repository, patience{database: r.Database()}
	all.Launches = patientLaunches{all.Launches, p}
	all.Stops = patientStops{all.Stops, p}
	all.Transitions = patientTransitions{all.Transitions, p}
	all.PartitionPlans = patientPlans{r.plans, p}
	all.Parks = patientParks{all.Parks, p}
	all.Assignments = patientAssignments{all.Assignments, p}
	all.PlacedWork = patientPlaced{all.PlacedWork, p}
	all.Operations = patientOperations{all.Operations, p}
	all.CheckpointStore = patientCheckpoints{all.CheckpointStore, p}
	all.Explorer = patientExplorer{all.Explorer, p}
	all.BulkExplorer = patientBulk{all.BulkExplorer, p}
	all.Spans = patientSpans{all.Spans, p}
	all.Parts = patientParts{all.Parts, p}
	all.Searches = patientSearches{all.Searches, p}
	all.Skips = patientSkips{all.Skips, p}
	all.Attempts = patientAttempts{all.Attempts, p}
	all.Journal = patientJournal{all.Journal, p}
	all.Logs = patientLogs{all.Logs, p}
	all.Series = patientSeries{all.Series, p}
	return all
}

// patience is how the calls of a port wait for its database.
type patience struct{ database string }

// patiently calls f with the patience of ctx. again reports whether f was called before.
func patiently[T any](ctx context.Context, p patience, f func(ctx context.Context, again bool) (T, error)) (T, error) {
	if _, in := tx.From(ctx, p.database); in {
		return f(ctx, false)
	}
	var answer T
	again := false
	err := model.Patiently(ctx, func(ctx context.Context) (err error) {
		answer, err = f(ctx, again)
		again = true
		return err
	})
	return answer, err
}

// reading is patiently for calls that can be repeated unchanged.
func reading[T any](ctx context.Context, p patience, f func(ctx context.Context) (T, error)) (T, error) {
	return patiently(ctx, p, func(ctx context.Context, _ bool) (T, error) { return f(ctx) })
}

func writing(ctx context.Context, p patience, f func(ctx context.Context) error) error {
	_, err := reading(ctx, p, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) })
	return err
}

type patientLaunches struct {
	ports.Launches
	patience
}

// Launch implements ports.Launches.
func (r patientLaunches) Launch(ctx context.Context, req ports.LaunchRequest) (ports.Launched, error) {
	return patiently(ctx, r.patience, func(ctx context.Context, again bool) (ports.Launched, error) {
		req.Again = again
		return r.Launches.Launch(ctx, req)
	})
}

// CheckFormer implements ports.Launches.
func (r patientLaunches) CheckFormer(ctx context.Context, jobName string, params core.Parameters) error {
	return writing(ctx, r.patience, func(ctx context.Context) error { return r.Launches.CheckFormer(ctx, jobName, params) })
}

// CheckExclusive implements ports.Launches.
func (r patientLaunches) CheckExclusive(ctx context.Context, jobName string, key core.ExclusiveKey, dead func(core.Owner) bool) error {
	return writing(ctx, r.patience, func(ctx context.Context) error { return r.Launches.CheckExclusive(ctx, jobName, key, dead) })
}

type patientStops struct {
	ports.Stops
	patience
}

// RequestStop implements ports.Stops.
func (r patientStops) RequestStop(ctx context.Context, id core.JobExecutionID, by ports.By) (core.Answer, error) {
	return reading(ctx, r.patience, func(ctx context.Context) (core.Answer, error) { return r.Stops.RequestStop(ctx, id, by) })
}

type patientTransitions struct {
	ports.Transitions
	patience
}

// ChangeJob implements ports.Transitions.
func (r patientTransitions) ChangeJob(ctx context.Context, ref ports.JobRef, change ports.JobChange) (core.Answer, error) {
	return reading(ctx, r.patience, func(ctx context.Context) (core.Answer, error) { return r.Transitions.ChangeJob(ctx, ref, change) })
}

// StartStep implements ports.Transitions.
func (r patientTransitions) StartStep(ctx context.Context, job ports.JobRef, start ports.StepStart) (*core.StepExecution, error) {
	return patiently(ctx, r.patience, func(ctx context.Context, again bool) (*core.StepExecution, error) {
		start.Again = again
		return r.Transitions.StartStep(ctx, job, start)
	})
}

// EndStep implements ports.Transitions.
func (r patientTransitions) EndStep(ctx context.Context, ref ports.StepRef, change ports.StepChange) (core.Answer, error) {
	return reading(ctx, r.patience, func(ctx context.Context) (core.Answer, error) { return r.Transitions.EndStep(ctx, ref, change) })
}

// Fence implements ports.Transitions.
func (r patientTransitions) Fence(ctx context.Context, ref ports.StepRef) (raised ports.StepRef, at ports.Checkpoint, err error) {
	err = writing(ctx, r.patience, func(ctx context.Context) (err error) { raised, at, err = r.Transitions.Fence(ctx, ref); return err })
	return raised, at, err
}

// SaveJobContext implements ports.Transitions.
func (r patientTransitions) SaveJobContext(ctx context.Context, ref ports.JobRef, c *core.ExecutionContext) error {
	return writing(ctx, r.patience, func(ctx context.Context) error { return r.Transitions.SaveJobContext(ctx, ref, c) })
}

// SaveStepContext implements ports.Transitions.
func (r patientTransitions) SaveStepContext(ctx context.Context, ref ports.StepRef, c *core.ExecutionContext) error {
	return writing(ctx, r.patience, func(ctx context.Context) error { return r.Transitions.SaveStepContext(ctx, ref, c) })
}

type patientCheckpoints struct {
	ports.CheckpointStore
	patience
}

// Reclaim implements ports.CheckpointStore.
func (r patientCheckpoints) Reclaim(ctx context.Context, ref ports.StepRef) (raised ports.StepRef, at ports.Checkpoint, err error) {
	err = writing(ctx, r.patience, func(ctx context.Context) (err error) {
		raised, at, err = r.CheckpointStore.Reclaim(ctx, ref)
		return err
	})
	return raised, at, err
}

type patientPlans struct {
	*plans
	patience
}

// PlanPartitions implements ports.PartitionPlans.
func (r patientPlans) PlanPartitions(ctx context.Context, job ports.JobRef, plan ports.PartitionPlan) ([]core.StepExecution, error) {
	return patiently(ctx, r.patience, func(ctx context.Context, again bool) ([]core.StepExecution, error) {
		plan.Again = again
		return r.plans.PlanPartitions(ctx, job, plan)
	})
}

// Partitions implements ports.PartitionPlans.
func (r patientPlans) Partitions(ctx context.Context, manager core.StepExecutionID) ([]core.StepExecution, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]core.StepExecution, error) { return r.plans.Partitions(ctx, manager) })
}

// OpenParts implements ports.PartitionPlans.
func (r patientPlans) OpenParts(ctx context.Context, manager core.StepExecutionID) (int64, error) {
	return reading(ctx, r.patience, func(ctx context.Context) (int64, error) { return r.plans.OpenParts(ctx, manager) })
}

// StopPartitions implements ports.PartitionPlans.
func (r patientPlans) StopPartitions(ctx context.Context, job ports.JobRef) error {
	return writing(ctx, r.patience, func(ctx context.Context) error { return r.plans.StopPartitions(ctx, job) })
}

// SaveStepPosition implements ports.PartitionPlans.
func (r patientPlans) SaveStepPosition(ctx context.Context, ref ports.StepRef, at item.Position) error {
	return writing(ctx, r.patience, func(ctx context.Context) error { return r.plans.SaveStepPosition(ctx, ref, at) })
}

// BeginStep implements ports.PartitionPlans.
func (r patientPlans) BeginStep(ctx context.Context, ref ports.StepRef) error {
	_, err := patiently(ctx, r.patience, func(ctx context.Context, again bool) (struct{}, error) {
		return struct{}{}, r.plans.beginStep(ctx, ref, again)
	})
	return err
}

type patientParks struct {
	ports.Parks
	patience
}

// Resume implements ports.Parks.
func (r patientParks) Resume(ctx context.Context, id core.JobExecutionID, req ports.ResumeRequest) (ports.Resumed, error) {
	return reading(ctx, r.patience, func(ctx context.Context) (ports.Resumed, error) { return r.Parks.Resume(ctx, id, req) })
}

type patientAssignments struct {
	ports.Assignments
	patience
}

// PromotePartition implements ports.Assignments.
func (r patientAssignments) PromotePartition(ctx context.Context, ref ports.StepRef, c *core.ExecutionContext) error {
	return writing(ctx, r.patience, func(ctx context.Context) error { return r.Assignments.PromotePartition(ctx, ref, c) })
}

type patientPlaced struct {
	ports.PlacedWork
	patience
}

// PlacedOf implements ports.PlacedWork.
func (r patientPlaced) PlacedOf(ctx context.Context, ids ...core.JobExecutionID) ([]ports.Placed, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]ports.Placed, error) { return r.PlacedWork.PlacedOf(ctx, ids...) })
}

// LoadOf implements ports.Places.
func (r patientPlaced) LoadOf(ctx context.Context, loads map[string]int) error {
	return writing(ctx, r.patience, func(ctx context.Context) error { return r.PlacedWork.LoadOf(ctx, loads) })
}

type patientOperations struct {
	ports.Operations
	patience
}

// Recover implements ports.Operations.
func (r patientOperations) Recover(ctx context.Context, actor string, dead func(core.Owner) bool) ([]core.JobExecution, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]core.JobExecution, error) { return r.Operations.Recover(ctx, actor, dead) })
}

// Audit implements ports.Operations.
func (r patientOperations) Audit(ctx context.Context, id core.JobExecutionID) ([]ports.AuditEntry, error) {
	return reading(ctx, r.patience, func(ctx context.Context) ([]ports.AuditEntry, error) { return r.Operations.Audit(ctx, id) })
}
