package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/boottime"
	"github.com/surfin-batch/surfin/internal/errorclass"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
)

// rideOut calls try, and repeats it after growing pauses while the database gives no answer and giveUp
// returns nil.
func rideOut(ctx context.Context, try func(ctx context.Context) error, giveUp func(err error) error) error {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		err := try(ctx)
		if err == nil || !errorclass.IsUnreachable(err) && !errors.Is(err, errNoAnswer) {
			return err
		}
		if final := giveUp(err); final != nil {
			return final
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w: %w", ports.ErrNoReply, err)
		case <-timer.C:
		}
	}
}

// Bounded is the patience of a caller without a lease, which waits for work of other processes, or requests
// it. It ends that long after the first failure in a row; 0 or less means at the first failure.
type Bounded time.Duration

var _ model.Patience = Bounded(0)

const (
	// Waiting bounds the outages that a caller rides out while it waits for others, or requests something of
	// them.
	Waiting = Bounded(20 * time.Second)
	// Opening bounds them for a command that has not reached its database yet: a wrong address is more likely
	// than an outage.
	Opening = Bounded(3 * time.Second)
)

// Record implements model.Patience.
func (b Bounded) Record(ctx context.Context, write func(ctx context.Context) error) error {
	var first time.Duration // of the failures; 0 means none yet
	return rideOut(model.WithPatience(ctx, nil), write, func(err error) error {
		now := boottime.Now()
		if first == 0 {
			first = now
		}
		if ctx.Err() != nil {
			return err
		}
		if away := now - first; away >= time.Duration(b) {
			return fmt.Errorf("%w: %w (for %v)", ports.ErrNoReply, err, away.Round(100*time.Millisecond))
		}
		return nil
	})
}
