package core

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core/config"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// Retry selects the failures that are retried (rules C2, C6, TL7). The zero value retries none.
type Retry struct {
	// Limit is the number of retries after the first attempt: of each item in reader and processor, of
	// the whole chunk in the writer, of a tasklet.
	Limit int
	// Retryable classifies errors; nil uses the error's own classification.
	Retryable func(error) bool
	// Unasked returns the class of an error that is retryable by its own classification, which was
	// ignored since that class is known; "" otherwise. It may be nil.
	Unasked func(error) string
	Backoff config.Backoff
}

// Noted adds to a failure that its own retry classification was ignored.
func (r Retry) Noted(err error) error {
	if err == nil || r.Limit == 0 || r.Unasked == nil {
		return err
	}
	if class := r.Unasked(err); class != "" {
		return fmt.Errorf("%w (the error allows a retry, but the class %s decides: list %[2]s in retry.errors)", err, class)
	}
	return err
}

// Allows reports whether attempt n (1-based), which failed with err, may be followed by another one.
// began is the start of the first attempt.
func (r Retry) Allows(err error, n int, began time.Time) bool {
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

// Pause waits before retry n (1-based) after err: the backoff, or longer if the error's method
// RetryAfter() time.Duration requests it, like a server's response. It ends early with ErrStopped when
// stop is closed, and with the cause of ctx when that ends.
func (r Retry) Pause(ctx context.Context, stop <-chan struct{}, n int, err error) error {
	d := r.Backoff.Wait(n)
	var asks interface{ RetryAfter() time.Duration }
	if errors.As(err, &asks) {
		d = max(d, asks.RetryAfter())
	}
	if d <= 0 {
		return nil
	}
	return (&StepContribution{Stop: stop}).Sleep(ctx, d)
}

// Exhausted adds the number of attempts to a failure, if there was more than one.
func Exhausted(err error, attempts int) error {
	if attempts < 2 {
		return err
	}
	return &RetryExhaustedError{Attempts: attempts, Err: err}
}

// RetryExhaustedError is a failure after all retries.
type RetryExhaustedError struct {
	Attempts int
	Err      error
}

// Error names the number of attempts and the last cause.
func (e *RetryExhaustedError) Error() string {
	return fmt.Sprintf("failed %d times, last: %v", e.Attempts, e.Err)
}

// Unwrap returns the last cause.
func (e *RetryExhaustedError) Unwrap() error { return e.Err }
