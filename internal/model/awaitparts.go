package model

import (
	"context"
	"time"

	"github.com/surfin-batch/surfin/internal/workslot"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// NextLook returns the next pause of a poll: a twentieth of the time waited, 10 ms to longest.
func NextLook(waited, longest time.Duration) time.Duration {
	const share, shortest = 20, 10 * time.Millisecond
	return min(max(waited/share, shortest), longest)
}

// AwaitParts returns nil when no planned part is open, and ErrParked if the execution can be
// parked until then. Otherwise it polls, without the worker's slot. On a stop request, parts that
// no worker has end STOPPED; the others see the request themselves.
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
			return core.ErrParked
		}
		if err := r.Pause(ctx, NextLook(time.Since(begin), longest), stopping); err != nil {
			return err
		}
	}
}

// Pause waits between polls. A stop request ends it early unless known (stopped), as does
// LeaveSignal; the end of ctx is an error.
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
