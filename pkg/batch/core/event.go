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

// Observers tells each of the observers, in order.
func Observers(list ...Observer) Observer {
	return ObserverFunc(func(ctx context.Context, e Event) {
		for _, o := range list {
			if o != nil {
				o.Observe(ctx, e)
			}
		}
	})
}

// The events.
type (
	// JobStarted: an execution was created or taken over and begins.
	JobStarted struct {
		Execution JobExecution
		Restarted bool
	}
	// JobEnded: the final status is written.
	JobEnded struct{ Execution JobExecution }
	// StepStarted: the step's record is written.
	StepStarted struct {
		Step      StepExecution
		Restarted bool
	}
	// StepPassed: a restart passes a step that completed before.
	StepPassed struct{ Step StepExecution }
	// StepEnded: the step's final status is written. Err is what made it fail, with
	// the stack of a panic in its chain.
	StepEnded struct {
		Step StepExecution
		Err  error
	}
	// ChunkCommitted: rows, counters and position of a chunk are committed.
	ChunkCommitted struct {
		Step     string
		StepID   StepExecutionID
		Counters Counters // of the step so far
		Took     time.Duration
	}
	// ChunkRolledBack: a chunk was undone.
	ChunkRolledBack struct {
		Step   string
		StepID StepExecutionID
		Err    error
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
func (Transitioned) event()    {}
func (OwnerLost) event()       {}
func (HeartbeatFailed) event() {}
