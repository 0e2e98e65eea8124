package core

import "context"

// Masked passes events on with mask applied to errors and outcomes; errors keep their chain. A [Scope].
func Masked(o Observer, mask func(text string) string) Observer { return &maskedObserver{o, mask} }

type maskedObserver struct {
	next Observer
	mask func(text string) string
}

func (m *maskedObserver) Observe(ctx context.Context, e Event) { m.next.Observe(ctx, m.event(e)) }

func (m *maskedObserver) Enter(ctx context.Context, e Event) context.Context {
	return Enter(ctx, m.next, m.event(e))
}

func (m *maskedObserver) event(e Event) Event {
	switch e := e.(type) {
	case JobStarted:
		e.Execution.Error = m.mask(e.Execution.Error)
		return e
	case JobEnded:
		e.Execution.Error, e.Err = m.mask(e.Execution.Error), m.err(e.Err)
		return e
	case StepStarted:
		e.Step.Error = m.mask(e.Step.Error)
		return e
	case StepEnded:
		e.Step.Error, e.Err = m.mask(e.Step.Error), m.err(e.Err)
		return e
	case GateChecked:
		e.Gate = m.mask(e.Gate)
		return e
	}
	return m.failure(e)
}

func (m *maskedObserver) failure(e Event) Event {
	switch e := e.(type) {
	case ChunkRolledBack:
		e.Err = m.err(e.Err)
		return e
	case StopFailed:
		e.Err = m.err(e.Err)
		return e
	case CloseFailed:
		e.Err = m.err(e.Err)
		return e
	case ListenerFailed:
		e.Err = m.err(e.Err)
		return e
	case EventDead:
		e.Err = m.err(e.Err)
		return e
	case EndNotRecorded:
		e.Err = m.err(e.Err)
		return e
	case ObserverFailed:
		e.Err = m.err(e.Err)
		return e
	case HeartbeatFailed:
		e.Err = m.err(e.Err)
		return e
	case LaunchWaits:
		e.Reason = m.mask(e.Reason)
		return e
	case ComponentLate:
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
