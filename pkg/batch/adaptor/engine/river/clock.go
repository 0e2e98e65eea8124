package river

import (
	"context"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/boottime"
)

// clock is the database's clock (rule L6): between two rare queries, time is measured with a clock of this
// machine that cannot be set. River uses the machine's wall clock for deliveries due later.
type clock struct {
	mu       sync.Mutex
	queried  time.Duration
	answered time.Time
}

// The database's clock may be set, too.
const fresh = 10 * time.Second

func (c *clock) now(ask func() (time.Time, error)) (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	began := boottime.Now()
	if c.queried == 0 || began-c.queried >= fresh {
		said, err := ask()
		if err != nil {
			return time.Time{}, err
		}
		c.queried, c.answered = began, said
	}
	return c.answered.Add(began - c.queried), nil
}

const clockQuery = "SELECT clock_timestamp()"

type atDatabase struct{}

func withTime(ctx context.Context, now time.Time) context.Context {
	return context.WithValue(ctx, atDatabase{}, now)
}

func timeIn(ctx context.Context) time.Time {
	if now, ok := ctx.Value(atDatabase{}).(time.Time); ok {
		return now
	}
	return time.Now()
}
