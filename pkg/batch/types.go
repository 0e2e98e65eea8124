package batch

import (
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// The interfaces that authors write, and the types they meet: package core's.
type (
	ItemReader[T any]       = core.ItemReader[T]
	ItemProcessor[I, O any] = core.ItemProcessor[I, O]
	ItemWriter[T any]       = core.ItemWriter[T]

	Opener     = core.Opener
	Positioner = core.Positioner
	Closer     = core.Closer
	Preparer   = core.Preparer
	Finisher   = core.Finisher
	Position   = core.Position
	Meta       = core.Meta

	StepContribution = core.StepContribution
	TaskletFunc      = core.TaskletFunc
	Partition        = core.Partition
	DeciderFunc      = core.DeciderFunc
	View             = core.View
	ExecutionContext = core.ExecutionContext
	Row              = core.Row
	Date             = core.Date
	BatchError       = exception.BatchError
)

// ErrFilter is the answer of a processor that leaves the item out.
var ErrFilter = core.ErrFilter

// NewExecutionContext returns an empty context, such as a Partition has.
func NewExecutionContext() *ExecutionContext { return core.NewExecutionContext() }
