package chunk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/fault"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

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
	left := &skip{place: place, phase: phase, err: err, fault: fault.Of(err, "")}
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
