package batch

import (
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// The interfaces that authors implement. Package core describes them, and has the rarer ones.
type (
	ItemReader[T any]       = item.ItemReader[T]
	ItemProcessor[I, O any] = item.ItemProcessor[I, O]
	ItemWriter[T any]       = item.ItemWriter[T]

	// The optional interfaces of a reader or writer.
	Opener     = item.Opener
	Positioner = item.Positioner
	Closer     = item.Closer
	Preparer   = item.Preparer
	Rewinder   = item.Rewinder
	Finisher   = item.Finisher
	MetaReader = item.MetaReader
	// BuildContext is an optional argument of a component's constructor: the names of its job and step,
	// the execution, the databases, the context of the step.
	BuildContext = registry.BuildContext
	// Independent lets a chunk be read and processed while the previous one is written.
	Independent = item.Independent

	TaskletFunc = core.TaskletFunc
	DeciderFunc = core.DeciderFunc
)

// The values of these interfaces.
type (
	Row              = item.Row
	Date             = core.Date
	Meta             = item.Meta
	Position         = item.Position
	StepContribution = core.StepContribution
	Partition        = core.Partition
	View             = core.View
	ExecutionContext = core.ExecutionContext
)

var (
	// ErrFilter is the result of a processor that leaves the item out.
	ErrFilter = item.ErrFilter
	// ErrStopped is the result of a tasklet that ended early because a stop was requested.
	ErrStopped = core.ErrStopped
)

// NewExecutionContext returns an empty context, for example for a Partition.
func NewExecutionContext() *ExecutionContext { return core.NewExecutionContext() }

// Consumed is the error of a Read that has consumed its item: the next Read returns the following item
// (rule C1). meta is the origin of the item; zero if unknown.
func Consumed(meta Meta, err error) error { return item.Consumed(meta, err) }

// NotConsumed is the error of a Read that has consumed nothing: the next Read returns the same item, so
// that it may be retried (rule C1b).
func NotConsumed(err error) error { return item.NotConsumed(err) }

// InvalidItem marks err as an item that does not fit (class `invalid_item`): `skip` may leave it out.
func InvalidItem(err error) error {
	return exception.InvalidItem("", exception.ClassInvalidItem, err)
}

// Retryable marks err as worth another attempt, such as a network error. op names the failed operation;
// it may be empty.
func Retryable(op string, err error) error { return exception.Retryable(op, err) }

// Skippable marks err as the fault of one item. op names the failed operation; it may be empty.
func Skippable(op string, err error) error { return exception.Skippable(op, err) }
