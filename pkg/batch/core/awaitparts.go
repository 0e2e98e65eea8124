package core

import (
	"context"
	"time"
)

// AwaitParts returns nil when no part is open that the step has planned for workers, and
// ErrParked where the execution can be parked until then. Elsewhere, as in a child job of the
// same process, the step waits without the slot of its worker, and AwaitParts looks every poll.
// When a stop is asked for, the parts end STOPPED that no worker has taken, or that one has given back since;
// the others see the request themselves.
func (r *StepRun) AwaitParts(ctx context.Context, poll time.Duration) error {
	if r.Data.MayPark {
		return r.awaitParts(ctx, poll)
	}
	return WithoutSlot(ctx, func() error { return r.awaitParts(ctx, poll) })
}

func (r *StepRun) awaitParts(ctx context.Context, poll time.Duration) error {
	for {
		stopping := r.Stopping() && !r.Data.MayPark
		if stopping {
			if err := r.Services.Plans.StopPartitions(ctx, r.Data.JobRef); err != nil {
				return err
			}
		}
		open, err := r.Services.Plans.OpenParts(ctx, r.Step.ID)
		switch {
		case err != nil:
			return err
		case open == 0:
			return nil
		case r.Data.MayPark:
			return ErrParked
		}
		if err := r.Pause(ctx, poll, stopping); err != nil {
			return err
		}
	}
}

// Pause waits for a time between two looks at what the step waits for. A request to stop ends it
// early, unless the caller has heard of it (stopped); the end of ctx is an error, its cause.
func (r *StepRun) Pause(ctx context.Context, pause time.Duration, stopped bool) error {
	stop := r.Services.Stop.Done()
	if stopped {
		stop = nil
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-stop:
	case <-timer.C:
	}
	return nil
}
