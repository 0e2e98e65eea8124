package runtime

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/surfin-batch/surfin/internal/runtime/engine"
)

func pauseOf(poll time.Duration) engine.Answer { return engine.RetryAfter(jittered(poll)) }

// unknownPause leaves deliveries to others if the handler or decider is missing
// here.
const unknownPause = 10 * time.Second

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// jittered adds up to a tenth, so that processes do not act at once.
func jittered(d time.Duration) time.Duration { return d + rand.N(d/10+1) } //nolint:gosec // no secret
