package ports

import (
	"context"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// Checkpoint is the data that a chunk commits with its rows.
type Checkpoint struct {
	Counters core.Counters
	Position item.Position
	// Context is written if it changed; nil keeps the stored one.
	Context *core.ExecutionContext
	// Skipped are the skips that this commit records (rule C12).
	Skipped []core.SkippedItem
	// OnStop is called when a stop of the job was requested; it may be nil.
	OnStop func()
}

// CheckpointStore commits a chunk's progress.
type CheckpointStore interface {
	// Checkpoint writes counters and position with one guarded UPDATE in the transaction that ctx
	// carries for the store's database. ErrLostOwner if the guard finds no row: the caller rolls back
	// (rules C5, R2, R3). It calls c.OnStop if it sees that a stop of the job was requested.
	Checkpoint(ctx context.Context, ref StepRef, c Checkpoint) error
	// Reclaim returns the committed state of a step after a failed COMMIT (rule C10): it raises the
	// epoch of the guard row, which waits for the old transaction to end, so that counters and position
	// are final. The new ref replaces the old. ErrLostOwner if the guard finds no row.
	Reclaim(ctx context.Context, ref StepRef) (StepRef, Checkpoint, error)
	// Database is the name of the store's database.
	Database() string
}

// CheckpointReader reads the checkpoints that are stored with the data.
type CheckpointReader interface {
	// HasCommitted reports whether the database has a checkpoint of the step that its attempt first, or
	// a later one, committed. It is false for the repository's own database: the record shows it.
	HasCommitted(ctx context.Context, database string, instance core.JobInstanceID, step string, first core.StepExecutionID) (bool, error)
}

// ClaimedStore is the CheckpointStore of one attempt, outside the repository's database.
type ClaimedStore interface {
	CheckpointStore
	// Start returns the committed position and context of the step.
	Start() Checkpoint
	// Committed is called between commits. Now and then it copies the committed state to the
	// repository; ErrLostOwner if another execution owns it by now.
	Committed(ctx context.Context) error
	// SyncHistory copies the committed state to the repository: the last call of an attempt, made even
	// if ctx has ended.
	SyncHistory(ctx context.Context) error
}
