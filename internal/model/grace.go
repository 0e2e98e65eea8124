package model

import (
	"context"
	"time"

	"github.com/surfin-batch/surfin/internal/panics"
)

// Returned is the result of an author's code.
type Returned[T any] struct {
	Value T
	Err   error
}

// Go calls an author's code on its own goroutine, guarded.
func Go[T any](f func() (T, error)) <-chan Returned[T] {
	done := make(chan Returned[T], 1)
	go func() {
		var r Returned[T]
		panics.GuardGoroutine(func() (err error) {
			r.Value, err = f()
			return err
		}, func(err error) {
			r.Err = err
			done <- r
		})
	}()
	return done
}

// Await waits for code that may ignore its context (rule L8): at most the grace time after ctx has ended,
// or until late is closed, which it reports to onLate. ok is false if the code still runs.
func Await[T any](ctx context.Context, done <-chan T, grace time.Duration, late <-chan struct{}, onLate func()) (value T, ok bool) {
	select {
	case value = <-done:
		return value, true
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case value = <-done:
		return value, true
	case <-timer.C:
	case <-late:
		onLate()
	}
	return value, false
}
