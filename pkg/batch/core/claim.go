package core

import (
	"context"
	"errors"
)

// ErrCheckpointMissing says that a step committed before, but not in the database
// in which it works now: going on from there could write rows again.
var ErrCheckpointMissing = errors.New("the database has no checkpoint of the step")

// ErrCommittedMeanwhile refuses to run a step by a new definition: nothing of it was
// committed when the definitions were compared, and something is when it begins.
var ErrCommittedMeanwhile = errors.New("the attempt before has committed work by the old definition since the restart was judged: restart it, which compares them again")

// CheckpointStores finds the stores of databases other than the repository's
// (rule C18).
type CheckpointStores interface {
	// Acquire makes run's attempt the only one of its step that commits in the
	// database, and returns its store. An attempt that acquired the step before
	// commits nothing there from now on; what it did commit is brought into the
	// repository. ErrLostOwner if a later attempt has acquired the step.
	Acquire(ctx context.Context, run *StepRun, database string) (ClaimedStore, error)
	CheckpointReader
}

// CheckpointReader reads the checkpoints that are beside the data.
type CheckpointReader interface {
	// HasCommitted reports whether the database has a checkpoint of the step that its
	// attempt first, or a later one, committed. Of the repository's own database it is
	// false: the record says it.
	HasCommitted(ctx context.Context, database string, instance JobInstanceID, step string, first StepExecutionID) (bool, error)
}

// ClaimedStore is the CheckpointStore of one attempt, outside of the repository's
// database.
type ClaimedStore interface {
	CheckpointStore
	// Start is where the step stands: position and context as they are committed.
	Start() Checkpoint
	// Committed is called between commits. Now and then it tells the repository
	// what is committed; ErrLostOwner if that is another's execution by now.
	Committed(ctx context.Context) error
	// SyncHistory brings the repository in line with what is committed: the last
	// call of an attempt, made even if ctx has ended.
	SyncHistory(ctx context.Context) error
}

// UseDatabase prepares a step whose rows are in the named database to commit its
// progress there, with its rows. It is called before anything that depends on the
// step's position, which is the repository's for the repository's own database, and
// else that of the checkpoint beside the rows (rule C18). Call SyncHistory when the
// step ends.
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

// Committed is called between commits: it keeps the repository up to date with a
// database that UseDatabase has chosen.
func (r *StepRun) Committed(ctx context.Context) error {
	if r.acquired == nil {
		return nil
	}
	return r.acquired.Committed(ctx)
}

// SyncHistory ends what UseDatabase began: the repository knows then what is
// committed. failure is why the step ended, nil if it completed; SyncHistory returns
// it, joined with an error of its own.
func (r *StepRun) SyncHistory(ctx context.Context, failure error) error {
	if r.acquired == nil || errors.Is(failure, ErrLostOwner) {
		return failure
	}
	return errors.Join(failure, r.acquired.SyncHistory(ctx))
}
