package core

import (
	"log/slog"
	"slices"
	"strings"
	"time"
)

// Event happened while a job ran: a closed set, this file's types.
type Event interface{ line() Line }

// The events.
type (
	// JobStarted: an execution begins, new or taken over.
	JobStarted struct {
		Execution JobExecution
		Restarted bool
	}
	// JobEnded: the final status is written. Err is a cause other than its steps' failures.
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
	// StepPassed: a restart passes a completed step.
	StepPassed struct {
		Execution JobExecutionID // the passing one; Step did the work
		Visit     Visit
		Step      StepExecution
	}
	// StepEnded: the final status is written. Err is the failure, with a panic's stack.
	StepEnded struct {
		Step StepExecution
		Kind string // as in StepStarted
		Err  error
	}
	// ChunkCommitted: a chunk is committed.
	ChunkCommitted struct {
		Execution JobExecutionID
		JobName   string
		Step      string
		StepID    StepExecutionID
		Counters  Counters // so far
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
	// Retried: work failed, and is tried again after a pause.
	Retried struct {
		Execution JobExecutionID
		JobName   string
		Step      string
		StepID    StepExecutionID
		Attempt   int // that failed, from 1
		Err       error
	}
	// LogLost: lines of an execution's log could not be stored (rule LG4).
	LogLost struct {
		Execution JobExecutionID
		Lines     int64
		Err       error
	}
	// TasksSubmitted: a step waits for its group of tasks. Warnings name handlers no process has.
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
	// Decided: a decision was taken, or kept.
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
	// GateChecked: an expectation of a step, or of the job if Step is empty, was compared.
	GateChecked struct {
		Execution JobExecutionID
		JobName   string
		Step      string
		Gate      string // as stored
		Held      bool
	}
	// StopAsked: a stop request reached this process.
	StopAsked struct{ Execution JobExecutionID }
	// StopFailed: a tasklet could not stop; the request stands.
	StopFailed struct {
		Execution JobExecutionID
		Step      string
		Err       error
	}
	// CloseFailed: after committed work; the step still completes.
	CloseFailed struct {
		Execution JobExecutionID
		JobName   string
		Step      string
		Err       error
	}
	// ListenerFailed: only the original error decides (rule C16a).
	ListenerFailed struct {
		Execution JobExecutionID
		JobName   string
		Step      string
		Err       error // names the callback
	}
	// Transitioned: a guarded transition returned; an applied one is committed.
	Transitioned struct {
		Machine string
		Move    string
		ID      int64
		Key     string // a key that is not a number; ID is 0 then
		To      Status
		Current Status
		Answer  Answer
		Trigger string
		// Early: rejected as too early (rule SM2), not a fault.
		Early bool
		// Race: one of several processes should win; the others are not at fault.
		Race bool
	}
	// EventDead: an inbox event's last offer was in vain; a person must look (rule I4).
	EventDead struct {
		Machine string
		Topic   string
		ID      int64
		Subject int64 // the row's id
		Offers  int
		Err     error
	}
	// EndNotRecorded: the end of a step, or of the job if Step is empty, could not be written; To is its
	// status.
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
	// OwnerLost: this process stops an execution.
	OwnerLost struct{ Execution JobExecutionID }
	// WorkerStarted: this process works, with this name.
	WorkerStarted struct{ Worker string }
	// ServerStarted: this process serves the API at HOST:PORT.
	ServerStarted struct{ Address string }
	// HeartbeatFailed: it did not reach the database.
	HeartbeatFailed struct {
		Execution JobExecutionID // 0 for a worker's
		Err       error
	}
	// SeriesNotStored: the counters over time wait for a later heartbeat. Once per process and execution, or part.
	SeriesNotStored struct {
		Execution JobExecutionID
		Err       error
	}
	// LaunchWaits: for another execution with its key (rule L12), or SQLite's writer (rule L7). Once per wait,
	// after a moment.
	LaunchWaits struct {
		Execution JobExecutionID // of the launching step; 0 if none
		JobName   string
		Step      string
		Reason    string
	}
	// DeciderMissing: unfinished tasks need a decider that no live worker has (rule W7). Each minute, by the
	// leader.
	DeciderMissing struct {
		Decider string
		Tasks   int
	}
	// ComponentLate: work has not returned although its lease is nearly over, or its context ended long ago.
	// Another process may begin it in parallel (rules L9, W4).
	ComponentLate struct {
		Execution JobExecutionID // 0 for a task
		JobName   string
		Step      string // "": of the job
		Task      int64  // 0 if not a task
		TaskType  string
		Err       error
	}
)

// Line is an event in a log.
type Line struct {
	Event   string // stable, such as "step.ended"
	Level   slog.Level
	Message string      // for people
	Attrs   []slog.Attr // with stable keys
}

// LineOf returns the line of an event.
func LineOf(e Event) Line { return e.line() }

func (e JobStarted) line() Line {
	message := "job started"
	if e.Restarted {
		message = "job restarted"
	}
	return newLine("job.started", slog.LevelInfo, message, jobAttrs(e.Execution.JobName, e.Execution.ID),
		slog.Int("attempt", e.Execution.Attempt), slog.Bool("restarted", e.Restarted))
}

func (e JobEnded) line() Line {
	x := e.Execution
	failure := optionalAttr("error", x.Error)
	if e.Err != nil {
		failure = errorAttr(e.Err)
	}
	return newLine("job.ended", levelOfStatus(x.Status), "job ended", jobAttrs(x.JobName, x.ID), slog.Int("attempt", x.Attempt),
		slog.String("status", string(x.Status)), slog.String("exit_code", x.ExitCode), optionalAttr("gate", x.Gate),
		secondsAttr(x.EndedAt.Sub(x.StartedAt)), failure)
}

func (e StepStarted) line() Line {
	message := "step started"
	if e.Restarted {
		message = "step resumed"
	}
	return newLine("step.started", slog.LevelInfo, message, stepAttrs(e.Step.JobName, e.Step.JobExecutionID, e.Step.Name, e.Step.ID),
		optionalAttr("kind", e.Kind), slog.Bool("restarted", e.Restarted))
}

func (e StepPassed) line() Line {
	subject := []slog.Attr{optionalAttr("job", e.Step.JobName)}
	if e.Execution != 0 {
		subject = append(subject, executionAttr(e.Execution))
	}
	return newLine("step.passed", slog.LevelInfo, "step passed: it completed before", groupAttrs(subject...),
		slog.String("step", e.Step.Name), slog.Int64("step_execution", int64(e.Step.ID)),
		slog.Int64("completed_in", int64(e.Step.JobExecutionID)), slog.String("exit_code", e.Step.ExitCode))
}

func (e StepEnded) line() Line {
	s, level := e.Step, levelOfStatus(e.Step.Status)
	warning := strings.Join(s.Warnings(), "; ")
	if warning != "" {
		level = max(level, slog.LevelWarn)
	}
	return newLine("step.ended", level, "step ended", stepAttrs(s.JobName, s.JobExecutionID, s.Name, s.ID), optionalAttr("kind", e.Kind),
		slog.String("status", string(s.Status)), slog.String("exit_code", s.ExitCode), optionalAttr("gate", s.Gate),
		secondsAttr(s.EndedAt.Sub(s.StartedAt)), counterAttrs(s.Counters), optionalAttr("warning", warning), optionalAttr("error", s.Error))
}

func (e ChunkCommitted) line() Line {
	return newLine("chunk.committed", slog.LevelDebug, "chunk committed", stepAttrs(e.JobName, e.Execution, e.Step, e.StepID),
		secondsAttr(e.Took), counterAttrs(e.Counters))
}

func (e ChunkRolledBack) line() Line {
	return newLine("chunk.rolled_back", slog.LevelDebug, "chunk rolled back", stepAttrs(e.JobName, e.Execution, e.Step, e.StepID), errorAttr(e.Err))
}

func (e Retried) line() Line {
	return newLine("step.retried", slog.LevelDebug, "retrying after a failure", stepAttrs(e.JobName, e.Execution, e.Step, e.StepID),
		slog.Int("attempt", e.Attempt), errorAttr(e.Err))
}

func (e LogLost) line() Line {
	return newLine("log.lost", slog.LevelWarn, "lines of the execution's log could not be stored", executionAttr(e.Execution), slog.Int64("lines", e.Lines), errorAttr(e.Err))
}

func (e TasksSubmitted) line() Line {
	level := slog.LevelInfo
	if len(e.Warnings) > 0 {
		level = slog.LevelWarn
	}
	return newLine("tasks.submitted", level, "tasks submitted", jobAttrs(e.JobName, e.Execution), slog.String("step", e.Step),
		slog.Int64("group", e.Group), slog.String("handler", e.Handler), slog.Int("tasks", e.Tasks),
		optionalAttr("warning", strings.Join(e.Warnings, "; ")))
}

func (e Decided) line() Line {
	message := "decided"
	if e.Kept {
		message = "decision kept from an earlier attempt"
	}
	return newLine("decision.taken", slog.LevelInfo, message, jobAttrs(e.JobName, e.Execution),
		slog.String("element", e.Element), slog.String("verdict", e.Verdict), slog.Bool("kept", e.Kept))
}

func (e ElementSkipped) line() Line {
	return newLine("element.skipped", slog.LevelInfo, "element skipped: its condition does not hold", jobAttrs(e.JobName, e.Execution),
		slog.String("element", e.Element), slog.String("condition", e.Condition))
}

func (e GateChecked) line() Line {
	level, message := slog.LevelInfo, "expectation holds"
	if !e.Held {
		level, message = slog.LevelWarn, "expectation does not hold"
	}
	return newLine("gate.checked", level, message, jobAttrs(e.JobName, e.Execution), optionalAttr("step", e.Step),
		slog.String("gate", e.Gate), slog.Bool("held", e.Held))
}

func (e StopAsked) line() Line {
	return newLine("stop.asked", slog.LevelInfo, "stop requested: stopping after the current chunk commits", executionAttr(e.Execution))
}

func (e StopFailed) line() Line {
	return newLine("stop.failed", slog.LevelWarn, "a tasklet cannot be stopped: waiting for it to return",
		executionAttr(e.Execution), slog.String("step", e.Step), errorAttr(e.Err))
}

func (e CloseFailed) line() Line {
	return newLine("close.failed", slog.LevelWarn, "a component did its work but could not be closed",
		jobAttrs(e.JobName, e.Execution), slog.String("step", e.Step), errorAttr(e.Err))
}

func (e ListenerFailed) line() Line {
	return newLine("listener.failed", slog.LevelWarn, "a listener failed when it was called with an error",
		jobAttrs(e.JobName, e.Execution), slog.String("step", e.Step), errorAttr(e.Err))
}

func (e Transitioned) line() Line {
	level := slog.LevelError
	switch {
	case e.Answer == Applied, e.Race:
		level = slog.LevelDebug
	case e.Answer == Duplicate, e.Early: // senders repeat and overtake
		level = slog.LevelInfo
	}
	row := slog.Int64("id", e.ID)
	if e.Key != "" {
		row = slog.String("key", e.Key)
	}
	var early slog.Attr
	if e.Early {
		early = slog.Bool("early", true)
	}
	return newLine("transition", level, "transition", slog.String("machine", e.Machine), row, slog.String("trigger", e.Trigger),
		slog.String("to", string(e.To)), optionalAttr("current", string(e.Current)), slog.String("result", string(e.Answer)), early)
}

func (e EventDead) line() Line {
	return newLine("event.dead", slog.LevelError, "an inbox event is dead: its last offer failed",
		slog.String("machine", e.Machine), slog.String("topic", e.Topic), slog.Int64("id", e.ID), slog.Int64("subject", e.Subject),
		slog.Int("offers", e.Offers), errorAttr(e.Err))
}

func (e EndNotRecorded) line() Line {
	return newLine("end.not_recorded", slog.LevelError, "an end could not be recorded", jobAttrs(e.JobName, e.Execution),
		optionalAttr("step", e.Step), slog.String("to", string(e.To)), errorAttr(e.Err))
}

func (e ObserverFailed) line() Line {
	return newLine("observer.failed", slog.LevelError, "an observer panicked",
		slog.String("observer", e.Observer), slog.String("of", e.Event), errorAttr(e.Err))
}

func (e OwnerLost) line() Line {
	return newLine("owner.lost", slog.LevelError, "another process took over the execution: this one stops and commits nothing more", executionAttr(e.Execution))
}

func (e WorkerStarted) line() Line {
	return newLine("worker.started", slog.LevelInfo, "a worker started", slog.String("worker", e.Worker))
}

func (e ServerStarted) line() Line {
	return newLine("server.started", slog.LevelInfo, "a server started", slog.String("address", e.Address))
}

func (e HeartbeatFailed) line() Line {
	return newLine("heartbeat.failed", slog.LevelWarn, "a heartbeat did not reach the database", executionAttr(e.Execution), errorAttr(e.Err))
}

func (e SeriesNotStored) line() Line {
	return newLine("series.not_stored", slog.LevelWarn, "counters over time could not be stored: tried again with each heartbeat",
		executionAttr(e.Execution), errorAttr(e.Err))
}

func (e LaunchWaits) line() Line {
	return newLine("launch.waits", slog.LevelInfo, "waiting to launch job "+e.JobName, jobAttrs(e.JobName, e.Execution),
		optionalAttr("step", e.Step), optionalAttr("reason", e.Reason))
}

func (e DeciderMissing) line() Line {
	return newLine("decider.missing", slog.LevelWarn, "tasks wait for a decider that no live worker has",
		slog.String("decider", e.Decider), slog.Int("tasks", e.Tasks))
}

func (e ComponentLate) line() Line {
	subject := jobAttrs(e.JobName, e.Execution)
	if e.Task != 0 {
		subject = groupAttrs(slog.Int64("task", e.Task), slog.String("type", e.TaskType))
	}
	return newLine("component.late", slog.LevelError,
		"the lease is about to expire and a component has not returned: another process may start the same work in parallel",
		subject, optionalAttr("step", e.Step), errorAttr(e.Err))
}

// Groups without a name are inlined.
func newLine(event string, level slog.Level, message string, attrs ...slog.Attr) Line {
	flat := make([]slog.Attr, 0, 16)
	for _, a := range attrs {
		switch {
		case a.Key != "":
			flat = append(flat, a)
		case a.Value.Kind() == slog.KindGroup:
			flat = append(flat, a.Value.Group()...)
		}
	}
	return Line{Event: event, Level: level, Message: message, Attrs: flat}
}

func groupAttrs(attrs ...slog.Attr) slog.Attr {
	return slog.Attr{Value: slog.GroupValue(slices.DeleteFunc(attrs, func(a slog.Attr) bool { return a.Key == "" })...)}
}

func jobAttrs(job string, id JobExecutionID) slog.Attr {
	return groupAttrs(slog.String("job", job), executionAttr(id))
}

func stepAttrs(job string, id JobExecutionID, step string, stepID StepExecutionID) slog.Attr {
	return groupAttrs(slog.String("job", job), executionAttr(id), slog.String("step", step), slog.Int64("step_execution", int64(stepID)))
}

func executionAttr(id JobExecutionID) slog.Attr { return slog.Int64("execution", int64(id)) }

func secondsAttr(d time.Duration) slog.Attr {
	return slog.Float64("duration_seconds", max(d, 0).Seconds())
}

func counterAttrs(c Counters) slog.Attr {
	list := []slog.Attr{
		slog.Int64("read", c.Read), slog.Int64("filtered", c.Filter), slog.Int64("written", c.Write),
		slog.Int64("skipped", c.Skips()), slog.Int64("commits", c.Commit), slog.Int64("rollbacks", c.Rollback),
	}
	return groupAttrs(slices.DeleteFunc(list, func(a slog.Attr) bool { return a.Value.Int64() == 0 })...)
}

func optionalAttr(key, value string) slog.Attr {
	if value == "" {
		return slog.Attr{}
	}
	return slog.String(key, value)
}

func errorAttr(err error) slog.Attr {
	if err == nil {
		return slog.Attr{}
	}
	return slog.String("error", err.Error())
}

func levelOfStatus(s Status) slog.Level {
	if s == StatusFailed || s == StatusUnknown {
		return slog.LevelError
	}
	return slog.LevelInfo
}
