package river

import (
	"context"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/boottime"
)

// clock is the database's clock (rule L6). It is queried rarely: between two answers, the passing time is
// measured with a clock of this machine that cannot be set. River uses the machine's wall clock for
// deliveries due later, which may differ from the database's.
type clock struct {
	mu       sync.Mutex
	queried  time.Duration // the time of the last query, on the clock of this machine; 0 means never
	answered time.Time
}

// fresh is how long an answer of the database is valid: its clock may be set, too.
const fresh = 10 * time.Second

// now returns the database's time. ask asks the database for it.
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

// clockQuery is the statement for the database's time.
const clockQuery = "SELECT clock_timestamp()"

// atDatabase carries the database's time to the hook of inserts.
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
