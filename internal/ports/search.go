package ports

import (
	"context"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// ExecutionSearch selects executions by more than an index can answer in the order of their IDs. All
// conditions must hold; zero fields select all.
type ExecutionSearch struct {
	// Filter has the job, the instance, the statuses, the exit code, the times of creation, Before and
	// Limit; its other fields do not apply.
	Filter ExecutionFilter
	// After selects larger IDs, the smallest first. It excludes Filter.Before.
	After core.JobExecutionID
	// Params select executions with all of these parameters, identifying or not.
	Params []ParameterMatch
	// Text is in an error of the execution or of a step, or in an exit code with a name of its own; its
	// case does not matter.
	Text string
	// EndedFrom and EndedTo bound the time of the end, [from, to).
	EndedFrom, EndedTo time.Time
	// LongerThan selects executions that took longer, or run for longer.
	LongerThan time.Duration
	// SkipsLeft selects executions with skipped items that were not redriven, Redriven those with
	// redrives.
	SkipsLeft, Redriven bool
	StopRequested       bool
	// Lost selects executions that ended because their owner was lost, or that have an expired lease.
	Lost bool
	// Actor selects executions by an actor of their acts, as ActFilter does.
	Actor string
	// Worker selects executions with a step or part that a worker had: its name, HOST or HOST:PID.
	Worker string
	// Budget is the time after which the search ends where it is. At least one statement for each
	// condition is executed.
	Budget time.Duration
}

// ParameterMatch is the name of a parameter, and the texts that one of its values may have.
type ParameterMatch struct {
	Name   string
	Values []ParameterText
}

// ParameterText is the canonical text of a value, and its possible types.
type ParameterText struct {
	Types []core.ParameterType
	Text  string
}

// Found is a page of a search.
type Found struct {
	// IDs are in the order of the search.
	IDs []core.JobExecutionID
	// Reached is the last ID to which the search is complete: the next page begins after it. 0 means
	// that everything was searched.
	Reached core.JobExecutionID
	// ReachedAt is when the execution at that place was created.
	ReachedAt time.Time
}

// Searches finds executions in bounded statements: none reads more than 20,000 rows, and a search
// without a hit ends within its budget.
type Searches interface {
	Search(ctx context.Context, search ExecutionSearch) (Found, error)
	// ParameterNames returns names of parameters in the history, sorted, at most limit.
	ParameterNames(ctx context.Context, limit int) ([]string, error)
}
