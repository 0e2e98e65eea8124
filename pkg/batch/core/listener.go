package core

import (
	"context"
	"reflect"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// A listener is called for events of a job, a step or a chunk, and may end it: its error or panic fails
// the step and is never swallowed (rule C16). It implements any of the one-method interfaces of this
// file; a callback without a listener costs nothing. A listener that is registered twice is called
// once. Listeners are called on the goroutine of the step, in the order registered.
//
// The error of an On...Error callback does not replace the error that it is called with: it is added,
// and the class of the first one decides (rule C16).
//
// Items are passed boxed; they belong to the engine.
type (
	// BeforeChunk is called before the first read of a chunk.
	BeforeChunk interface {
		BeforeChunk(ctx context.Context) error
	}
	// AfterChunk is called when the chunk is committed, with the step's counters.
	AfterChunk interface {
		AfterChunk(ctx context.Context, counters Counters) error
	}
	// OnChunkError is called when a chunk makes the step fail.
	OnChunkError interface {
		OnChunkError(ctx context.Context, err error) error
	}

	// BeforeRead is called before each read.
	BeforeRead interface {
		BeforeRead(ctx context.Context) error
	}
	// AfterRead is called with each item that was read.
	AfterRead interface {
		AfterRead(ctx context.Context, item any) error
	}
	// OnReadError is called when a read fails, each time.
	OnReadError interface {
		OnReadError(ctx context.Context, err error) error
	}

	// BeforeProcess is called before an item is processed, each time.
	BeforeProcess interface {
		BeforeProcess(ctx context.Context, item any) error
	}
	// AfterProcess is called with the item and its result; nil if filtered.
	AfterProcess interface {
		AfterProcess(ctx context.Context, item, result any) error
	}
	// OnProcessError is called when processing an item fails, each time.
	OnProcessError interface {
		OnProcessError(ctx context.Context, item any, err error) error
	}

	// BeforeWrite is called in the chunk's transaction, before the writers.
	BeforeWrite interface {
		BeforeWrite(ctx context.Context, items item.Items) error
	}
	// AfterWrite is called in the chunk's transaction, after the writers.
	AfterWrite interface {
		AfterWrite(ctx context.Context, items item.Items) error
	}
	// OnWriteError is called after the rollback when writing failed, each time.
	OnWriteError interface {
		OnWriteError(ctx context.Context, err error, items item.Items) error
	}

	// OnSkipRead, OnSkipProcess and OnSkipWrite are called once for each skipped item, just before the
	// commit that records the skip; and before the step fails, for skips of the current chunk.
	OnSkipRead interface {
		OnSkipRead(ctx context.Context, err error) error
	}
	// OnSkipProcess: see OnSkipRead.
	OnSkipProcess interface {
		OnSkipProcess(ctx context.Context, item any, err error) error
	}
	// OnSkipWrite: see OnSkipRead. item is as it was read.
	OnSkipWrite interface {
		OnSkipWrite(ctx context.Context, item any, err error) error
	}

	// BeforeStep is called when the start of a step is recorded, before its work.
	BeforeStep interface {
		BeforeStep(ctx context.Context, step *StepExecution) error
	}
	// AfterStep is called after the work of a step and before its end is recorded, with the status and
	// exit code that it is about to have. It may change ExitCode and Context of the step. It is called
	// for every step that was started, in reverse order; its error fails the step.
	AfterStep interface {
		AfterStep(ctx context.Context, step *StepExecution) error
	}
	// BeforeJob is called when the start of an execution is recorded. Its error fails
	// the execution before the flow.
	BeforeJob interface {
		BeforeJob(ctx context.Context, job *JobExecution) error
	}
	// AfterJob is called before the end of an execution is recorded, with the status and exit code that
	// it is about to have; it may change ExitCode. Its error fails the execution.
	AfterJob interface {
		AfterJob(ctx context.Context, job *JobExecution) error
	}

	// BeforeRetry is called before work is retried: re-try n (1-based) after err.
	BeforeRetry interface {
		BeforeRetry(ctx context.Context, phase Phase, n int, err error) error
	}
)

// Listens reports whether values of type t can be listeners: whether t implements
// any of the interfaces above.
func Listens(t reflect.Type) bool {
	for _, callback := range listenerTypes() {
		if t.Implements(callback) {
			return true
		}
	}
	return false
}

func listenerTypes() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[BeforeChunk](), reflect.TypeFor[AfterChunk](), reflect.TypeFor[OnChunkError](),
		reflect.TypeFor[BeforeRead](), reflect.TypeFor[AfterRead](), reflect.TypeFor[OnReadError](),
		reflect.TypeFor[BeforeProcess](), reflect.TypeFor[AfterProcess](), reflect.TypeFor[OnProcessError](),
		reflect.TypeFor[BeforeWrite](), reflect.TypeFor[AfterWrite](), reflect.TypeFor[OnWriteError](),
		reflect.TypeFor[OnSkipRead](), reflect.TypeFor[OnSkipProcess](), reflect.TypeFor[OnSkipWrite](),
		reflect.TypeFor[BeforeRetry](),
		reflect.TypeFor[BeforeStep](), reflect.TypeFor[AfterStep](),
		reflect.TypeFor[BeforeJob](), reflect.TypeFor[AfterJob](),
	}
}
