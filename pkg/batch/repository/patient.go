package repository

import (
	"context"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Patient is a Repository that retries calls while the database is unreachable, with the patience
// of their context (rule O1). It covers everything that jobs wait for or start with: reads, and
// writes that find their own work done if a reply was lost. Heartbeats, checkpoints, assignments
// and acts of operators fail at once: their callers have a better answer than to wait. So does a
// call within a transaction, which is lost with its connection.
type Patient struct{ *Repository }

var _ ports.JobRepository = Patient{}

// patiently calls f with the patience of ctx. again reports whether f was called before.
func patiently[T any](ctx context.Context, r Patient, f func(ctx context.Context, again bool) (T, error)) (T, error) {
	if _, in := tx.From(ctx, r.Database()); in {
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
func reading[T any](ctx context.Context, r Patient, f func(ctx context.Context) (T, error)) (T, error) {
	return patiently(ctx, r, func(ctx context.Context, _ bool) (T, error) { return f(ctx) })
}

func writing(ctx context.Context, r Patient, f func(ctx context.Context) error) error {
	_, err := reading(ctx, r, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) })
	return err
}

type raised struct {
	ref ports.StepRef
	at  ports.Checkpoint
}

// Launch implements ports.Launches.
func (r Patient) Launch(ctx context.Context, req ports.LaunchRequest) (ports.Launched, error) {
	return patiently(ctx, r, func(ctx context.Context, again bool) (ports.Launched, error) {
		req.Again = again
		return r.Repository.Launch(ctx, req)
	})
}

// CheckFormer implements ports.Launches.
func (r Patient) CheckFormer(ctx context.Context, jobName string, params core.Parameters) error {
	return writing(ctx, r, func(ctx context.Context) error { return r.Repository.CheckFormer(ctx, jobName, params) })
}

// CheckExclusive implements ports.Launches.
func (r Patient) CheckExclusive(ctx context.Context, jobName string, key core.ExclusiveKey, dead func(core.Owner) bool) error {
	return writing(ctx, r, func(ctx context.Context) error { return r.Repository.CheckExclusive(ctx, jobName, key, dead) })
}

// RequestStop implements ports.Launches.
func (r Patient) RequestStop(ctx context.Context, id core.JobExecutionID, actor string) (core.Answer, error) {
	return reading(ctx, r, func(ctx context.Context) (core.Answer, error) { return r.Repository.RequestStop(ctx, id, actor) })
}

// ChangeJob implements ports.Transitions.
func (r Patient) ChangeJob(ctx context.Context, ref ports.JobRef, change ports.JobChange) (core.Answer, error) {
	return reading(ctx, r, func(ctx context.Context) (core.Answer, error) { return r.Repository.ChangeJob(ctx, ref, change) })
}

// StartStep implements ports.Transitions.
func (r Patient) StartStep(ctx context.Context, job ports.JobRef, start ports.StepStart) (*core.StepExecution, error) {
	return patiently(ctx, r, func(ctx context.Context, again bool) (*core.StepExecution, error) {
		start.Again = again
		return r.Repository.StartStep(ctx, job, start)
	})
}

// EndStep implements ports.Transitions.
func (r Patient) EndStep(ctx context.Context, ref ports.StepRef, change ports.StepChange) (core.Answer, error) {
	return reading(ctx, r, func(ctx context.Context) (core.Answer, error) { return r.Repository.EndStep(ctx, ref, change) })
}

// Fence implements ports.Transitions.
func (r Patient) Fence(ctx context.Context, ref ports.StepRef) (ports.StepRef, ports.Checkpoint, error) {
	found, err := reading(ctx, r, func(ctx context.Context) (f raised, err error) {
		f.ref, f.at, err = r.Repository.Fence(ctx, ref)
		return f, err
	})
	return found.ref, found.at, err
}

// Reclaim implements ports.CheckpointStore.
func (r Patient) Reclaim(ctx context.Context, ref ports.StepRef) (ports.StepRef, ports.Checkpoint, error) {
	found, err := reading(ctx, r, func(ctx context.Context) (f raised, err error) {
		f.ref, f.at, err = r.Repository.Reclaim(ctx, ref)
		return f, err
	})
	return found.ref, found.at, err
}

// SaveJobContext implements ports.Transitions.
func (r Patient) SaveJobContext(ctx context.Context, ref ports.JobRef, c *core.ExecutionContext) error {
	return writing(ctx, r, func(ctx context.Context) error { return r.Repository.SaveJobContext(ctx, ref, c) })
}

// SaveStepContext implements ports.Transitions.
func (r Patient) SaveStepContext(ctx context.Context, ref ports.StepRef, c *core.ExecutionContext) error {
	return writing(ctx, r, func(ctx context.Context) error { return r.Repository.SaveStepContext(ctx, ref, c) })
}

// PlanPartitions implements ports.PartitionPlans.
func (r Patient) PlanPartitions(ctx context.Context, job ports.JobRef, plan ports.PartitionPlan) ([]core.StepExecution, error) {
	return patiently(ctx, r, func(ctx context.Context, again bool) ([]core.StepExecution, error) {
		plan.Again = again
		return r.Repository.PlanPartitions(ctx, job, plan)
	})
}

// Partitions implements ports.PartitionPlans.
func (r Patient) Partitions(ctx context.Context, manager core.StepExecutionID) ([]core.StepExecution, error) {
	return reading(ctx, r, func(ctx context.Context) ([]core.StepExecution, error) { return r.Repository.Partitions(ctx, manager) })
}

// OpenParts implements ports.PartitionPlans.
func (r Patient) OpenParts(ctx context.Context, manager core.StepExecutionID) (int64, error) {
	return reading(ctx, r, func(ctx context.Context) (int64, error) { return r.Repository.OpenParts(ctx, manager) })
}

// StopPartitions implements ports.PartitionPlans.
func (r Patient) StopPartitions(ctx context.Context, job ports.JobRef) error {
	return writing(ctx, r, func(ctx context.Context) error { return r.Repository.StopPartitions(ctx, job) })
}

// BeginStep implements ports.PartitionPlans.
func (r Patient) BeginStep(ctx context.Context, ref ports.StepRef) error {
	_, err := patiently(ctx, r, func(ctx context.Context, again bool) (struct{}, error) {
		return struct{}{}, r.Repository.beginStep(ctx, ref, again)
	})
	return err
}

// Resume implements ports.Parks.
func (r Patient) Resume(ctx context.Context, id core.JobExecutionID, req ports.ResumeRequest) (ports.Resumed, error) {
	return reading(ctx, r, func(ctx context.Context) (ports.Resumed, error) { return r.Repository.Resume(ctx, id, req) })
}

// PromotePartition implements ports.Assignments.
func (r Patient) PromotePartition(ctx context.Context, ref ports.StepRef, c *core.ExecutionContext) error {
	return writing(ctx, r, func(ctx context.Context) error { return r.Repository.PromotePartition(ctx, ref, c) })
}

// Recover implements ports.Operations.
func (r Patient) Recover(ctx context.Context, actor string, dead func(core.Owner) bool) ([]core.JobExecution, error) {
	return reading(ctx, r, func(ctx context.Context) ([]core.JobExecution, error) { return r.Repository.Recover(ctx, actor, dead) })
}

// Execution implements ports.Explorer.
func (r Patient) Execution(ctx context.Context, id core.JobExecutionID) (*core.JobExecution, error) {
	return reading(ctx, r, func(ctx context.Context) (*core.JobExecution, error) { return r.Repository.Execution(ctx, id) })
}

// Executions implements ports.Explorer.
func (r Patient) Executions(ctx context.Context, filter ports.ExecutionFilter) ([]core.JobExecution, error) {
	return reading(ctx, r, func(ctx context.Context) ([]core.JobExecution, error) { return r.Repository.Executions(ctx, filter) })
}

// Steps implements ports.Explorer.
func (r Patient) Steps(ctx context.Context, id core.JobExecutionID) ([]core.StepExecution, error) {
	return reading(ctx, r, func(ctx context.Context) ([]core.StepExecution, error) { return r.Repository.Steps(ctx, id) })
}

// LastSteps implements ports.Explorer.
func (r Patient) LastSteps(ctx context.Context, id core.JobInstanceID, since core.JobExecutionID) (map[string]ports.StepHistory, error) {
	return reading(ctx, r, func(ctx context.Context) (map[string]ports.StepHistory, error) {
		return r.Repository.LastSteps(ctx, id, since)
	})
}

// Instance implements ports.Explorer.
func (r Patient) Instance(ctx context.Context, jobName, key string) (*ports.JobInstance, error) {
	return reading(ctx, r, func(ctx context.Context) (*ports.JobInstance, error) { return r.Repository.Instance(ctx, jobName, key) })
}

// Instances implements ports.Explorer.
func (r Patient) Instances(ctx context.Context, filter ports.InstanceFilter) ([]ports.JobInstance, error) {
	return reading(ctx, r, func(ctx context.Context) ([]ports.JobInstance, error) { return r.Repository.Instances(ctx, filter) })
}

// LastExecution implements ports.Explorer.
func (r Patient) LastExecution(ctx context.Context, jobName, key string) (*core.JobExecution, error) {
	return reading(ctx, r, func(ctx context.Context) (*core.JobExecution, error) {
		return r.Repository.LastExecution(ctx, jobName, key)
	})
}

// StepsOf implements ports.BulkExplorer.
func (r Patient) StepsOf(ctx context.Context, ids ...core.JobExecutionID) (map[core.JobExecutionID][]core.StepExecution, error) {
	return reading(ctx, r, func(ctx context.Context) (map[core.JobExecutionID][]core.StepExecution, error) {
		return r.Repository.StepsOf(ctx, ids...)
	})
}

// NewestAttempts implements ports.BulkExplorer.
func (r Patient) NewestAttempts(ctx context.Context, dead func(core.Owner) bool, ids ...core.JobInstanceID) (map[core.JobInstanceID]ports.NewestAttempt, error) {
	return reading(ctx, r, func(ctx context.Context) (map[core.JobInstanceID]ports.NewestAttempt, error) {
		return r.Repository.NewestAttempts(ctx, dead, ids...)
	})
}

// Judged implements ports.BulkExplorer.
func (r Patient) Judged(ctx context.Context, req ports.JudgedRequest) ([]ports.JudgedExecution, error) {
	return reading(ctx, r, func(ctx context.Context) ([]ports.JudgedExecution, error) { return r.Repository.Judged(ctx, req) })
}

// StepWork implements ports.BulkExplorer.
func (r Patient) StepWork(ctx context.Context, ids ...core.JobExecutionID) (ports.StepWork, error) {
	return reading(ctx, r, func(ctx context.Context) (ports.StepWork, error) { return r.Repository.StepWork(ctx, ids...) })
}

// SkippedItems implements ports.SkipReader.
func (r Patient) SkippedItems(ctx context.Context, filter ports.SkipFilter) ([]core.SkippedItem, error) {
	return reading(ctx, r, func(ctx context.Context) ([]core.SkippedItem, error) { return r.Repository.SkippedItems(ctx, filter) })
}

// LastSkipped implements ports.SkipReader.
func (r Patient) LastSkipped(ctx context.Context, filter ports.SkipFilter) (int64, error) {
	return reading(ctx, r, func(ctx context.Context) (int64, error) { return r.Repository.LastSkipped(ctx, filter) })
}

// LeftBy implements ports.Attempts.
func (r Patient) LeftBy(ctx context.Context, instance core.JobInstanceID, step string, before core.StepExecutionID) ([]item.Position, error) {
	return reading(ctx, r, func(ctx context.Context) ([]item.Position, error) {
		return r.Repository.LeftBy(ctx, instance, step, before)
	})
}

// LastCompleted implements ports.Attempts.
func (r Patient) LastCompleted(ctx context.Context, job, step string, before core.JobInstanceID) (item.Position, error) {
	return reading(ctx, r, func(ctx context.Context) (item.Position, error) {
		return r.Repository.LastCompleted(ctx, job, step, before)
	})
}

// Newest implements ports.Attempts.
func (r Patient) Newest(ctx context.Context, instance core.JobInstanceID, step string) ([]core.StepExecution, error) {
	return reading(ctx, r, func(ctx context.Context) ([]core.StepExecution, error) {
		return r.Repository.Newest(ctx, instance, step)
	})
}

// LeftBehind implements ports.Attempts.
func (r Patient) LeftBehind(ctx context.Context, instance core.JobInstanceID) ([]ports.LeftBehind, error) {
	return reading(ctx, r, func(ctx context.Context) ([]ports.LeftBehind, error) { return r.Repository.LeftBehind(ctx, instance) })
}

// OpenAttempts implements ports.Attempts.
func (r Patient) OpenAttempts(ctx context.Context, instance core.JobInstanceID, step string, first, before core.StepExecutionID) (repository string, owners []core.Owner, err error) {
	owners, err = reading(ctx, r, func(ctx context.Context) (list []core.Owner, err error) {
		repository, list, err = r.Repository.OpenAttempts(ctx, instance, step, first, before)
		return list, err
	})
	return repository, owners, err
}

// Visits implements ports.Journal.
func (r Patient) Visits(ctx context.Context, id core.JobInstanceID, since core.JobExecutionID) ([]ports.JournalRow, error) {
	return reading(ctx, r, func(ctx context.Context) ([]ports.JournalRow, error) { return r.Repository.Visits(ctx, id, since) })
}

// StepsByID implements ports.Journal.
func (r Patient) StepsByID(ctx context.Context, ids []core.StepExecutionID) (map[core.StepExecutionID]core.StepExecution, error) {
	return reading(ctx, r, func(ctx context.Context) (map[core.StepExecutionID]core.StepExecution, error) {
		return r.Repository.StepsByID(ctx, ids)
	})
}
