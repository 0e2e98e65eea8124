package ports

import (
	"context"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// ChangeSource is the place in the history where a change is seen.
type ChangeSource string

// The sources. Rows of the first four are numbered in the order of their
// creation; the others are compared with their earlier state.
const (
	ChangeOfAudit      ChangeSource = "audit" // of executions, steps and definitions
	ChangeOfTaskAudit  ChangeSource = "task_audit"
	ChangeOfTask       ChangeSource = "task"    // a new task
	ChangeOfAttempt    ChangeSource = "attempt" // a new attempt of a task
	ChangeOfHeldTask   ChangeSource = "held"    // a task that a worker has
	ChangeOfStep       ChangeSource = "step"    // a step that runs
	ChangeOfDefinition ChangeSource = "definition"
	ChangeOfWorker     ChangeSource = "worker"
)

// ChangesRequest selects changes.
type ChangesRequest struct {
	// After has the sources to read. A numbered source is read after this number,
	// the newest rows first.
	After map[ChangeSource]int64
	// Executions limits ChangeOfStep to steps of these; empty means all.
	Executions []core.JobExecutionID
	// Limit is the maximum number of rows of a source.
	Limit int
}

// ChangeRow is a row of a source.
type ChangeRow struct {
	Source ChangeSource
	// ID is the number of the row, the task or the step.
	ID        int64
	Execution core.JobExecutionID
	Step      core.StepExecutionID
	Task      int64
	Name      string // of a job or worker
	// Mark differs if the row has changed.
	Mark string
}

// Changes reads changes.
type Changes interface {
	// Changes reads all sources with one statement, which reads at most Limit rows of each.
	Changes(ctx context.Context, req ChangesRequest) ([]ChangeRow, error)
}
