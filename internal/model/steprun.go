package model

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// StepRun is one execution of a step: its data, its services and its reports.
type StepRun struct {
	// Data describes the execution. It marshals: another process can run the step from it.
	Data StepContext
	// Services do work for the step that needs a repository or a launcher.
	Services StepServices

	// Step is this attempt's record; the step executor makes it. On a restart it begins with the
	// position and context of Data.Earlier, and with counters of zero: counters belong to one attempt.
	Step *core.StepExecution
	// Ref is the guard of every write about this step.
	Ref ports.StepRef
	// Listeners are the step's listeners, made by the step executor for a Listened
	// step before it executes.
	Listeners []any
	// Deferred is the end of a step of a group, which the group's owner records after the transaction;
	// nil means that the step executor has recorded the end.
	Deferred *DeferredEnd
	// Withheld is the end of a step of a group that was not reported to observers, because the group's
	// transaction was reported as not committed; nil if it was reported or the end is Deferred.
	Withheld *core.StepEnded
	// StartedInGroup means that the start is recorded in the group's transaction, because the database
	// has one writer: a rollback removes the record, and another record may get its ID.
	StartedInGroup bool

	// JoinListeners is called by Join; nil does nothing.
	JoinListeners func(ctx context.Context, components []any) error

	acquired ports.ClaimedStore // the store that UseDatabase put in place of Services.Checkpoints
}

// Join calls BeforeStep of the components that implement it, and arranges for AfterStep to be called at
// the end of the step, after they were closed (rule C16b). A step calls it after it has made its
// components and before it opens them.
func (r *StepRun) Join(ctx context.Context, components []any) error {
	if r.JoinListeners == nil {
		return nil
	}
	return r.JoinListeners(ctx, components)
}

// StepContext is the description of a step execution: data only.
type StepContext struct {
	// Name is the recorded name of the execution; empty means the step's name. Partitions are recorded
	// as STEP:PARTITION.
	Name string
	// Job is a copy for this step, including its context: values put there are not stored.
	// Services.Promoter writes to the job's context.
	Job *core.JobExecution
	// JobRef is the guard of writes about the job, such as the start of this step.
	JobRef ports.JobRef
	// Earlier is the unfinished attempt of the same step that this one continues; nil
	// for a first attempt or a repetition from the start.
	Earlier *core.StepExecution
	// Steps are the earlier steps of this instance, by name: expressions read them.
	Steps map[string]core.StepExecution
	// Last is the step that ended before this one in its flow, or nil.
	Last *core.StepExecution
	// Outcome is the outcome of the flow, in a step of Job.Finally; nil elsewhere.
	Outcome *core.Outcome
	// Part is the partition that this execution works on, or nil.
	Part *core.Partition
	// Parts are the newest executions of this step's partitions in the instance, by
	// the partition's name, for a step that makes partitions.
	Parts map[string]core.StepExecution
	// Visit is the step's visit in the flow, and Before the rows of the journal that are stored with
	// its start.
	Visit  core.Visit
	Before []ports.FlowVisit
	// AcceptChanges means that the operator takes responsibility for changes of the input since the
	// previous attempt: see ChangesAccepter.
	AcceptChanges bool
	// NewDefinition means that the step's definition differs from the previous attempt, which committed
	// nothing of the step: the step must find no position (rule F4a).
	NewDefinition bool
	// Planned is the record that already exists: in STARTING, for a partition, or in STARTED, for a
	// step of a group; nil means that the step executor inserts one.
	Planned *core.StepExecution
	// Resumed means that Planned is this same attempt, which was parked: its listeners and observers
	// were already notified of its start.
	Resumed bool
	// MayPark means that nothing but the step keeps the execution in this process: a step that waits
	// for workers returns ErrParked.
	MayPark bool
	// Group is the group of the transaction that the step takes part in, or nil.
	Group *Group
}

