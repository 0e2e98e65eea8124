package model

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/config"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// Retry selects retried failures (rules C2, C6, TL7); zero retries none.
type Retry struct {
	// Limit is after the first attempt: per item in reader and processor, per chunk in the writer, of a
	// tasklet.
	Limit int
	// Retryable nil uses the error's own classification.
	Retryable func(error) bool
	// Unasked is the class of a retryable error, its own classification ignored, or "". May be nil.
	Unasked func(error) string
	Backoff config.Backoff
}

// Noted adds that the own classification was ignored.
func (r Retry) Noted(err error) error {
	if err == nil || r.Limit == 0 || r.Unasked == nil {
		return err
	}
	if class := r.Unasked(err); class != "" {
		return fmt.Errorf("%w (the error allows a retry, but the class %s decides: list %[2]s in retry.errors)", err, class)
	}
	return err
}

// Allows reports whether attempt n (1-based), failed with err, may be repeated. began is the first's start.
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

// Pause waits before retry n (1-based): the backoff, or longer by err's RetryAfter() time.Duration. It ends
// with ErrStopped when stop closes, or ctx's cause.
func (r Retry) Pause(ctx context.Context, stop <-chan struct{}, n int, err error) error {
	d := r.Backoff.Wait(n)
	var asks interface{ RetryAfter() time.Duration }
	if errors.As(err, &asks) {
		d = max(d, asks.RetryAfter())
	}
	if d <= 0 {
		return nil
	}
	return (&core.StepContribution{Stop: stop}).Sleep(ctx, d)
}

// Exhausted adds the number of attempts, if above one.
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

// Error names attempts and last cause.
func (e *RetryExhaustedError) Error() string {
	return fmt.Sprintf("failed %d times, last: %v", e.Attempts, e.Err)
}

// Unwrap returns the last cause.
func (e *RetryExhaustedError) Unwrap() error { return e.Err }
