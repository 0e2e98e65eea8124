package core

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// Event is something that happened while a job ran. The set is closed: the types
// of this file.
type Event interface{ event() }

// Observer observes a run. Observe is called synchronously for every event, so it must return quickly.
// Events of a transaction are reported when it commits (rule R7). An observer that panics changes
// nothing: the others are notified (ObserverFailed).
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// ObserverFunc makes a function an Observer.
type ObserverFunc func(ctx context.Context, e Event)

// Observe calls f.
func (f ObserverFunc) Observe(ctx context.Context, e Event) { f(ctx, e) }

// Scope is an Observer that adds to the context of the work that an event begins, such as a span of a
// trace: nested work finds it there.
type Scope interface {
	Observer
	// Enter is Observe for events that begin something, JobStarted and StepStarted, and returns the
	// context for the work.
	Enter(ctx context.Context, e Event) context.Context
}

// Enter notifies o, which may be nil, that something begins, and returns the context
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

// Observers calls each of the observers, in order. The result is a Scope that does not panic.
func Observers(list ...Observer) Observer {
	all := make(observers, 0, len(list))
	for _, o := range list {
		switch o := o.(type) {
		case nil:
		case observers:
			all = append(all, o...)
		default:
			all = append(all, o)
		}
	}
	return all
}

type observers []Observer

func (all observers) Observe(ctx context.Context, e Event) {
	for i, o := range all {
		all.guard(ctx, i, e, func() { o.Observe(ctx, e) })
	}
}

func (all observers) Enter(ctx context.Context, e Event) context.Context {
	for i, o := range all {
		all.guard(ctx, i, e, func() {
			if entered := Enter(ctx, o, e); entered != nil {
				ctx = entered
			}
		})
	}
	return ctx
}

func (all observers) ReadFigures(read FiguresFunc) {
	for _, o := range all {
		if reader, ok := o.(FiguresReader); ok {
			reader.ReadFigures(read)
		}
	}
}

// guard reports a panic of an observer to the others, or to the log of the process if there are none. A
// panic during the report itself is not reported.
func (all observers) guard(ctx context.Context, failed int, e Event, observe func()) {
	err := exception.GuardApart(func() error { observe(); return nil })
	if _, again := e.(ObserverFailed); err == nil || again {
		return
	}
	report := ObserverFailed{Observer: fmt.Sprintf("%T", all[failed]), Event: fmt.Sprintf("%T", e), Err: err}
	if len(all) == 1 {
		slog.ErrorContext(ctx, "an observer panicked", "observer", report.Observer, "event", report.Event, "error", err)
		return
	}
	for i, o := range all {
		if i != failed {
			all.guard(ctx, i, report, func() { o.Observe(ctx, report) })
		}
	}
}

