package ports

import (
	"context"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// Attempts reads the state of the attempts of a step.
type Attempts interface {
	// OpenAttempts returns the identity of the repository, and the owners of the attempts of the step
	// in the instance that have not recorded that their components are closed, with IDs from first up
	// to, not including, before.
	OpenAttempts(ctx context.Context, instance core.JobInstanceID, step string, first, before core.StepExecutionID) (repository string, owners []core.Owner, err error)
	// LeftBy returns the positions of the step's attempts in the instance, before one, that did not
	// complete.
	LeftBy(ctx context.Context, instance core.JobInstanceID, step string, before core.StepExecutionID) ([]item.Position, error)
	// LastCompleted returns the position at which the step completed in the newest complete instance of
	// the job that was made before one, apart from redrives, or nil (rule IL1). It outlives a purge.
	LastCompleted(ctx context.Context, job, step string, before core.JobInstanceID) (item.Position, error)
	// Newest returns the newest record of the step in the instance, first, and its partitions' in the
	// order of their IDs; nothing if the step has not run. It leaves out redrives and partitions of
	// work that the step completed before it began again.
	Newest(ctx context.Context, instance core.JobInstanceID, step string) ([]core.StepExecution, error)
	// LeftBehind returns the leftovers of attempts of the instance's steps that did not complete.
	LeftBehind(ctx context.Context, instance core.JobInstanceID) ([]LeftBehind, error)
}
