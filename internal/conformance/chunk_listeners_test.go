package conformance_test

import (
	"context"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/chunk"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

const skipPolicy = "skip_policy"

type probe struct {
	*record
	name string
}

// called records a call about the items of these values, which may be empty.
func (p probe) called(values ...string) error {
	call := p.faults.visit(p.name, "calls")
	p.note(func() {
		p.calls[p.name]++
		p.items[p.name] = append(p.items[p.name], values...)
	})
	at := []occasion{{where: p.name, call: call}}
	if len(values) > 0 {
		at = at[:0]
	}
	for _, v := range values {
		at = append(at, occasion{where: p.name, call: call, value: v, attempt: p.faults.visit(p.name+" item", v)})
	}
	for _, o := range at {
		if err := p.faults.raise(o); err != nil {
			return err
		}
	}
	p.note(func() { p.trail = append(p.trail, p.name) })
	return nil
}

func values(items ...any) []string {
	var list []string
	for _, item := range items {
		switch item := item.(type) {
		case entry:
			list = append(list, item.Value)
		case *product:
			list = append(list, item.Value)
		}
	}
	return list
}

func valuesOf(items item.Items) []string {
	var list []string
	for i := range items.Len() {
		list = append(list, values(items.At(i))...)
	}
	return list
}

func valueOf(err error) []string {
	if i, ok := injectedIn(err); ok && i.value != "" {
		return []string{i.value}
	}
	return nil
}

type (
	beforeChunk    struct{ probe }
	afterChunk     struct{ probe }
	onChunkError   struct{ probe }
	beforeRead     struct{ probe }
	afterRead      struct{ probe }
	onReadError    struct{ probe }
	beforeProcess  struct{ probe }
	afterProcess   struct{ probe }
	onProcessError struct{ probe }
	beforeWrite    struct{ probe }
	afterWrite     struct{ probe }
	onWriteError   struct{ probe }
	onSkipRead     struct{ probe }
	onSkipProcess  struct{ probe }
	onSkipWrite    struct{ probe }
	beforeRetry    struct {
		probe
		phase core.Phase // empty means any
	}
)

func (l beforeChunk) BeforeChunk(context.Context) error              { return l.called() }
func (l afterChunk) AfterChunk(context.Context, core.Counters) error { return l.called() }
func (l onChunkError) OnChunkError(context.Context, error) error     { return l.called() }
func (l beforeRead) BeforeRead(context.Context) error                { return l.called() }
func (l afterRead) AfterRead(_ context.Context, item any) error      { return l.called(values(item)...) }
func (l onReadError) OnReadError(_ context.Context, err error) error {
	return l.called(valueOf(err)...)
}
func (l beforeProcess) BeforeProcess(_ context.Context, item any) error {
	return l.called(values(item)...)
}
func (l afterProcess) AfterProcess(_ context.Context, item, _ any) error {
	return l.called(values(item)...)
}
func (l onProcessError) OnProcessError(_ context.Context, item any, _ error) error {
	return l.called(values(item)...)
}
func (l beforeWrite) BeforeWrite(_ context.Context, items item.Items) error {
	return l.called(valuesOf(items)...)
}
func (l afterWrite) AfterWrite(_ context.Context, items item.Items) error {
	return l.called(valuesOf(items)...)
}
func (l onWriteError) OnWriteError(_ context.Context, _ error, items item.Items) error {
	return l.called(valuesOf(items)...)
}
func (l onSkipRead) OnSkipRead(_ context.Context, err error) error { return l.called(valueOf(err)...) }
func (l onSkipProcess) OnSkipProcess(_ context.Context, item any, _ error) error {
	return l.called(values(item)...)
}
func (l onSkipWrite) OnSkipWrite(_ context.Context, item any, _ error) error {
	return l.called(values(item)...)
}
func (l beforeRetry) BeforeRetry(_ context.Context, phase core.Phase, _ int, err error) error {
	if l.phase != "" && l.phase != phase {
		return nil
	}
	return l.called(valueOf(err)...)
}

func listeners() map[string]func(probe) any {
	retry := func(phase core.Phase) func(probe) any {
		return func(p probe) any { return &beforeRetry{probe: p, phase: phase} }
	}
	return map[string]func(probe) any{
		"before_chunk":     func(p probe) any { return &beforeChunk{p} },
		"after_chunk":      func(p probe) any { return &afterChunk{p} },
		"on_chunk_error":   func(p probe) any { return &onChunkError{p} },
		"before_read":      func(p probe) any { return &beforeRead{p} },
		"after_read":       func(p probe) any { return &afterRead{p} },
		"on_read_error":    func(p probe) any { return &onReadError{p} },
		"before_process":   func(p probe) any { return &beforeProcess{p} },
		"after_process":    func(p probe) any { return &afterProcess{p} },
		"on_process_error": func(p probe) any { return &onProcessError{p} },
		"before_write":     func(p probe) any { return &beforeWrite{p} },
		"after_write":      func(p probe) any { return &afterWrite{p} },
		"on_write_error":   func(p probe) any { return &onWriteError{p} },
		"on_skip_read":     func(p probe) any { return &onSkipRead{p} },
		"on_skip_process":  func(p probe) any { return &onSkipProcess{p} },
		"on_skip_write":    func(p probe) any { return &onSkipWrite{p} },
		"before_retry":     retry(""),
		"on_retry_read":    retry(core.PhaseRead),
		"on_retry_process": retry(core.PhaseProcess),
		"on_retry_write":   retry(core.PhaseWrite),
	}
}

func callbacks() []string { return sortedKeys(listeners()) }

func watched(list []fault, e *expectation) []string {
	names := slices.Concat(sortedKeys(e.ListenerCalls), e.ListenerCalled)
	if e.ListenerTrail != nil {
		names = append(names, *e.ListenerTrail...)
	}
	for _, f := range list {
		if f.Callback != "" && f.Callback != skipPolicy {
			names = append(names, f.Callback)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// marker records where the first chunk begins: a reader that was taken back to its position, item by item,
// has only then begun to read.
type marker struct{ *reader }

func (m *marker) BeforeChunk(context.Context) error {
	if m.started {
		return nil
	}
	m.faults.forget(phaseRead, "calls")
	m.note(func() { m.started, m.resumeAt, m.readCalls, m.readItems = true, m.next, 0, nil })
	return nil
}

type faultyPolicy struct {
	probe
	chunk.SkipPolicy
}

func (f faultyPolicy) Admit(err error, skipped int64) (bool, error) {
	if err := f.called(valueOf(err)...); err != nil {
		return false, err
	}
	return f.SkipPolicy.Admit(err, skipped)
}

func policyFails(list []fault) bool {
	return slices.ContainsFunc(list, func(f fault) bool { return f.Callback == skipPolicy })
}

func afterItem(text string) (string, bool) {
	_, value, found := strings.Cut(text, "item=")
	return value, found
}
