package access

import (
	"context"
	"errors"
	"time"

	"github.com/surfin-batch/surfin/internal/errorclass"
)

// ErrUnavailable is the cause of a context that ended because the database does not answer.
var ErrUnavailable = errors.New("the database does not answer")

// IsUnavailable reports whether a request failed because the database is away.
func IsUnavailable(err error) bool {
	return errors.Is(err, ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || errorclass.IsUnreachable(err)
}

// Answering returns a request's context, which ends after RequestTime, or if the
// database does not answer check: a frozen server keeps connections open, and
// only another statement shows it. end must be called.
func Answering(ctx context.Context, check func(ctx context.Context) error) (_ context.Context, end func()) {
	return AnsweringFor(ctx, RequestTime, check)
}

// AnsweringFor is Answering for a request that may take another time.
func AnsweringFor(ctx context.Context, limit time.Duration, check func(ctx context.Context) error) (_ context.Context, end func()) {
	ctx, expire := context.WithTimeout(ctx, limit)
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(slowTime, func() {
		for ctx.Err() == nil {
			asked, asking := context.WithTimeout(ctx, AnswerTime)
			err := check(asked)
			asking()
			if err != nil && IsUnavailable(err) {
				cancel(ErrUnavailable)
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
