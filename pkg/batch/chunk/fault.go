package chunk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/config"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Retry says what is tried again (rules C2, C6). The zero value tries nothing
// again.
type Retry struct {
	// Limit is the number of re-tries after the first attempt: of each item in
	// reader and processor, of the whole chunk in the writer.
	Limit int
	// Retryable classifies errors; nil asks the error itself.
	Retryable func(error) bool
	Backoff   config.Backoff
}

// may reports whether attempt n (1-based) of work that began then and failed may
// be followed by another.
func (r Retry) may(err error, n int, began time.Time) bool {
	if n > r.Limit {
		return false
	}
	if r.Backoff.Elapsed > 0 && time.Since(began) >= r.Backoff.Elapsed {
		return false
	}
	if r.Retryable == nil {
		return exception.IsRetryable(err)
	}
	return r.Retryable(err)
}

// SkipPolicy decides whether an item whose error was not cured may be left out.
type SkipPolicy interface {
	// Admit answers true to skip, given the number of items skipped so far in this
	// step execution. An error refuses and is what the step fails with; false
	// without an error means that the error is not of the kind that skips.
	Admit(err error, skipped int64) (bool, error)
}

// LimitSkip admits Limit items (rule C3).
type LimitSkip struct {
	Limit int64
	// Skippable classifies errors; nil asks the error itself.
	Skippable func(error) bool
}

// Admit implements SkipPolicy.
func (s LimitSkip) Admit(err error, skipped int64) (bool, error) {
	skippable := exception.IsSkippable
	if s.Skippable != nil {
		skippable = s.Skippable
	}
	switch {
	case !skippable(err):
		return false, nil
	case skipped >= s.Limit:
		return false, &SkipLimitError{Limit: s.Limit, Err: err}
	}
	return true, nil
}

// SkipLimitError is the end of a step that skipped as many items as it may.
type SkipLimitError struct {
	Limit int64
	Err   error // the failure of the item that was one too many
}

// Error names the limit and the last cause.
func (e *SkipLimitError) Error() string {
	return fmt.Sprintf("skip limit of %d exceeded; the last cause: %v", e.Limit, e.Err)
}

// Unwrap returns the last cause.
func (e *SkipLimitError) Unwrap() error { return e.Err }

// RetryExhaustedError is a failure that was tried again as often as it may be.
type RetryExhaustedError struct {
	Attempts int
	Err      error
}

// Error names the number of attempts and the last cause.
func (e *RetryExhaustedError) Error() string {
	return fmt.Sprintf("failed %d times, the last time: %v", e.Attempts, e.Err)
}

// Unwrap returns the last cause.
func (e *RetryExhaustedError) Unwrap() error { return e.Err }

// ListenerError is the failure of a listener: it fails the step whatever its
// cause says of itself (rule C16).
type ListenerError struct {
	Callback string
	Err      error
}

// Error names the callback.
func (e *ListenerError) Error() string { return "listener " + e.Callback + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *ListenerError) Unwrap() error { return e.Err }

// isFatal reports an error that is neither tried again nor skipped, however it is
// classified: what ends the chunk, a panic, a limit that is reached.
func isFatal(ctx context.Context, err error) bool {
	var panicked *exception.PanicError
	var limit *SkipLimitError
	return endsChunk(ctx, err) || errors.As(err, &panicked) || errors.As(err, &limit)
}

// endsChunk reports an error after which no part of the chunk can be written: the end
// of the step's context or of ownership, a stop, the end of a transaction by a
// statement (rules T8, T8a), a full or broken disk (rule C15b), a listener's failure, a
// policy's refusal.
// Whether the step's context has ended is asked of ctx: a network time-out claims to
// be a deadline as well, and is not.
func endsChunk(ctx context.Context, err error) bool {
	var refused *refusedError
	var listener *ListenerError
	return ctx.Err() != nil || errors.Is(err, context.Canceled) || exception.IsStorage(err) ||
		errors.Is(err, core.ErrLostOwner) || errors.Is(err, core.ErrStopped) || errors.Is(err, tx.ErrNotOwner) ||
		errors.As(err, &refused) || errors.As(err, &listener)
}

// refusedError is what a skip policy answered instead of admitting.
type refusedError struct{ error }

func (e *refusedError) Unwrap() error { return e.error }
