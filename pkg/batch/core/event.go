package core

import (
	"context"
	"time"
)

// Event is something that happened while a job ran. The set is closed: the types
// of this file.
type Event interface{ event() }

// Observer is told of every event, on the goroutine where it happened: it must
// be quick and must not fail.
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// ObserverFunc makes a function an Observer.
type ObserverFunc func(ctx context.Context, e Event)

// Observe calls f.
func (f ObserverFunc) Observe(ctx context.Context, e Event) { f(ctx, e) }

// Scope is an Observer that adds to the context in which the work of an event
// goes on, such as a span of a trace: what that work starts finds it there.
type Scope interface {
	Observer
	// Enter is Observe for events that begin something, JobStarted and StepStarted,
	// and answers the context for the work.
	Enter(ctx context.Context, e Event) context.Context
}

// Enter tells o, which may be nil, that something begins, and answers the context
// for its work.
func Enter(ctx context.Context, o Observer, e Event) context.Context {
	if s, ok := o.(Scope); ok {
		return s.Enter(ctx, e)
	}
	if o != nil {
		o.Observe(ctx, e)
	}
	return ctx
}

// Observers tells each of the observers, in order. What it returns is a Scope.
func Observers(list ...Observer) Observer {
	all := make(observers, 0, len(list))
	for _, o := range list {
		if o != nil {
			all = append(all, o)
		}
	}
	return all
}

type observers []Observer

func (all observers) Observe(ctx context.Context, e Event) {
	for _, o := range all {
		o.Observe(ctx, e)
	}
}

func (all observers) Enter(ctx context.Context, e Event) context.Context {
	for _, o := range all {
		ctx = Enter(ctx, o, e)
	}
	return ctx
}

// The events.
type (
	// JobStarted: an execution was created or taken over and begins.
	JobStarted struct {
		Execution JobExecution
		Restarted bool
	}
	// JobEnded: the final status is written. Err is what made the execution fail
	// besides the failures of its steps, such as a decider's error.
	JobEnded struct {
		Execution JobExecution
		Err       error
	}
	// StepStarted: the step's record is written.
	StepStarted struct {
		Step StepExecution
		// Kind is that of the step: "chunk", "tasklet", "partition", "job", "flow".
		Kind      string
		Restarted bool
	}
	// StepPassed: a restart passes a step that completed before.
	StepPassed struct {
		Execution JobExecutionID // that passes it; Step names the one that did the work
		Step      StepExecution
	}
	// StepEnded: the step's final status is written. Err is what made it fail, with
	// the stack of a panic in its chain.
	StepEnded struct {
		Step StepExecution
		Kind string // as in StepStarted
		Err  error
	}
	// ChunkCommitted: rows, counters and position of a chunk are committed.
	ChunkCommitted struct {
		Execution JobExecutionID
		JobName   string
		Step      string
		StepID    StepExecutionID
		Counters  Counters // of the step so far
		Took      time.Duration
	}
	// ChunkRolledBack: a chunk was undone.
	ChunkRolledBack struct {
		Execution JobExecutionID
		JobName   string
		Step      string
		StepID    StepExecutionID
		Err       error
	}
	// Decided: a decision was taken, or kept from an earlier execution.
	Decided struct {
		Execution JobExecutionID
		JobName   string
		Element   string
		Verdict   string
		Kept      bool
	}
	// ElementSkipped: the condition of an element did not hold.
	ElementSkipped struct {
		Execution JobExecutionID
		JobName   string
		Element   string
		Condition string
	}
	// GateChecked: what a step (or the job, if Step is empty) was expected to do was
	// compared with what it did.
	GateChecked struct {
		Execution JobExecutionID
		JobName   string
		Step      string
		Gate      string // as stored
		Held      bool
	}
	// StopAsked: a stop request reached this process.
	StopAsked struct{ Execution JobExecutionID }
	// StopFailed: a tasklet that was asked to stop could not; the request stands.
	StopFailed struct {
		Execution JobExecutionID
		Step      string
		Err       error
	}
	// CloseFailed: a component could not be closed when the work of its step was done
	// and committed: the step completes all the same.
	CloseFailed struct {
		Execution JobExecutionID
		JobName   string
		Step      string
		Err       error
	}
	// Transitioned: a guarded transition answered.
	Transitioned struct {
		Machine string
		ID      int64
		To      Status
		Current Status
		Answer  Answer
		Trigger string
	}
	// OwnerLost: this process no longer owns the execution and stops.
	OwnerLost struct{ Execution JobExecutionID }
	// HeartbeatFailed: a heartbeat did not reach the database.
	HeartbeatFailed struct {
		Execution JobExecutionID
		Err       error
	}
)

func (JobStarted) event()      {}
func (JobEnded) event()        {}
func (StepStarted) event()     {}
func (StepPassed) event()      {}
func (StepEnded) event()       {}
func (ChunkCommitted) event()  {}
func (ChunkRolledBack) event() {}
func (Decided) event()         {}
func (ElementSkipped) event()  {}
func (GateChecked) event()     {}
func (StopAsked) event()       {}
func (StopFailed) event()      {}
func (CloseFailed) event()     {}
func (Transitioned) event()    {}
func (OwnerLost) event()       {}
func (HeartbeatFailed) event() {}
