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

// Attempt names the step execution in which a component works. A component that keeps data outside any
// database, such as a file, needs it to distinguish its own data from others' data (rule C15b).
type Attempt struct {
	// Repository is the identity of the history.
	Repository string
	Instance   JobInstanceID
	// Step is the recorded name of the step: STEP, or STEP:PARTITION.
	Step string
	// ID grows from attempt to attempt of a step.
	ID StepExecutionID
	// Exclusive means that all earlier attempts that this one continues are over: they recorded it
	// after their components were closed, or their process is dead. Their leftovers then belong to this
	// attempt. Otherwise one of them may wake.
	Exclusive bool
	// Left are the last positions of earlier attempts that did not complete: of the step as Attempts
	// knows them, of its writers as chunk.AttemptOf hands them on. An attempt that wakes may still use
	// the files they name.
	Left []item.Position
	// From are the positions of the step's writers from which this attempt continues, as
	// chunk.AttemptOf hands them on: a writer needs the files they name.
	From []item.Position
}

// Scope returns a short text that all attempts of one step of one instance share, and no other step: 12
// hexadecimal digits.
func (a Attempt) Scope() string {
	sum := sha256.Sum256([]byte(a.Repository + "\x00" + strconv.FormatInt(int64(a.Instance), 10) + "\x00" + a.Step))
	return hex.EncodeToString(sum[:6])
}

// Attempts reads the state of the attempts of a step.
type Attempts interface {
	// OpenAttempts returns the identity of the repository, and the owners of the attempts of the step
	// in the instance that have not recorded that their components are closed, with IDs from first up
	// to, not including, before.
	OpenAttempts(ctx context.Context, instance JobInstanceID, step string, first, before StepExecutionID) (repository string, owners []Owner, err error)
	// LeftBy returns the positions of the step's attempts in the instance, before one, that did not
	// complete.
	LeftBy(ctx context.Context, instance JobInstanceID, step string, before StepExecutionID) ([]item.Position, error)
	// LastCompleted returns the position at which the step completed in the newest complete instance of
	// the job that was made before one, apart from redrives, or nil (rule IL1). It outlives a purge.
	LastCompleted(ctx context.Context, job, step string, before JobInstanceID) (item.Position, error)
	// Newest returns the newest record of the step in the instance, first, and its partitions' in the
	// order of their IDs; nothing if the step has not run. It leaves out redrives and partitions of
	// work that the step completed before it began again.
	Newest(ctx context.Context, instance JobInstanceID, step string) ([]StepExecution, error)
	// LeftBehind returns the leftovers of attempts of the instance's steps that did not complete.
	LeftBehind(ctx context.Context, instance JobInstanceID) ([]LeftBehind, error)
	// A step that reports skipped items reads them here.
	SkipReader
}

// LeftBehind is the data outside any database that an incomplete step left, according to its last
// position: part of a file, for example.
type LeftBehind struct {
	Attempt
	Position item.Position
}

// Attempt describes the attempt of the run. It reads the repository.
func (r *StepRun) Attempt(ctx context.Context) (Attempt, error) {
	if r.Step == nil {
		return Attempt{}, errors.New("the step has no history of its attempts")
	}
	first, instance, name := r.Step.ID, r.Data.Job.InstanceID, r.Step.Name
	if r.Data.Earlier != nil {
		first = r.Data.Earlier.First // 0 if unknown: all attempts count
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
