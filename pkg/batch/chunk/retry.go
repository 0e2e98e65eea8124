package chunk

import (
	"fmt"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
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
