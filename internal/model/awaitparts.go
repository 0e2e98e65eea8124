package model

import (
	"context"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/workslot"
)

// NextLook returns the pause before the next query for work of other processes after waiting this long:
// a twentieth of it, at least 10 ms, and at most longest. So the end of short work is seen soon, and
// long work costs few queries.
func NextLook(waited, longest time.Duration) time.Duration {
	const share, shortest = 20, 10 * time.Millisecond
	return min(max(waited/share, shortest), longest)
}

// AwaitParts returns nil when no part that the step has planned for workers is open, and ErrParked if
// the execution can be parked until then. Otherwise, as in a child job of the same process, the step
// waits without the slot of its worker. AwaitParts polls with the pauses of NextLook, at most longest.
// When a stop is requested, parts that no worker has taken, or that one has given back since, end
// STOPPED; the others see the request themselves.
func (r *StepRun) AwaitParts(ctx context.Context, longest time.Duration) error {
	if r.Data.MayPark {
		return r.awaitParts(ctx, longest)
	}
	return workslot.WithoutSlot(ctx, func() error { return r.awaitParts(ctx, longest) })
}

func (r *StepRun) awaitParts(ctx context.Context, longest time.Duration) error {
	for begin := time.Now(); ; {
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
		case r.Data.MayPark, r.IsLeft():
			return ports.ErrParked
		}
		if err := r.Pause(ctx, NextLook(time.Since(begin), longest), stopping); err != nil {
			return err
		}
	}
}

// Pause waits between two polls of a waiting step. A stop request ends it early, unless the caller
// already knows it (stopped), and so does LeaveSignal; the end of ctx is an error, its cause.
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
	case <-r.left():
	case <-timer.C:
	}
	return nil
}

// IsLeft reports whether the step is to be given back while it waits (LeaveSignal).
func (r *StepRun) IsLeft() bool { return StopOn(r.left()).Requested() }

func (r *StepRun) left() <-chan struct{} {
	if signal, ok := r.Services.Stop.(LeaveSignal); ok {
		return signal.Left()
	}
	return nil
}
