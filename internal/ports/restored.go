package ports

import (
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

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
