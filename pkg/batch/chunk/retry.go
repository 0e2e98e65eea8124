package chunk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Retry selects the failures that are retried (rules C2, C6).
type Retry = core.Retry

// RetryExhaustedError is a failure after all retries.
type RetryExhaustedError = core.RetryExhaustedError

// SkipPolicy decides whether an item is skipped after its retries.
type SkipPolicy interface {
	// Admit returns true to skip; skipped is the count so far in this step execution. An error fails the step;
	// false means not skipped.
	Admit(err error, skipped int64) (bool, error)
}

// LimitSkip admits Limit items (rule C3).
type LimitSkip struct {
	Limit int64
	// Skippable nil uses the error's own classification.
	Skippable func(error) bool
	// Unasked returns the class of a skippable error, its own classification ignored, or "". It may be
	// nil.
	Unasked func(error) string
}

// Noted adds to a failure that its own skip classification was ignored.
func (s LimitSkip) Noted(err error) error {
	if s.Unasked == nil {
		return err
	}
	if class := s.Unasked(err); class != "" {
		return fmt.Errorf("%w (the error allows a skip of its item, but the class %s decides: list %[2]s in skip.errors)", err, class)
	}
	return err
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

// SkipLimitError ends a step that skipped as many as allowed.
type SkipLimitError struct {
	Limit int64
	Err   error // exceeded the limit
}

// Error names the limit and the last cause.
func (e *SkipLimitError) Error() string {
	return fmt.Sprintf("skip limit of %d exceeded; last cause: %v", e.Limit, e.Err)
}

// Unwrap returns the last cause.
func (e *SkipLimitError) Unwrap() error { return e.Err }

// ListenerError fails the step regardless of its cause's class (rule C16).
type ListenerError struct {
	Callback string
	Err      error
}

// Error names the callback.
func (e *ListenerError) Error() string { return "listener " + e.Callback + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *ListenerError) Unwrap() error { return e.Err }

// isFatal errors are neither retried nor skipped.
func isFatal(ctx context.Context, err error) bool {
	var panicked *exception.PanicError
	var limit *SkipLimitError
	return isFatalForChunk(ctx, err) || errors.As(err, &panicked) || errors.As(err, &limit)
}

// isFatalForChunk: no part of the chunk can be written: the step's context or ownership ended, a stop, a
// transaction ended by a statement (rules T8, T8a), a full or broken disk (rule C15b), a listener's failure, a
// policy's refusal.
//
// ctx decides, not the error: a network time-out also claims to be a deadline.
func isFatalForChunk(ctx context.Context, err error) bool {
	var fatal *fatalError
	var listener *ListenerError
	return ctx.Err() != nil || errors.Is(err, context.Canceled) || exception.IsStorage(err) ||
		errors.Is(err, core.ErrLostOwner) || errors.Is(err, core.ErrStopped) || errors.Is(err, tx.ErrNotOwner) ||
		errors.As(err, &fatal) || errors.As(err, &listener)
}

// fatalError: a skip policy's refusal, a COMMIT of unknown outcome.
type fatalError struct{ error }

func (e *fatalError) Unwrap() error { return e.error }

// writeError: only failures of a writer or of a refused COMMIT may cost an item.
type writeError struct{ err error }

func (e *writeError) Error() string { return "write: " + e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

// Attempt n counts from 1.
func (s *Step) mayRetry(ctx context.Context, err error, n int, began time.Time) bool {
	return !isFatal(ctx, err) && s.config.Retry.Allows(err, n, began)
}

// Otherwise it returns the error that fails the step.
func (s *Step) trySkip(ctx context.Context, w *work, phase core.Phase, place int, err error) error {
	if isFatal(ctx, err) {
		return err
	}
	if s.config.Skip == nil {
		return s.config.Retry.Noted(err)
	}
	if s.isTransient(phase, err) {
		return s.faultless(w, err)
	}
	ok, refused := s.callSkipPolicy(err, w.skipsBefore+int64(len(w.skips)))
	switch {
	case refused != nil:
		return refused
	case !ok:
		return s.noted(err)
	}
	left := &skip{place: place, phase: phase, err: err}
	if phase != core.PhaseRead {
		left.item, left.meta = w.items.At(place), w.items.Meta(place)
		w.give(place, skipped)
	} else {
		var consumed *item.ConsumedError
		if errors.As(err, &consumed) {
			left.meta = consumed.Meta
		}
	}
	w.skips = append(w.skips, left)
	return nil
}

// noted adds the ignored classifications (rule C3).
func (s *Step) noted(err error) error {
	if policy, is := s.config.Skip.(interface{ Noted(err error) error }); is {
		err = policy.Noted(err)
	}
	return s.config.Retry.Noted(err)
}

// A refusal is fatal. No item is at fault for a transaction that did not begin (rule T8a): not called then.
func (s *Step) callSkipPolicy(err error, count int64) (ok bool, refused error) {
	if errors.Is(err, tx.ErrNotBegun) {
		return false, nil
	}
	refused = guarded(func() (refused error) { ok, refused = s.config.Skip.Admit(err, count); return refused })
	var limit *SkipLimitError
	if refused != nil && !errors.As(refused, &limit) {
		refused = &fatalError{refused}
	}
	return ok, refused
}

// isTransient: no item's fault (rule C7).
func (s *Step) isTransient(phase core.Phase, err error) bool {
	inTransaction := phase == core.PhaseWrite || phase == core.PhaseProcess && s.config.ProcessInTransaction
	return inTransaction && s.config.Transient != nil && s.config.Transient(phase, err)
}

// If the policy would skip, it adds why nothing is skipped.
func (s *Step) faultless(w *work, err error) error {
	if ok, refused := s.callSkipPolicy(err, w.skipsBefore+int64(len(w.skips))); !ok || refused != nil {
		return err
	}
	return fmt.Errorf("%w (a transient failure is not caused by an item, so no item is skipped: add retry to try again)", err)
}

func (s *Step) mayHaveSkipped(ctx context.Context, err error) bool {
	if isFatal(ctx, err) || s.config.Skip == nil {
		return false
	}
	ok, refused := s.callSkipPolicy(err, 0)
	var limit *SkipLimitError
	return ok || errors.As(refused, &limit)
}
