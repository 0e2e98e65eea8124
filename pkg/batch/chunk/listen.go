package chunk

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// listeners are the listeners of a step by the callback that they implement. A callback without a
// listener costs one comparison.
type listeners struct {
	before struct {
		chunk   []core.BeforeChunk
		read    []core.BeforeRead
		process []core.BeforeProcess
		write   []core.BeforeWrite
		retry   []core.BeforeRetry
	}
	after struct {
		chunk   []core.AfterChunk
		read    []core.AfterRead
		process []core.AfterProcess
		write   []core.AfterWrite
	}
	failed struct {
		chunk   []core.OnChunkError
		read    []core.OnReadError
		process []core.OnProcessError
		write   []core.OnWriteError
	}
	skipped struct {
		read    []core.OnSkipRead
		process []core.OnSkipProcess
		write   []core.OnSkipWrite
	}
	// report notifies observers of a listener that failed.
	report func(ctx context.Context, err error)
	// processing serialises the callbacks of goroutines that process.
	processing sync.Mutex
}

// newListeners sorts the registered listeners, and the components that are listeners
// themselves, by their callbacks. One that is listed twice is called once.
func newListeners(registered, components []any, report func(context.Context, error)) (*listeners, error) {
	l := &listeners{report: report}
	seen := map[any]bool{}
	for i, c := range slices.Concat(registered, components) {
		if c != nil && reflect.TypeOf(c).Comparable() {
			if seen[c] {
				continue
			}
			seen[c] = true
		}
		if !l.add(c) && i < len(registered) && !(c != nil && model.Listens(reflect.TypeOf(c))) {
			return nil, fmt.Errorf("listener %d is a %T, which implements no listener interface", i+1, c)
		}
	}
	return l, nil
}

func (l *listeners) add(c any) bool {
	return anyOf(
		addIf(&l.before.chunk, c), addIf(&l.before.read, c), addIf(&l.before.process, c), addIf(&l.before.write, c), addIf(&l.before.retry, c),
		addIf(&l.after.chunk, c), addIf(&l.after.read, c), addIf(&l.after.process, c), addIf(&l.after.write, c),
		addIf(&l.failed.chunk, c), addIf(&l.failed.read, c), addIf(&l.failed.process, c), addIf(&l.failed.write, c),
		addIf(&l.skipped.read, c), addIf(&l.skipped.process, c), addIf(&l.skipped.write, c),
	)
}

func addIf[L any](list *[]L, c any) bool {
	listener, ok := c.(L)
	if ok {
		*list = append(*list, listener)
	}
	return ok
}

func anyOf(list ...bool) bool {
	for _, is := range list {
		if is {
			return true
		}
	}
	return false
}

func call[L any](name string, list []L, callback func(L) error) error {
	for _, listener := range list {
		if err := guarded(func() error { return callback(listener) }); err != nil {
			return &ListenerError{Callback: name, Err: err}
		}
	}
	return nil
}

// listenerError reports the error of a listener that was called with a failure: a retry or skip of the failure
// would hide it (rule C16a).
func (l *listeners) listenerError(ctx context.Context, failure, note error) error {
	if note != nil {
		l.report(ctx, note)
	}
	return noted(failure, note)
}

func (l *listeners) wantReads() bool { return len(l.before.read) > 0 || len(l.after.read) > 0 }

func (l *listeners) wantProcesses() bool {
	return len(l.before.process) > 0 || len(l.after.process) > 0
}

// wantWrites reports whether a listener sees the items before they are written, and may change them.
func (l *listeners) wantWrites() bool { return len(l.before.write) > 0 }

func (l *listeners) beforeChunk(ctx context.Context) error {
	return call("before_chunk", l.before.chunk, func(c core.BeforeChunk) error { return c.BeforeChunk(ctx) })
}

func (l *listeners) afterChunk(ctx context.Context, counters core.Counters) error {
	return call("after_chunk", l.after.chunk, func(c core.AfterChunk) error { return c.AfterChunk(ctx, counters) })
}

