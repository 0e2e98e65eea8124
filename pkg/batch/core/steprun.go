package core

import (
	"context"
	"maps"
	"slices"
)

// StepRun is one execution of a step: what it is about, what it works with, and what
// it reports.
type StepRun struct {
	// Data says what the execution is about. It marshals: another process can run the
	// step from it.
	Data StepContext
	// Services do for the step what needs a repository or a launcher.
	Services StepServices

	// Step is this attempt's record; the step executor makes it. On a restart it
	// begins with the position and context of Data.Earlier, and with counters of zero:
	// counters are those of one attempt.
	Step *StepExecution
	// Ref is the guard of every write about this step.
	Ref StepRef
	// Listeners are the step's listeners, made by the step executor for a Listened
	// step before it executes.
	Listeners []any
	// Deferred is the end of a step of a group that the group's owner records when the
	// transaction is over; nil: the step executor has recorded the end.
	Deferred *DeferredEnd
	// Withheld is the end of a step of a group that observers have not heard of, as the
	// group's transaction was reported as not committed; nil: they have, or the end is
	// Deferred.
	Withheld *StepEnded
	// StartedInGroup says that the start is recorded in the group's transaction,
	// because the database has one writer: a rollback removes the record, and another
	// record may get its id.
	StartedInGroup bool

	// JoinListeners is what Join calls; nil: nothing.
	JoinListeners func(ctx context.Context, components []any) error

	acquired ClaimedStore // what UseDatabase has put in place of Services.Checkpoints
}

// Join calls BeforeStep of the components that have it, and has AfterStep of those that have it
// called at the end of the step, after they were closed (rule C16b). A step calls it when it has
// made its components, before it opens them.
func (r *StepRun) Join(ctx context.Context, components []any) error {
	if r.JoinListeners == nil {
		return nil
	}
	return r.JoinListeners(ctx, components)
}

// StepContext is what a step execution is about: data only.
type StepContext struct {
	// Name is what the execution is recorded as; empty: the step's name. Partitions
	// are recorded as STEP:PARTITION.
	Name string
	// Job is a copy for this step, its context included: what is put there is not
	// stored. Services.Promoter writes to the job's.
	Job *JobExecution
	// JobRef is the guard of writes about the job, such as the start of this step.
	JobRef JobRef
	// Earlier is the unfinished attempt of the same step that this one continues; nil
	// for a first attempt or a repetition from the start.
	Earlier *StepExecution
	// Steps are the earlier steps of this instance, by name: expressions read them.
	Steps map[string]StepExecution
	// Last is the step that ended before this one in its flow; nil: none did.
	Last *StepExecution
	// Outcome is how the flow ended, in a step of Job.Finally; nil elsewhere.
	Outcome *Outcome
	// Part is the partition that this execution works on; nil: the step has none.
	Part *Partition
	// Parts are the newest executions of this step's partitions in the instance, by
	// the partition's name, for a step that makes partitions.
	Parts map[string]StepExecution
	// Visit is the visit of the flow that the step is, and Before the rows of the
	// journal that are stored with its start.
	Visit  Visit
	Before []FlowVisit
	// AcceptChanges says that the operator is responsible for changes of the input since
	// the attempt before: see ChangesAccepter.
	AcceptChanges bool
	// NewDefinition says that the step has another definition than in the attempt before,
	// and that nothing of that is committed: it must find no position (rule F4a).
	NewDefinition bool
	// Planned is the record that already exists: in STARTING, for a partition, or in
	// STARTED, for a step of a group; nil: the step executor inserts one.
	Planned *StepExecution
	// Resumed says that Planned is this very attempt, which was parked: its listeners and
	// observers have heard of its start.
	Resumed bool
	// MayPark says that nothing beside the step keeps the execution in this process: a
	// step that waits for workers returns ErrParked.
	MayPark bool
	// Group is the group whose transaction the step takes part in; nil: none.
	Group *Group
}

// Clone returns a copy that shares nothing a step may change.
func (c *StepContext) Clone() StepContext {
	own := *c
	own.Job = clonePointer(c.Job, JobExecution.Clone)
	own.Earlier = clonePointer(c.Earlier, StepExecution.Clone)
	own.Last = clonePointer(c.Last, StepExecution.Clone)
	own.Planned = clonePointer(c.Planned, StepExecution.Clone)
	own.Part = clonePointer(c.Part, Partition.Clone)
	own.Outcome = clonePointer(c.Outcome, func(o Outcome) Outcome { return o })
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

func cloneSteps(records map[string]StepExecution) map[string]StepExecution {
	own := maps.Clone(records)
	for name, s := range own {
		own[name] = s.Clone()
	}
	return own
}

// RecordName is what the execution of s is recorded as.
func (r *StepRun) RecordName(s Step) string {
	if r.Data.Name != "" {
		return r.Data.Name
	}
	return s.Name()
}

// View is what conditions, deciders and late-bound values see of the run.
func (r *StepRun) View() *View {
	d := &r.Data
	return &View{Job: d.Job, Steps: d.Steps, Last: d.Last, Step: r.Step, Part: d.Part, Outcome: d.Outcome}
}

// StepContext returns the context of the step's record, which is stored with each commit. It
// makes one where there is none.
func (r *StepRun) StepContext() *ExecutionContext {
	if r.Step.Context == nil {
		r.Step.Context = NewExecutionContext()
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
			s.Context = NewExecutionContext()
		}
		return s.Context.Put(NewDefinitionKey, true)
	case s.Context != nil:
		s.Context.Delete(NewDefinitionKey)
	}
	return nil
}

// Restarted reports whether this attempt continues an earlier one.
func (r *StepRun) Restarted() bool { return r.Data.Earlier != nil }

// Stopping reports whether a stop was requested.
func (r *StepRun) Stopping() bool { return r.Services.Stop.Requested() }