// The events.
type (
	// JobStarted: an execution was created or taken over and begins.
	JobStarted struct {
		Execution JobExecution
		Restarted bool
	}
	// JobEnded: the final status is written. Err is the cause of a failure other than the failures of
	// its steps, such as a decider's error.
	JobEnded struct {
		Execution JobExecution
		Err       error
	}
	// StepStarted: the step's record is written.
	StepStarted struct {
		Step StepExecution
		// Kind is the kind of the step: "chunk", "tasklet", "partition", "job", "flow".
		Kind      string
		Restarted bool
	}
	// StepPassed: a restart passes a step that completed before.
	StepPassed struct {
		Execution JobExecutionID // the passing one; Step names the one that did the work
		Visit     Visit
		Step      StepExecution
	}
	// StepEnded: the step's final status is written. Err is the cause of its failure, with the stack of
	// a panic in its chain.
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
	// TasksSubmitted: a step has submitted a group of tasks, and waits for it. Warnings name handlers
	// that no known process has.
	TasksSubmitted struct {
		Execution JobExecutionID
		JobName   string
		Step      string
		StepID    StepExecutionID
		Group     int64
		Handler   string
		Tasks     int
		Warnings  []string
	}
	// Decided: a decision was taken, or kept from an earlier execution.
	Decided struct {
		Execution JobExecutionID
		JobName   string
		Visit     Visit
		Element   string
		Verdict   string
		Kept      bool
	}
	// ElementSkipped: the condition of an element did not hold.
	ElementSkipped struct {
		Execution JobExecutionID
		JobName   string
		Visit     Visit
		Element   string
		Condition string
	}
	// GateChecked: the expectation of a step (or of the job, if Step is empty) was compared with its
	// result.
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
	// CloseFailed: a component could not be closed after the work of its step was done and committed:
	// the step still completes.
	CloseFailed struct {
		Execution JobExecutionID
		JobName   string
		Step      string
		Err       error
	}
	// ListenerFailed: a listener failed when it was called with an error of the reader, a processor or
	// a writer. Only the original error decides what happens (rule C16a).
	ListenerFailed struct {
		Execution JobExecutionID
		JobName   string
		Step      string
		Err       error // names the callback
	}
	// Transitioned: a guarded transition returned. An applied one is committed.
	Transitioned struct {
		Machine string
		Move    string
		ID      int64
		Key     string // of a row with a key that is not a number, such as a UUID; ID is 0 then
		To      Status
		Current Status
		Answer  Answer
		Trigger string
		// Early marks a rejected move that came too early (rule SM2): not a fault.
		Early bool
		// Race marks a move that several processes try and one should win: the others' answer is not a
		// fault.
		Race bool
	}
	// EventDead: the last offer of an inbox event was in vain. Its work is not done; a person must look
	// (rule I4).
	EventDead struct {
		Machine string // of the subject's table
		Topic   string
		ID      int64
		Subject int64 // the row's id
		Offers  int
		Err     error // why the last offer was in vain
	}
	// EndNotRecorded: the end of a step, or of the job if Step is empty, could not be written. To is
	// the status that it would have had.
	EndNotRecorded struct {
		Execution JobExecutionID
		JobName   string
		Step      string
		StepID    StepExecutionID
		To        Status
		Err       error
	}
	// ObserverFailed: an observer panicked.
	ObserverFailed struct {
		Observer, Event string // Go types
		Err             error
	}
	// OwnerLost: this process no longer owns the execution and stops.
	OwnerLost struct{ Execution JobExecutionID }
	// WorkerStarted: this process works from now on, with its name in tasks and the list of workers.
	WorkerStarted struct{ Worker string }
	// ServerStarted: this process serves the API from now on, at an address HOST:PORT.
	ServerStarted struct{ Address string }
	// HeartbeatFailed: a heartbeat did not reach the database.
	HeartbeatFailed struct {
		Execution JobExecutionID // 0 if it is a worker's, for all its tasks
		Err       error
	}
	// LaunchWaits: a launch waits for another execution with its key (rule L12), or for the writer of a
	// SQLite file (rule L7). It is reported once per wait, after a moment.
	LaunchWaits struct {
		Execution JobExecutionID // execution of the step that launches JobName; 0 if no step does
		JobName   string
		Step      string
		Reason    string
	}
	// DeciderMissing: unfinished tasks belong to groups that name a decider that no live worker has
	// (rule W7). The leader reports it each minute.
	DeciderMissing struct {
		Decider string
		Tasks   int
	}
	// ComponentLate: the work of an execution, a part or a task has not returned although its lease is
	// nearly over, or the task's context ended long ago. Another process may begin the same work in
	// parallel (rules L9, W4).
	ComponentLate struct {
		Execution JobExecutionID // 0 for a task
		JobName   string
		Step      string // "": a listener or a decision of the job
		Task      int64  // 0 if not a task
		TaskType  string
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
func (TasksSubmitted) event()  {}
func (Decided) event()         {}
func (ElementSkipped) event()  {}
func (GateChecked) event()     {}
func (StopAsked) event()       {}
func (StopFailed) event()      {}
func (CloseFailed) event()     {}
func (ListenerFailed) event()  {}
func (Transitioned) event()    {}
func (EventDead) event()       {}
func (EndNotRecorded) event()  {}
func (ObserverFailed) event()  {}
func (OwnerLost) event()       {}
func (WorkerStarted) event()   {}
func (ServerStarted) event()   {}
func (HeartbeatFailed) event() {}
func (DeciderMissing) event()  {}
func (ComponentLate) event()   {}
func (LaunchWaits) event()     {}
