package testengine

import (
	"context"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Around is a decorator of a repository that calls Do around each write, by its method's name, but not heartbeats.
type Around struct {
	ports.Repository
	Do func(write string, do func() error) error
}

// Ports returns the repository with the decorated writes.
func (a *Around) Ports() ports.Repository {
	all := a.Repository
	all.Launches, all.Transitions, all.PartitionPlans, all.Parks, all.Assignments, all.CheckpointStore = a, a, a, a, a, a
	return all
}

func around[T any](a *Around, write string, do func() (T, error)) (result T, err error) {
	err = a.Do(write, func() (err error) { result, err = do(); return err })
	return result, err
}

// Launch implements ports.Launches, and the others their ports.
func (a *Around) Launch(ctx context.Context, r ports.LaunchRequest) (ports.Launched, error) {
	return around(a, "Launch", func() (ports.Launched, error) { return a.Repository.Launch(ctx, r) })
}

// ChangeJob calls Do.
func (a *Around) ChangeJob(ctx context.Context, ref ports.JobRef, c ports.JobChange) (core.Answer, error) {
	return around(a, "ChangeJob", func() (core.Answer, error) { return a.Repository.ChangeJob(ctx, ref, c) })
}

// Park calls Do.
func (a *Around) Park(ctx context.Context, ref ports.JobRef, p ports.Parking) (core.Answer, error) {
	return around(a, "Park", func() (core.Answer, error) { return a.Repository.Park(ctx, ref, p) })
}

// Resume calls Do.
func (a *Around) Resume(ctx context.Context, id core.JobExecutionID, r ports.ResumeRequest) (ports.Resumed, error) {
	return around(a, "Resume", func() (ports.Resumed, error) { return a.Repository.Resume(ctx, id, r) })
}

// PlanPartitions calls Do.
func (a *Around) PlanPartitions(ctx context.Context, ref ports.JobRef, p ports.PartitionPlan) ([]core.StepExecution, error) {
	return around(a, "PlanPartitions", func() ([]core.StepExecution, error) { return a.Repository.PlanPartitions(ctx, ref, p) })
}

// AssignPartition calls Do.
func (a *Around) AssignPartition(ctx context.Context, r ports.AssignRequest) (*ports.Assignment, error) {
	return around(a, "AssignPartition", func() (*ports.Assignment, error) { return a.Repository.AssignPartition(ctx, r) })
}

// ReleasePartition calls Do.
func (a *Around) ReleasePartition(ctx context.Context, ref ports.StepRef, refused string) error {
	return a.Do("ReleasePartition", func() error { return a.Repository.ReleasePartition(ctx, ref, refused) })
}

// StartStep calls Do.
func (a *Around) StartStep(ctx context.Context, ref ports.JobRef, s ports.StepStart) (*core.StepExecution, error) {
	return around(a, "StartStep", func() (*core.StepExecution, error) { return a.Repository.StartStep(ctx, ref, s) })
}

// BeginStep calls Do.
func (a *Around) BeginStep(ctx context.Context, ref ports.StepRef) error {
	return a.Do("BeginStep", func() error { return a.Repository.BeginStep(ctx, ref) })
}

// Checkpoint calls Do.
func (a *Around) Checkpoint(ctx context.Context, ref ports.StepRef, c ports.Checkpoint) error {
	return a.Do("Checkpoint", func() error { return a.Repository.Checkpoint(ctx, ref, c) })
}

// EndStep calls Do.
func (a *Around) EndStep(ctx context.Context, ref ports.StepRef, c ports.StepChange) (core.Answer, error) {
	return around(a, "EndStep", func() (core.Answer, error) { return a.Repository.EndStep(ctx, ref, c) })
}

// SaveJobContext calls Do.
func (a *Around) SaveJobContext(ctx context.Context, ref ports.JobRef, c *core.ExecutionContext) error {
	return a.Do("SaveJobContext", func() error { return a.Repository.SaveJobContext(ctx, ref, c) })
}

// SaveStepContext calls Do.
func (a *Around) SaveStepContext(ctx context.Context, ref ports.StepRef, c *core.ExecutionContext) error {
	return a.Do("SaveStepContext", func() error { return a.Repository.SaveStepContext(ctx, ref, c) })
}
