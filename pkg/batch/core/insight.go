package core

import "context"

// Insight is implemented by repositories that answer about many records with one
// statement each; who explains or watches executions asks for it, and does without
// where it is not there.
type Insight interface {
	// StepsOf returns the step executions of several job executions, in order, by
	// their job execution.
	StepsOf(ctx context.Context, ids ...JobExecutionID) (map[JobExecutionID][]StepExecution, error)
	// LastExecutions returns the newest execution of each of the instances that has one.
	LastExecutions(ctx context.Context, ids ...JobInstanceID) (map[JobInstanceID]JobExecution, error)
	// SkipCounts counts the skipped items of a job execution, by step, phase and
	// class, in this order.
	SkipCounts(ctx context.Context, id JobExecutionID) ([]SkipCount, error)
}

// SkipCount is a number of skipped items.
type SkipCount struct {
	Step  string
	Phase Phase
	// Class is that of their errors; empty: they have none.
	Class string
	Count int64
	// Left is how many of them no execution has redriven.
	Left int64
}

// Keys of the context of a step execution that failed: what the text of its error
// does not say in a way that can be relied on.
const (
	// ErrorClassKey has the class of the error, a string.
	ErrorClassKey = "surfin.error_class"
	// ErrorItemKey has where the item came from that it is about, such as
	// "in.csv:17", a string.
	ErrorItemKey = "surfin.error_item"
)
