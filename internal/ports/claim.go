package ports

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// ErrCheckpointMissing: the step committed before, but not in its current database; continuing
// could write rows again.
var ErrCheckpointMissing = errors.New("the database has no checkpoint of the step")

// RestoredKind is the mismatch between a checkpoint stored with the data and the history.
type RestoredKind string

// The kinds of a RestoredError.
const (
	RestoredInstance RestoredKind = "instance"
	RestoredAttempt  RestoredKind = "attempt"
	RestoredOld      RestoredKind = "old"
)

// RestoredError refuses a checkpoint that this history did not make: it was restored from a backup,
// or is a copy (rule C18a).
type RestoredError struct {
	Kind     RestoredKind
	Database string
	Step     string
	Instance core.JobInstanceID   // of the checkpoint
	Attempt  core.StepExecutionID // of the checkpoint
}

// Error states the mismatch and solutions.
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

// ErrCommittedMeanwhile refuses a new definition: work was committed after the comparison.
var ErrCommittedMeanwhile = errors.New("the previous attempt has committed work with the old definition since the restart was checked: restart it to compare them again")

// CheckpointReader reads the checkpoints that are stored with the data.
type CheckpointReader interface {
	// HasCommitted reports whether the attempt first, or a later one, committed there; false for
	// the repository's own database.
	HasCommitted(ctx context.Context, database string, instance core.JobInstanceID, step string, first core.StepExecutionID) (bool, error)
}

// ClaimedStore is the CheckpointStore of one attempt, outside the repository's database.
type ClaimedStore interface {
	CheckpointStore
	Start() Checkpoint
	// Committed copies, now and then, the committed state to the repository; ErrLostOwner if
	// the execution is lost.
	Committed(ctx context.Context) error
	// SyncHistory is the last copy of an attempt, made even if ctx has ended.
	SyncHistory(ctx context.Context) error
}
