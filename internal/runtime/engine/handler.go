package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// Handler works on a delivery. It holds a slot until it returns.
type Handler func(ctx context.Context, d Delivery) Answer

// Answer is the outcome of a delivery. The zero value is Done.
type Answer struct {
	verdict verdict
	after   time.Duration
}

type verdict int

const (
	done verdict = iota
	drop
	retry
)

// Done answers that the work was taken, with any outcome.
func Done() Answer { return Answer{} }

// Drop answers that there was nothing to take. The delivery does not come again
// soon.
func Drop() Answer { return Answer{verdict: drop} }

// RetryAfter answers that this worker cannot take it now: deliver after d, here
// or elsewhere.
func RetryAfter(d time.Duration) Answer { return Answer{retry, max(0, d)} }

// IsDrop reports whether the answer is Drop.
func (a Answer) IsDrop() bool { return a.verdict == drop }

// Retry returns the time of RetryAfter.
func (a Answer) Retry() (time.Duration, bool) { return a.after, a.verdict == retry }

func (a Answer) String() string {
	switch a.verdict {
	case drop:
		return "drop"
	case retry:
		return "retry after " + a.after.String()
	case done:
	}
	return "done"
}

const brokenPause = time.Minute

// Call calls h, for engines. If it panics, or ends its goroutine, the answer is
// RetryAfter a minute, with err.
func Call(ctx context.Context, h Handler, d Delivery) (a Answer, err error) {
	ended := make(chan struct{})
	returned := false
	go func() {
		defer close(ended)
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("the handler of %s panicked: %v\n%s", d, p, debug.Stack())
			}
		}()
		a = h(ctx, d)
		returned = true
	}()
	<-ended
	if !returned {
		a = RetryAfter(brokenPause)
		if err == nil {
			err = errors.New("the handler of " + d.String() + " ended its goroutine")
		}
	}
	return a, err
}
