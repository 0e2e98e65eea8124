package wording

import (
	"fmt"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Stopping describes the effect of a stop.
func Stopping(e *operator.ExecutionView) []string {
	switch {
	case e.Status.IsOver():
		return []string{"It has ended (" + string(e.Status) + "): there is nothing to stop."}
	case e.Status == core.StatusStopping:
		return []string{"It was asked to stop already, and ends after its current chunk."}
	case e.Status == core.StatusParked:
		return []string{"Parts and tasks that a worker has are stopped; the others do not begin. It is STOPPED then, and a restart continues them."}
	}
	return []string{
		"Each running step commits its current chunk and ends. The execution is STOPPED then: committed work stays, and a restart continues there.",
		"A step that is not made of chunks ends when its work lets it.",
	}
}

// Abandoning describes the effect of abandoning an execution.
func Abandoning(e *operator.ExecutionView) []string {
	switch e.Status {
	case core.StatusAbandoned:
		return []string{"It is abandoned already."}
	case core.StatusCompleted:
		return []string{"It is COMPLETED: it cannot be abandoned."}
	case core.StatusStarting, core.StatusStarted, core.StatusParked:
		return []string{"It is not over: stop it first."}
	default:
		return []string{
			"It can never be restarted. Committed work stays; its open parts and tasks do not run.",
			"The same parameters can be run as a new instance, which begins at the start.",
		}
	}
}

// WorkAct describes the effect of an act on tasks, schedules and events.
func WorkAct(operation string) []string {
	return map[string][]string{
		"cancel-task":        {"It does not run, or is told to end at the next heartbeat of its worker. Committed work stays."},
		"rerun-task":         {"It runs once more, as soon as a worker takes it."},
		"submit-group":       {"It is a group of one task. A worker with a handler of its type executes it, and tries it again if it fails, as often as its attempts allow."},
		"cancel-group":       {"Its tasks that have not begun do not run; those that run are told to end."},
		"offer-event":        {"Its application receives it again, as often and as long as a new one."},
		"disable-definition": {"The schedule starts no further runs. Runs that were submitted, and executions that run, go on."},
		"enable-definition":  {"The schedule starts runs again. Times that passed while it was paused are not caught up."},
		"register-job":       {"Its file, and the files that it names, are stored: from now on workers start it at the times of its schedule, and clients by its name. Running executions keep the version that they have."},
		"recover":            {"Executions whose process is gone become FAILED, so that they can be restarted. Those with a live process stay as they are."},
		"change-setting":     {"The leader reads it at its next poll."},
	}[operation]
}

// Registering describes the registration of a version of a job; registered is the present one, or "".
func Registering(version, registered string, scheduled bool) string {
	text := "It is not registered."
	if registered == version {
		text = "It is registered with this version already: " + shortHash(version) + "."
	} else if registered != "" {
		text = fmt.Sprintf("Version %s replaces %s.", shortHash(version), shortHash(registered))
	}
	if !scheduled {
		text += " Its file has no schedule: it is started by its name."
	}
	return text
}

func shortHash(hash string) string {
	const digits = 12
	return hash[:min(len(hash), digits)]
}
