package chunk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/panics"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Retry selects the failures that are retried (rules C2, C6).
type Retry = model.Retry

// RetryExhaustedError is a failure after all retries.
type RetryExhaustedError = model.RetryExhaustedError

// SkipPolicy decides whether an item may be skipped after its retries failed.
type SkipPolicy interface {
	// Admit returns true to skip, given the number of items skipped so far in this step execution. The
	// step fails with an error of Admit; false without an error means that errors of this kind are not
	// skipped.
	Admit(err error, skipped int64) (bool, error)
}

// LimitSkip admits Limit items (rule C3).
type LimitSkip struct {
	Limit int64
	// Skippable classifies errors; nil uses the error's own classification.
	Skippable func(error) bool
	// Unasked returns the class of an error that is skippable by its own classification, which was
	// ignored since that class is known; "" otherwise. It may be nil.
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

// mayRetry reports whether attempt n (1-based), which failed with err, may be followed by another one.
// began is the start of the first attempt.
func (s *Step) mayRetry(ctx context.Context, err error, n int, began time.Time) bool {
	return !isFatal(ctx, err) && s.config.Retry.Allows(err, n, began)
}

// trySkip adds the skip of the failed item to the work, if the policy allows it. Otherwise it returns
// the error that fails the step.
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

// noted adds to a failure that costs the step which of its own classifications were ignored (rule C3).
func (s *Step) noted(err error) error {
	if policy, is := s.config.Skip.(interface{ Noted(err error) error }); is {
		err = policy.Noted(err)
	}
	return s.config.Retry.Noted(err)
}

// callSkipPolicy calls the skip policy. Its refusal is fatal regardless of the cause's classification.
// No item is at fault for a transaction that did not begin (rule T8a): the policy is not called.
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

// isTransient reports the failure of a transaction that is no item's fault (rule C7).
func (s *Step) isTransient(phase core.Phase, err error) bool {
	inTransaction := phase == core.PhaseWrite || phase == core.PhaseProcess && s.config.ProcessInTransaction
	return inTransaction && s.config.Transient != nil && s.config.Transient(phase, err)
}

// faultless returns the transient failure that ends the step. If the policy would skip, it adds why
// nothing is skipped.
func (s *Step) faultless(w *work, err error) error {
	if ok, refused := s.callSkipPolicy(err, w.skipsBefore+int64(len(w.skips))); !ok || refused != nil {
		return err
	}
	return fmt.Errorf("%w (a transient failure is not caused by an item, so no item is skipped: add retry to try again)", err)
}

// mayHaveSkipped reports whether an earlier attempt may have skipped a read that fails
// with err.
func (s *Step) mayHaveSkipped(ctx context.Context, err error) bool {
	if isFatal(ctx, err) || s.config.Skip == nil {
		return false
	}
	ok, refused := s.callSkipPolicy(err, 0)
	var limit *SkipLimitError
	return ok || errors.As(refused, &limit)
}
