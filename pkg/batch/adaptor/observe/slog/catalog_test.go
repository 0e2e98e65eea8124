package slog

import "fmt"

type Entry struct {
	Event  string
	Levels string
	// Attributes in addition to `event`, in order; one in brackets is present only if it has a value.
	Attributes string
}

func Catalog() []Entry {
	counters := "[read] [filtered] [written] [skipped] [commits] [rollbacks]"
	return []Entry{
		{"job.started", "INFO", "job execution attempt restarted"},
		{"job.ended", "INFO; ERROR if it is FAILED or UNKNOWN", "job execution attempt status exit_code [gate] duration_seconds [error]"},
		{"step.started", "INFO", "job execution step step_execution [kind] restarted"},
		{"step.passed", "INFO", "job [execution] step step_execution completed_in exit_code"},
		{"step.ended", "INFO; ERROR if it is FAILED or UNKNOWN", "job execution step step_execution [kind] status exit_code [gate] duration_seconds " + counters + " [error]"},
		{"chunk.committed", "DEBUG", "job execution step step_execution duration_seconds " + counters},
		{"chunk.rolled_back", "DEBUG", "job execution step step_execution [error]"},
		{"step.retried", "DEBUG", "job execution step step_execution attempt [error]"},
		{"log.lost", "WARN", "execution lines [error]"},
		{"decision.taken", "INFO", "job execution element verdict kept"},
		{"tasks.submitted", "INFO; WARN if no worker has the handler", "job execution step group handler tasks [warning]"},
		{"element.skipped", "INFO", "job execution element condition"},
		{"gate.checked", "INFO; WARN if it does not hold", "job execution [step] gate held"},
		{"stop.asked", "INFO", "execution"},
		{"stop.failed", "WARN", "execution step [error]"},
		{"close.failed", "WARN", "job execution step [error]"},
		{"listener.failed", "WARN", "job execution step [error]"},
		{"transition", "DEBUG; INFO for a duplicate or one that came too early; ERROR for another rejected one", "machine [id] [key] trigger to [current] result [early]"},
		{"event.dead", "ERROR", "machine topic id subject offers [error]"},
		{"end.not_recorded", "ERROR", "job execution [step] to [error]"},
		{"observer.failed", "ERROR", "observer of [error]"},
		{"owner.lost", "ERROR", "execution"},
		{"worker.started", "INFO", "worker"},
		{"server.started", "INFO", "address"},
		{"heartbeat.failed", "WARN", "execution [error]"},
		{"series.not_stored", "WARN", "execution [error]"},
		{"launch.waits", "INFO", "job execution [step] [reason]"},
		{"decider.missing", "WARN", "decider tasks"},
		{"component.late", "ERROR", "job execution [step] [error]"},
	}
}

func Table() string {
	text := "| event | level | attributes |\n|---|---|---|\n"
	for _, e := range Catalog() {
		text += fmt.Sprintf("| `%s` | %s | `%s` |\n", e.Event, e.Levels, e.Attributes)
	}
	return text
}
