package core

import (
	"context"
	"errors"
	"fmt"
)

// ErrCheckpointMissing says that a step committed before, but not in the database
// in which it works now: going on from there could write rows again.
var ErrCheckpointMissing = errors.New("the database has no checkpoint of the step")

// CheckpointStores finds the stores of databases other than the repository's
// (rule C18).
type CheckpointStores interface {
	// Claim makes run's attempt the only one of its step that commits in the
	// database, and answers the store for it. Whoever claimed the step before
	// commits nothing there from now on; what that attempt did commit is brought
	// into the repository. ErrLostOwner if a later attempt has claimed the step.
	Claim(ctx context.Context, run *StepRun, database string) (ClaimedStore, error)
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
	// Settle brings the repository in line with what is committed: the last call
	// of an attempt, made even if ctx has ended.
	Settle(ctx context.Context) error
}

// CommitIn prepares a step whose rows are in the named database to commit its
// progress there, with its rows. It comes before anything that depends on the
// step's position, which is the repository's for the repository's own database,
// and else that of the checkpoint beside the rows (rule C18). Settle comes last.
func (r *StepRun) CommitIn(ctx context.Context, database string) error {
	if r.Checkpoints.Database() == database {
		return nil
	}
	if r.Stores == nil {
		return fmt.Errorf("step %s writes to database %s, but its checkpoints can be kept in %s only", r.Step.Name, database, r.Checkpoints.Database())
	}
	store, err := r.Stores.Claim(ctx, r, database)
	if err != nil {
		return err
	}
	start := store.Start()
	r.Step.Position, r.Step.Context = start.Position, start.Context
	r.Checkpoints, r.claimed = store, store
	return nil
}

// Committed is called between commits, for a store that has to be told.
func (r *StepRun) Committed(ctx context.Context) error {
	if r.claimed == nil {
		return nil
	}
	return r.claimed.Committed(ctx)
}

// Settle ends what CommitIn began: the repository knows then what is committed.
// failure is why the step ended; nil if it completed. Settle answers it with what
// went wrong besides.
func (r *StepRun) Settle(ctx context.Context, failure error) error {
	if r.claimed == nil || errors.Is(failure, ErrLostOwner) {
		return failure
	}
	return errors.Join(failure, r.claimed.Settle(ctx))
}
