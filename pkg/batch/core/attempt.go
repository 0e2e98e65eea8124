package core

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// Attempt names the step execution in which a component works. A component that
// keeps something outside of any database, such as a file, needs it to tell what
// is its own from what belongs to others (rule C15b).
type Attempt struct {
	// Repository is the identity of the history.
	Repository string
	Instance   JobInstanceID
	// Step is the name that the step is recorded as: STEP, or STEP:PARTITION.
	Step string
	// ID grows from attempt to attempt of a step.
	ID StepExecutionID
	// Exclusive says that all earlier attempts from which this one takes up the work
	// are over: they recorded it after their components were closed, or their process
	// is dead. What they left is then this attempt's. Otherwise one of them may wake.
	Exclusive bool
	// Left are the last positions of earlier attempts that did not complete: of the step
	// as Attempts knows them, of its writers as chunk.AttemptOf hands them on. What they
	// name may still be in the hands of an attempt that wakes.
	Left []item.Position
	// From are the positions of the step's writers from which this attempt continues, as
	// chunk.AttemptOf hands them on: what they name is needed by one of them.
	From []item.Position
}

// Scope is a short text that all attempts of one step of one instance share, and
// no other step: 12 hexadecimal digits.
func (a Attempt) Scope() string {
	sum := sha256.Sum256([]byte(a.Repository + "\x00" + strconv.FormatInt(int64(a.Instance), 10) + "\x00" + a.Step))
	return hex.EncodeToString(sum[:6])
}

// Attempts tells what became of the attempts of a step.
type Attempts interface {
	// OpenAttempts returns the identity of the repository, and the owners of those
	// attempts of the step in the instance that have not recorded that their
	// components are closed, of the ids from first up to, not including, before.
	OpenAttempts(ctx context.Context, instance JobInstanceID, step string, first, before StepExecutionID) (repository string, owners []Owner, err error)
	// LeftBy returns the positions of the attempts of the step in the instance, before
	// one, that did not complete.
	LeftBy(ctx context.Context, instance JobInstanceID, step string, before StepExecutionID) ([]item.Position, error)
	// LastCompleted returns the position at which the step completed in the newest
	// instance of the job that is complete and was made before one, redrives apart; nil
	// where there is none (rule IL1). It outlives a purge.
	LastCompleted(ctx context.Context, job, step string, before JobInstanceID) (item.Position, error)
	// Newest returns the newest record of the step in the instance, first, and those of its
	// partitions in the order of their ids; nothing where the step has not run. Partitions of work that the
	// step completed before it began again are left out, and so are redrives.
	Newest(ctx context.Context, instance JobInstanceID, step string) ([]StepExecution, error)
	// LeftBehind returns what attempts of the instance's steps left that did not
	// complete.
	LeftBehind(ctx context.Context, instance JobInstanceID) ([]LeftBehind, error)
	// What was skipped is read by a step that reports it.
	SkipReader
}

// LeftBehind is what a step that did not complete left outside of any database,
// as far as its last position says: part of a file, for example.
type LeftBehind struct {
	Attempt
	Position item.Position
}

// Attempt describes the attempt that the run is. It asks the repository.
func (r *StepRun) Attempt(ctx context.Context) (Attempt, error) {
	if r.Step == nil {
		return Attempt{}, errors.New("the step has no record of its attempts")
	}
	first, instance, name := r.Step.ID, r.Data.Job.InstanceID, r.Step.Name
	if r.Data.Earlier != nil {
		first = r.Data.Earlier.First // 0 where it is unknown: all attempts count
	}
	repository, open, err := r.Services.Attempts.OpenAttempts(ctx, instance, name, first, r.Step.ID)
	if err != nil {
		return Attempt{}, fmt.Errorf("step %s: read its attempts: %w", name, err)
	}
	left, err := r.Services.Attempts.LeftBy(ctx, instance, name, r.Step.ID)
	if err != nil {
		return Attempt{}, fmt.Errorf("step %s: read its attempts: %w", name, err)
	}
	alive := func(o Owner) bool { return !r.Services.Owners.IsDead(o) }
	return Attempt{
		Repository: repository, Instance: instance, Step: name, ID: r.Step.ID,
		Exclusive: !slices.ContainsFunc(open, alive) && !slices.ContainsFunc(r.Step.AssignedFrom, alive), Left: left,
	}, nil
}
