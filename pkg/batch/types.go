package batch

import (
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/config"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// Components are of these types.
type (
	// ItemReader has Read, which returns io.EOF at the end.
	ItemReader[T any] = item.ItemReader[T]
	// ItemProcessor has Process, which may return ErrFilter.
	ItemProcessor[I, O any] = item.ItemProcessor[I, O]
	// ItemWriter has Write, for the items of a chunk, in its transaction.
	ItemWriter[T any] = item.ItemWriter[T]
	// TaskletFunc is a tasklet: its Execute calls it.
	TaskletFunc = core.TaskletFunc
	// DeciderFunc is a decider: its Decide calls it.
	DeciderFunc = core.DeciderFunc
)

// Optional interfaces of a reader or writer.
type (
	// Opener has Open, with the position of the last commit; nil in a first execution.
	Opener = item.Opener
	// Positioner has Position, which is stored with each chunk.
	Positioner = item.Positioner
	// Closer has Close, called at the end of the step.
	Closer = item.Closer
	// Preparer has Prepare, called before the commit of each chunk.
	Preparer = item.Preparer
	// Rewinder has Rewind, called after a rollback.
	Rewinder = item.Rewinder
	// Finisher has Finish, called after the last chunk.
	Finisher = item.Finisher
	// MetaReader returns the origin of each item, such as its line.
	MetaReader = item.MetaReader
	// Independent lets a chunk be read and processed while the previous one is written.
	Independent = item.Independent
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
	// ExecutionContext is the context of a step or a job: values that a restart finds again.
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

// What a job in Go says about errors and tasks, with the fields of a job file's `retry`, `skip` and `budget`.
type (
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

// ParameterType is the type of a job's [Parameter].
type ParameterType = core.ParameterType

// The types of parameters, and the methods of [Params] that return their values.
const (
	TypeString    = core.TypeString
	TypeInt       = core.TypeInt
	TypeFloat     = core.TypeFloat
	TypeDecimal   = core.TypeDecimal
	TypeBool      = core.TypeBool
	TypeDate      = core.TypeDate
	TypeTimestamp = core.TypeTimestamp
	TypeDuration  = core.TypeDuration
	TypePath      = core.TypePath
)

var (
	// ErrFilter leaves the item out.
	ErrFilter = item.ErrFilter
	// ErrStopped: a tasklet ended early because of a stop request.
	ErrStopped = core.ErrStopped
	// ErrNotFound: there is no such execution, job or task.
	ErrNotFound = core.ErrNotFound
)

// NewExecutionContext returns an empty context.
func NewExecutionContext() *ExecutionContext { return core.NewExecutionContext() }

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