func (l *listeners) onChunkError(ctx context.Context, err error) error {
	return noted(err, call("on_chunk_error", l.failed.chunk, func(c core.OnChunkError) error { return c.OnChunkError(ctx, err) }))
}

func (l *listeners) beforeRead(ctx context.Context) error {
	return call("before_read", l.before.read, func(c core.BeforeRead) error { return c.BeforeRead(ctx) })
}

func (l *listeners) afterRead(ctx context.Context, item any) error {
	return call("after_read", l.after.read, func(c core.AfterRead) error { return c.AfterRead(ctx, item) })
}

func (l *listeners) onReadError(ctx context.Context, err error) error {
	return l.listenerError(ctx, err, call("on_read_error", l.failed.read, func(c core.OnReadError) error { return c.OnReadError(ctx, err) }))
}

func (l *listeners) beforeProcess(ctx context.Context, items item.Items, i int) error {
	if len(l.before.process) == 0 {
		return nil
	}
	l.processing.Lock()
	defer l.processing.Unlock()
	in := items.At(i)
	return call("before_process", l.before.process, func(c core.BeforeProcess) error { return c.BeforeProcess(ctx, in) })
}

// afterProcess calls with the output cell's item, nil if the item was filtered.
func (l *listeners) afterProcess(ctx context.Context, items item.Items, i int, out any, kept bool) error {
	if len(l.after.process) == 0 {
		return nil
	}
	l.processing.Lock()
	defer l.processing.Unlock()
	in := items.At(i)
	var result any
	if cell, ok := out.(item.AnyCell); ok && kept {
		result = cell.Value()
	}
	return call("after_process", l.after.process, func(c core.AfterProcess) error { return c.AfterProcess(ctx, in, result) })
}

func (l *listeners) onProcessError(ctx context.Context, items item.Items, i int, err error) error {
	if len(l.failed.process) == 0 {
		return err
	}
	l.processing.Lock()
	defer l.processing.Unlock()
	in := items.At(i)
	return l.listenerError(ctx, err, call("on_process_error", l.failed.process, func(c core.OnProcessError) error { return c.OnProcessError(ctx, in, err) }))
}

func (l *listeners) beforeWrite(ctx context.Context, items item.Items) error {
	return call("before_write", l.before.write, func(c core.BeforeWrite) error { return c.BeforeWrite(ctx, items) })
}

func (l *listeners) afterWrite(ctx context.Context, items item.Items) error {
	return call("after_write", l.after.write, func(c core.AfterWrite) error { return c.AfterWrite(ctx, items) })
}

func (l *listeners) onWriteError(ctx context.Context, err error, items item.Items) error {
	return l.listenerError(ctx, err, call("on_write_error", l.failed.write, func(c core.OnWriteError) error { return c.OnWriteError(ctx, err, items) }))
}

func (l *listeners) beforeRetry(ctx context.Context, phase core.Phase, n int, err error) error {
	if len(l.before.retry) == 0 {
		return nil
	}
	l.processing.Lock()
	defer l.processing.Unlock()
	return call("before_retry", l.before.retry, func(c core.BeforeRetry) error { return c.BeforeRetry(ctx, phase, n, err) })
}

// skip announces a skip, once (rule C12).
func (l *listeners) skip(ctx context.Context, s *skip) error {
	if s.announced {
		return nil
	}
	s.announced = true
	switch s.phase {
	case core.PhaseRead:
		return call("on_skip_read", l.skipped.read, func(c core.OnSkipRead) error { return c.OnSkipRead(ctx, s.err) })
	case core.PhaseProcess:
		return call("on_skip_process", l.skipped.process, func(c core.OnSkipProcess) error { return c.OnSkipProcess(ctx, s.item, s.err) })
	case core.PhaseWrite:
		return call("on_skip_write", l.skipped.write, func(c core.OnSkipWrite) error { return c.OnSkipWrite(ctx, s.item, s.err) })
	}
	return nil
}
