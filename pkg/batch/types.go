package batch

import (
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/config"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// Components are of these types. Readers and writers may have more methods, such as Open, Position and Close: see
// package core/item.
type (
	// ItemReader has Read, which returns io.EOF at the end.
	ItemReader[T any] = item.ItemReader[T]
	// ItemProcessor has Process, which may return ErrFilter.
	ItemProcessor[I, O any] = item.ItemProcessor[I, O]
	// ItemWriter has Write, for a chunk's items, in its transaction.
	ItemWriter[T any] = item.ItemWriter[T]
	// TaskletFunc is a function as a tasklet, DeciderFunc one as a decider.
	TaskletFunc = core.TaskletFunc
	DeciderFunc = core.DeciderFunc
)

// Values that components receive and return.
type (
	// BuildContext is an optional argument of a constructor: names, execution, databases, step context.
	BuildContext = registry.BuildContext
	// StepContribution is what a tasklet knows of its step, and sets of its result.
	StepContribution = core.StepContribution
	// View is what a decider or a partitioner sees of the execution.
	View = core.View
	// Partition is a part of a step's work.
	Partition = core.Partition
	// ExecutionContext has values that a restart finds again; zero is empty.
	ExecutionContext = core.ExecutionContext
	// Params are the parameters of an execution: Params.Date("day"), Params.Int("year"), ...
	Params = core.Parameters
	// Position is where a reader or a writer stands, as JSON or any text.
	Position = item.Position
	// Meta is the origin of an item.
	Meta = item.Meta
	// Row is an item without a Go type.
	Row = item.Row
	// Date is a day without a time zone.
	Date = core.Date
)

// Fields of jobs in Go, as in a job file's `parameters`, `retry`, `skip` and `budget`.
type (
	// ParameterType is "string", "int", "float", "decimal", "bool", "date", "timestamp", "duration" or "path".
	ParameterType = core.ParameterType
	// Retry says which errors are retried, and how often.
	Retry = config.ItemRetryConfig
	// Skip says which errors cost an item, and how many.
	Skip = config.ItemSkipConfig
	// Backoff is the wait between the attempts of a Retry.
	Backoff = config.Backoff
	// Matcher is a class of errors, for Retry, Skip and the `errors` and `except` of job files; see [Matchers].
	Matcher = exception.Matcher
	// Budget limits the attempts of tasks.
	Budget = task.Budget
)

var (
	// ErrFilter leaves the item out.
	ErrFilter = item.ErrFilter
	// ErrStopped: a tasklet ended early because of a stop request.
	ErrStopped = core.ErrStopped
	// ErrNotFound: there is no such execution, job or task.
	ErrNotFound = core.ErrNotFound
)

// Consumed marks a failed Read that consumed its item: the next Read returns the following one (rule C1). meta
// is its origin, if known.
func Consumed(meta Meta, err error) error { return item.Consumed(meta, err) }

// NotConsumed marks a failed Read that consumed nothing: it may be retried (rule C1b).
func NotConsumed(err error) error { return item.NotConsumed(err) }

// InvalidItem marks err as class `invalid_item`, which `skip` may leave out.
func InvalidItem(err error) error {
	return exception.InvalidItem("", exception.ClassInvalidItem, err)
}

// Retryable marks err as worth another attempt. op names the operation, or is empty.
func Retryable(op string, err error) error { return exception.Retryable(op, err) }

// Skippable marks err as the fault of one item. op names the operation, or is empty.
func Skippable(op string, err error) error { return exception.Skippable(op, err) }

// Fatal marks err as the end of the step, whatever its retry and skip say. op names the operation, or is empty.
func Fatal(op string, err error) error { return exception.Fatal(op, err) }
