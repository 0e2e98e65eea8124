package core

import (
	"context"
	"errors"
	"fmt"
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
	Instance JobInstanceID   // of the checkpoint
	Attempt  StepExecutionID // of the checkpoint
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

// CheckpointStores finds the stores of databases other than the repository's
// (rule C18).
type CheckpointStores interface {
	// Acquire makes run's attempt the only one of its step that commits in the database, and returns
	// its store. An attempt that acquired the step before commits nothing there from now on; its
	// commits are copied into the repository. ErrLostOwner if a later attempt has acquired the step.
	Acquire(ctx context.Context, run *StepRun, database string) (ClaimedStore, error)
	CheckpointReader
}

// CheckpointReader reads the checkpoints that are stored with the data.
type CheckpointReader interface {
	// HasCommitted reports whether the database has a checkpoint of the step that its attempt first, or
	// a later one, committed. It is false for the repository's own database: the record shows it.
	HasCommitted(ctx context.Context, database string, instance JobInstanceID, step string, first StepExecutionID) (bool, error)
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

// UseDatabase prepares a step with its rows in the named database to commit its progress there, with
// its rows. It is called before anything that depends on the step's position: the repository's for the
// repository's own database, else the position of the checkpoint stored with the rows (rule C18). Call
// SyncHistory when the step ends.
func (r *StepRun) UseDatabase(ctx context.Context, database string) error {
	if r.Services.Checkpoints.Database() == database {
		return nil
	}
	store, err := r.Services.Stores.Acquire(ctx, r, database)
	if err != nil {
		return err
	}
	start := store.Start()
	r.Step.Position, r.Step.Context = start.Position, start.Context
	if start.Counters != (Counters{}) { // of a worker that lost the partition
		r.Step.Counters = start.Counters
	}
	r.Services.Checkpoints, r.acquired = store, store
	return r.MarkDefinition()
}

// Committed is called between commits: it keeps the repository up to date with a database that
// UseDatabase has chosen.
func (r *StepRun) Committed(ctx context.Context) error {
	if r.acquired == nil {
		return nil
	}
	return r.acquired.Committed(ctx)
}

// SyncHistory ends the work of UseDatabase: the repository then has the committed state. failure is the
// reason why the step ended, nil if it completed; SyncHistory returns it, joined with an error of its
// own.
func (r *StepRun) SyncHistory(ctx context.Context, failure error) error {
	if r.acquired == nil || errors.Is(failure, ErrLostOwner) {
		return failure
	}
	return errors.Join(failure, r.acquired.SyncHistory(ctx))
}
