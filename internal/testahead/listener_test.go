package testahead

import (
	"context"
	"errors"

	"github.com/surfin-batch/surfin/internal/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// listener traces its calls. It has no callback that prevents a step from reading, processing or encoding
// ahead.
type listener struct{ w *world }

func (l listener) BeforeChunk(context.Context) error {
	l.w.note("before chunk")
	return l.w.meet(atBeforeChunk)
}

func (l listener) AfterChunk(_ context.Context, c core.Counters) error {
	l.w.note("after chunk %v", c)
	return l.w.meet(atAfterChunk)
}

func (l listener) OnChunkError(_ context.Context, err error) error {
	l.w.note("on chunk error: %v", err)
	return l.w.meet(atOnChunkError)
}

func (l listener) OnReadError(_ context.Context, err error) error {
	l.w.note("on read error: %v", err)
	return l.w.meet(atOnReadError)
}

func (l listener) OnProcessError(_ context.Context, it any, err error) error {
	l.w.noteProcess("on process error %v: %v", it, err)
	return l.w.meetItem(atOnProcessError, it.(thing).Place)
}

func (l listener) AfterWrite(_ context.Context, items item.Items) error {
	l.w.note("after write of %d", items.Len())
	return l.w.meet(atAfterWrite)
}

func (l listener) OnWriteError(_ context.Context, err error, items item.Items) error {
	l.w.note("on write error of %d: %v", items.Len(), err)
	return l.w.meet(atOnWriteError)
}

func (l listener) OnSkipRead(_ context.Context, err error) error {
	l.w.note("on skip read: %v", err)
	return l.w.meet(atOnSkipRead)
}

func (l listener) OnSkipProcess(_ context.Context, it any, err error) error {
	l.w.note("on skip process %v: %v", it, err)
	return l.w.meet(atOnSkipProcess)
}

func (l listener) OnSkipWrite(_ context.Context, it any, err error) error {
	l.w.note("on skip write %v: %v", it, err)
	return l.w.meet(atOnSkipWrite)
}

func (l listener) BeforeRetry(_ context.Context, phase core.Phase, n int, err error) error {
	const text = "before retry %d of %s: %v"
	switch phase {
	case core.PhaseRead:
		l.w.note(text, n, phase, err)
		return l.w.meet(atReadRetry)
	case core.PhaseWrite:
		l.w.note(text, n, phase, err)
		return l.w.meet(atWriteRetry)
	default:
		l.w.noteProcess(text, n, phase, err)
		place := anyPlace
		var failure *injected
		if errors.As(err, &failure) {
			place = failure.Place
		}
		return l.w.meetItem(atProcessRetry, place)
	}
}

type beforeWrite struct{ w *world }

func (l beforeWrite) BeforeWrite(_ context.Context, items item.Items) error {
	l.w.note("before write of %d", items.Len())
	return l.w.meet(atBeforeWrite)
}

type afterProcess struct{ w *world }

func (l afterProcess) AfterProcess(_ context.Context, it, out any) error {
	l.w.noteProcess("after process %v: %v", it, out)
	return nil
}

type policy struct {
	w     *world
	limit chunk.LimitSkip
}

func (p policy) Admit(err error, skipped int64) (bool, error) {
	p.w.note("admit %v behind %d", err, skipped)
	if err := p.w.meet(atAdmit); err != nil {
		return false, err
	}
	return p.limit.Admit(err, skipped)
}