// Clone returns a copy that shares nothing a step may change.
func (c *StepContext) Clone() StepContext {
	own := *c
	own.Job = clonePointer(c.Job, core.JobExecution.Clone)
	own.Earlier = clonePointer(c.Earlier, core.StepExecution.Clone)
	own.Last = clonePointer(c.Last, core.StepExecution.Clone)
	own.Planned = clonePointer(c.Planned, core.StepExecution.Clone)
	own.Part = clonePointer(c.Part, core.Partition.Clone)
	own.Outcome = clonePointer(c.Outcome, func(o core.Outcome) core.Outcome { return o })
	own.Group = clonePointer(c.Group, func(g Group) Group { return g })
	own.Before = slices.Clone(c.Before)
	own.Steps, own.Parts = cloneSteps(c.Steps), cloneSteps(c.Parts)
	return own
}

func clonePointer[T any](p *T, clone func(T) T) *T {
	if p == nil {
		return nil
	}
	own := clone(*p)
	return &own
}

func cloneSteps(records map[string]core.StepExecution) map[string]core.StepExecution {
	own := maps.Clone(records)
	for name, s := range own {
		own[name] = s.Clone()
	}
	return own
}

// RecordName returns the recorded name of the execution of s.
func (r *StepRun) RecordName(s Step) string {
	if r.Data.Name != "" {
		return r.Data.Name
	}
	return s.Name()
}

// View returns the view of the run for conditions, deciders and late-bound values.
func (r *StepRun) View() *core.View {
	d := &r.Data
	return &core.View{Job: d.Job, Steps: d.Steps, Last: d.Last, Step: r.Step, Part: d.Part, Outcome: d.Outcome}
}

// StepContext returns the context of the step's record, which is stored with each commit. It makes one
// if there is none.
func (r *StepRun) StepContext() *core.ExecutionContext {
	if r.Step.Context == nil {
		r.Step.Context = core.NewExecutionContext()
	}
	return r.Step.Context
}

// MarkDefinition notes in the record whether the step takes a new definition. The mark is
// stored with the first commit, or with the end.
func (r *StepRun) MarkDefinition() error {
	s := r.Step
	switch {
	case r.Data.Resumed:
	case r.Data.NewDefinition:
		if s.Context == nil {
			s.Context = core.NewExecutionContext()
		}
		return s.Context.Put(core.NewDefinitionKey, true)
	case s.Context != nil:
		s.Context.Delete(core.NewDefinitionKey)
	}
	return nil
}

// Restarted reports whether this attempt continues an earlier one.
func (r *StepRun) Restarted() bool { return r.Data.Earlier != nil }

// Stopping reports whether a stop was requested.
func (r *StepRun) Stopping() bool { return r.Services.Stop.Requested() }

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
	if start.Counters != (core.Counters{}) { // of a worker that lost the partition
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
	if r.acquired == nil || errors.Is(failure, core.ErrLostOwner) {
		return failure
	}
	return errors.Join(failure, r.acquired.SyncHistory(ctx))
}

// Attempt describes the attempt of the run. It reads the repository.
func (r *StepRun) Attempt(ctx context.Context) (core.Attempt, error) {
	if r.Step == nil {
		return core.Attempt{}, errors.New("the step has no history of its attempts")
	}
	first, instance, name := r.Step.ID, r.Data.Job.InstanceID, r.Step.Name
	if r.Data.Earlier != nil {
		first = r.Data.Earlier.First // 0 if unknown: all attempts count
	}
	repository, open, err := r.Services.Attempts.OpenAttempts(ctx, instance, name, first, r.Step.ID)
	if err != nil {
		return core.Attempt{}, fmt.Errorf("step %s: read its attempts: %w", name, err)
	}
	left, err := r.Services.Attempts.LeftBy(ctx, instance, name, r.Step.ID)
	if err != nil {
		return core.Attempt{}, fmt.Errorf("step %s: read its attempts: %w", name, err)
	}
	alive := func(o core.Owner) bool { return !r.Services.Owners.IsDead(o) }
	return core.Attempt{
		Repository: repository, Instance: instance, Step: name, ID: r.Step.ID, Manager: r.Step.Manager,
		Exclusive: !slices.ContainsFunc(open, alive) && !slices.ContainsFunc(r.Step.AssignedFrom, alive), Left: left,
	}, nil
}
