package api

import (
	"context"
	"errors"
	"time"

	"github.com/surfin-batch/surfin/internal/errorclass"
)

var errUnavailable = errors.New("the database does not answer")

func isUnavailable(err error) bool {
	return errors.Is(err, errUnavailable) || errors.Is(err, context.DeadlineExceeded) || errorclass.IsUnreachable(err)
}

// whileAnswering returns a request's context, which ends after requestTime, or
// if the database does not answer: a frozen server keeps connections open, and
// only another statement shows it. end must be called.
func whileAnswering(ctx context.Context, check func(ctx context.Context) error) (_ context.Context, end func()) {
	ctx, expire := context.WithTimeout(ctx, requestTime)
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(slowTime, func() {
		for ctx.Err() == nil {
			asked, asking := context.WithTimeout(ctx, answerTime)
			err := check(asked)
			asking()
			if err != nil && isUnavailable(err) {
				cancel(errUnavailable)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(slowTime):
			}
		}
	})
	return ctx, func() {
		timer.Stop()
		cancel(nil)
		expire()
	}
}
