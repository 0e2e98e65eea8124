package ports

import (
	"context"
	"errors"
	"fmt"

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

// ErrCheckpointMissing means that a step committed before, but not in its current database: continuing
// from there could write rows again.
var ErrCheckpointMissing = errors.New("the database has no checkpoint of the step")

// RestoredKind is the mismatch between a checkpoint stored with the data and the history.
type RestoredKind string

// The kinds of a RestoredError.
const (
	// RestoredInstance is the checkpoint of an instance that the history does not have.
	RestoredInstance RestoredKind = "instance"
	// RestoredAttempt is a checkpoint of a later attempt at the same instance.
	RestoredAttempt RestoredKind = "attempt"
	// RestoredOld is a checkpoint of a version that knew an instance by its number.
	RestoredOld RestoredKind = "old"
)

// RestoredError refuses a checkpoint stored with the data that this history did not make: the history
// was restored from a backup, or is a copy (rule C18a).
type RestoredError struct {
	Kind     RestoredKind
	Database string
	Step     string
	Instance core.JobInstanceID   // of the checkpoint
	Attempt  core.StepExecutionID // of the checkpoint
}

// Error states the mismatch and the possible solutions.
func (e *RestoredError) Error() string {
	const page = "; see docs/howto/backup-and-restore.md"
	found := fmt.Sprintf("database %s has a checkpoint of step %s (job instance %d, step execution %d)", e.Database, e.Step, e.Instance, e.Attempt)
	switch e.Kind {
	case RestoredAttempt:
		return found + " of a later attempt that this history does not have: the history was restored from a backup, but the data is newer. " +
			"Restart with --accept-changes to continue after the last commit of the data, or restore the data to the time of the history" + page
	case RestoredOld:
		return found + " of an older version of Surfin, which identified an instance only by its number. If the history was not restored from a backup since, " +
			"restart with --accept-changes to continue from it; otherwise remove its rows and restart with --from-start" + page
	case RestoredInstance:
	}
	return found + " of an instance that this history does not have: the history was restored from a backup, or is a copy, and that run wrote rows that it does not know. " +
		"Restore the data to the time of the history, or remove the rows of that run; then run with --accept-changes to start from the beginning" + page
}

// ErrCommittedMeanwhile refuses to run a step by a new definition: it had committed nothing when the
// definitions were compared, but has when it begins.
var ErrCommittedMeanwhile = errors.New("the previous attempt has committed work with the old definition since the restart was checked: restart it to compare them again")
