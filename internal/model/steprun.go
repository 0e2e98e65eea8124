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
	// Data marshals: another process can run the step from it.
	Data     StepContext
	Services StepServices

	// Step is this attempt's record, made by the executor. On a restart it begins with
	// Data.Earlier's position and context, and counters of zero.
	Step      *core.StepExecution
	Ref       ports.StepRef
	Listeners []any
	// Deferred is a group step's end, recorded after the transaction; nil: already recorded.
	Deferred *DeferredEnd
	// Withheld is an end not reported, because the group's transaction was reported as not
	// committed.
	Withheld *core.StepEnded
	// StartedInGroup: the start is in the group's transaction, as the database has one writer; a
	// rollback removes it, and another record may get its ID.
	StartedInGroup bool

	JoinListeners func(ctx context.Context, components []any) error

	acquired ports.ClaimedStore // the store that UseDatabase put in place of Services.Checkpoints
}

// Join calls BeforeStep of the components, and arranges AfterStep after they were closed (rule
// C16b). Call it before they are opened.
func (r *StepRun) Join(ctx context.Context, components []any) error {
	if r.JoinListeners == nil {
		return nil
	}
	return r.JoinListeners(ctx, components)
}

// StepContext is the description of a step execution: data only.
type StepContext struct {
	// Name is the recorded name, STEP:PARTITION for partitions; empty means the step's.
	Name string
	// Job is a copy: only Services.Promoter stores context values.
	Job    *core.JobExecution
	JobRef ports.JobRef
	// Earlier is the unfinished attempt that this one continues; nil for none.
	Earlier *core.StepExecution
	Steps   map[string]core.StepExecution
	Last    *core.StepExecution
	// Outcome is the flow's outcome in a step of Job.Finally; else nil.
	Outcome       *core.Outcome
	Part          *core.Partition
	Parts         map[string]core.StepExecution
	Visit         core.Visit
	Before        []ports.FlowVisit
	AcceptChanges bool
	// NewDefinition: the step must find no position, as the previous attempt committed nothing
	// (rule F4a).
	NewDefinition bool
	// Planned is the existing record of a partition or a group's step; nil: one is inserted.
	Planned *core.StepExecution
	// Resumed: Planned was parked; its start was already notified.
	Resumed bool
	// MayPark: a step that waits for workers returns ErrParked.
	MayPark bool
	Group   *Group
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

// View returns the run for conditions and late-bound values.
func (r *StepRun) View() *core.View {
	d := &r.Data
	return &core.View{Job: d.Job, Steps: d.Steps, Last: d.Last, Step: r.Step, Part: d.Part, Outcome: d.Outcome}
}

// StepContext returns the record's context, stored with each commit; made on demand.
func (r *StepRun) StepContext() *core.ExecutionContext {
	if r.Step.Context == nil {
		r.Step.Context = core.NewExecutionContext()
	}
	return r.Step.Context
}

// MarkDefinition notes a new definition in the record, stored with the first commit or
// the end.
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

// UseDatabase prepares the step to commit its progress with its rows there (rule C18). Call it
// before anything that needs the position, and SyncHistory at the end.
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

// Committed, called between commits, keeps the repository up to date with UseDatabase's
// database.
func (r *StepRun) Committed(ctx context.Context) error {
	if r.acquired == nil {
		return nil
	}
	return r.acquired.Committed(ctx)
}

// SyncHistory gives the repository the committed state at the end. It returns failure, joined with
// its own error.
func (r *StepRun) SyncHistory(ctx context.Context, failure error) error {
	if r.acquired == nil || errors.Is(failure, core.ErrLostOwner) {
		return failure
	}
	return errors.Join(failure, r.acquired.SyncHistory(ctx))
}

// Attempt describes the attempt, from the repository.
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
		Repository: repository, Instance: instance, Step: name, ID: r.Step.ID,
		Exclusive: !slices.ContainsFunc(open, alive) && !slices.ContainsFunc(r.Step.AssignedFrom, alive), Left: left,
	}, nil
}
