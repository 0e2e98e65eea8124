package batch

import (
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Interfaces for authors, described in package core.
type (
	ItemReader[T any]       = item.ItemReader[T]
	ItemProcessor[I, O any] = item.ItemProcessor[I, O]
	ItemWriter[T any]       = item.ItemWriter[T]

	// Optional interfaces of a reader or writer.
	Opener     = item.Opener
	Positioner = item.Positioner
	Closer     = item.Closer
	Preparer   = item.Preparer
	Rewinder   = item.Rewinder
	Finisher   = item.Finisher
	MetaReader = item.MetaReader
	// BuildContext is an optional constructor argument: names, execution, databases, step context.
	BuildContext = registry.BuildContext
	// Independent lets a chunk be read and processed while the previous one is written.
	Independent = item.Independent

	TaskletFunc = core.TaskletFunc
	DeciderFunc = core.DeciderFunc
)

// Values of these interfaces.
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
	// ErrFilter leaves the item out.
	ErrFilter = item.ErrFilter
	// ErrStopped: a tasklet ended early because of a stop request.
	ErrStopped = core.ErrStopped
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
