package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// Handler works on a delivery and returns its outcome. It holds a slot until it returns: one that
// parks its work returns Done.
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

// Done answers that the work was taken, with any outcome: the tables have it.
func Done() Answer { return Answer{} }

// Drop answers that there was nothing to take: the work has another owner or epoch, or has ended.
// The delivery does not come again soon.
func Drop() Answer { return Answer{verdict: drop} }

// RetryAfter answers that the delivery should come again after d, here or elsewhere: this worker
// cannot take the work now. If workers poll the tables, another one may find the work sooner.
func RetryAfter(d time.Duration) Answer { return Answer{retry, max(0, d)} }

// IsDrop reports whether the answer is Drop.
func (a Answer) IsDrop() bool { return a.verdict == drop }

// Retry returns the time of RetryAfter, and whether the answer is one.
func (a Answer) Retry() (time.Duration, bool) { return a.after, a.verdict == retry }

// String names the answer for logs.
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

// brokenPause is the time after which a delivery comes again if its handler did not return an
// answer.
const brokenPause = time.Minute

// Call calls h, for engines. If the handler panics, or ends its goroutine, the answer is RetryAfter
// a minute, and err describes it.
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
