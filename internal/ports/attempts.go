package ports

import (
	"context"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// Attempts reads the state of the attempts of a step.
type Attempts interface {
	// OpenAttempts returns the repository's identity, and the owners of the step's attempts from
	// first, before before, that have not recorded that their components are closed.
	OpenAttempts(ctx context.Context, instance core.JobInstanceID, step string, first, before core.StepExecutionID) (repository string, owners []core.Owner, err error)
	LeftBy(ctx context.Context, instance core.JobInstanceID, step string, before core.StepExecutionID) ([]item.Position, error)
	// LastCompleted returns the step's position in the newest complete instance before one, or nil
	// (rule IL1). It outlives a purge.
	LastCompleted(ctx context.Context, job, step string, before core.JobInstanceID) (item.Position, error)
	// Newest returns the step's newest record, then its partitions' by ID, without redrives and
	// earlier completed work.
	Newest(ctx context.Context, instance core.JobInstanceID, step string) ([]core.StepExecution, error)
	LeftBehind(ctx context.Context, instance core.JobInstanceID) ([]core.LeftBehind, error)
	SkipReader
}
