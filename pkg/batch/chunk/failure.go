package chunk

import (
	"context"
	"errors"
	"fmt"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// ListenerError is the failure of a listener: it fails the step regardless of its cause's
// classification (rule C16).
type ListenerError struct {
	Callback string
	Err      error
}

// Error names the callback.
func (e *ListenerError) Error() string { return "listener " + e.Callback + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *ListenerError) Unwrap() error { return e.Err }

// SkipLimitError is the end of a step that skipped as many items as allowed.
type SkipLimitError struct {
	Limit int64
	Err   error // the failure of the item that exceeded the limit
}

// Error names the limit and the last cause.
func (e *SkipLimitError) Error() string {
	return fmt.Sprintf("skip limit of %d exceeded; last cause: %v", e.Limit, e.Err)
}

// Unwrap returns the last cause.
func (e *SkipLimitError) Unwrap() error { return e.Err }

// isFatal reports an error that is neither retried nor skipped, however it is classified: one that ends
// the chunk, a panic, a reached limit.
func isFatal(ctx context.Context, err error) bool {
	var panicked *panics.PanicError
	var limit *SkipLimitError
	return isFatalForChunk(ctx, err) || errors.As(err, &panicked) || errors.As(err, &limit)
}

// isFatalForChunk reports an error after which no part of the chunk can be written: the end of the
// step's context or of ownership, a stop, the end of a transaction by a statement (rules T8, T8a), a
// full or broken disk (rule C15b), a listener's failure, a policy's refusal.
//
// ctx shows whether the step's context has ended: the error cannot, because a network time-out also
// claims to be a deadline.
func isFatalForChunk(ctx context.Context, err error) bool {
	var fatal *fatalError
	var listener *ListenerError
	return ctx.Err() != nil || errors.Is(err, context.Canceled) || model.IsStorage(err) ||
		errors.Is(err, core.ErrLostOwner) || errors.Is(err, core.ErrStopped) || errors.Is(err, tx.ErrNotOwner) ||
		errors.As(err, &fatal) || errors.As(err, &listener)
}

// fatalError is fatal regardless of its cause's classification: the refusal of a skip policy, a COMMIT
// of unknown outcome.
type fatalError struct{ error }

func (e *fatalError) Unwrap() error { return e.error }

// writeError is the failure of a writer, or of a COMMIT that the database refused: only these failures
// of a transaction may cost an item.
type writeError struct{ err error }

func (e *writeError) Error() string { return "write: " + e.err.Error() }

func (e *writeError) Unwrap() error { return e.err }

// processError is the failure to process the item at an index of the chunk.
type processError struct {
	place int
	meta  item.Meta
	err   error
}

func (e *processError) Error() string {
	switch {
	case e.meta.Path != "" && e.meta.Line > 0:
		return fmt.Sprintf("process %s:%d: %v", e.meta.Path, e.meta.Line, e.err)
	case e.meta.Line > 0:
		return fmt.Sprintf("process item %d: %v", e.meta.Line, e.err)
	}
	return "process: " + e.err.Error()
}

func (e *processError) Unwrap() error { return e.err }

// notedError is a failure with the error of a listener that was called with it. Only the failure
// decides what happens.
type notedError struct{ failure, note error }

func (e *notedError) Error() string { return fmt.Sprintf("%v (%v)", e.failure, e.note) }

func (e *notedError) Unwrap() error { return e.failure }

func noted(failure, note error) error {
	if note == nil {
		return failure
	}
	return &notedError{failure, note}
}
