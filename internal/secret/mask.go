package secret

import (
	"context"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Masked passes events on with mask applied to errors and outcomes; errors keep their chain. A [Scope].
func Masked(o core.Observer, mask func(text string) string) core.Observer {
	return &maskedObserver{o, mask}
}

type maskedObserver struct {
	next core.Observer
	mask func(text string) string
}

func (m *maskedObserver) Observe(ctx context.Context, e core.Event) { m.next.Observe(ctx, m.event(e)) }

func (m *maskedObserver) Enter(ctx context.Context, e core.Event) context.Context {
	return core.Enter(ctx, m.next, m.event(e))
}

func (m *maskedObserver) event(e core.Event) core.Event {
	switch e := e.(type) {
	case core.JobStarted:
		e.Execution.Error = m.mask(e.Execution.Error)
		return e
	case core.JobEnded:
		e.Execution.Error, e.Err = m.mask(e.Execution.Error), m.err(e.Err)
		return e
	case core.StepStarted:
		e.Step.Error = m.mask(e.Step.Error)
		return e
	case core.StepEnded:
		e.Step.Error, e.Err = m.mask(e.Step.Error), m.err(e.Err)
		return e
	case core.GateChecked:
		e.Gate = m.mask(e.Gate)
		return e
	}
	return m.failure(e)
}

func (m *maskedObserver) failure(e core.Event) core.Event {
	switch e := e.(type) {
	case core.ChunkRolledBack:
		e.Err = m.err(e.Err)
		return e
	case core.Retried:
		e.Err = m.err(e.Err)
		return e
	case core.LogLost:
		e.Err = m.err(e.Err)
		return e
	case core.StopFailed:
		e.Err = m.err(e.Err)
		return e
	case core.CloseFailed:
		e.Err = m.err(e.Err)
		return e
	case core.ListenerFailed:
		e.Err = m.err(e.Err)
		return e
	case core.EventDead:
		e.Err = m.err(e.Err)
		return e
	case core.EndNotRecorded:
		e.Err = m.err(e.Err)
		return e
	case core.ObserverFailed:
		e.Err = m.err(e.Err)
		return e
	case core.HeartbeatFailed:
		e.Err = m.err(e.Err)
		return e
	case core.SeriesNotStored:
		e.Err = m.err(e.Err)
		return e
	case core.LaunchWaits:
		e.Reason = m.mask(e.Reason)
		return e
	case core.ComponentLate:
		e.Err = m.err(e.Err)
		return e
	}
	return e
}

func (m *maskedObserver) err(err error) error {
	if err == nil {
		return nil
	}
	if text := err.Error(); m.mask(text) != text {
		return &maskedError{m.mask(text), err}
	}
	return err
}

type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string { return e.text }

func (e *maskedError) Unwrap() error { return e.err }
