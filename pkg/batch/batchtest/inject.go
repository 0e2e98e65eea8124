package batchtest

import (
	"context"
	"reflect"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

func (f *Faults) registry(r *registry.Registry) *registry.Registry {
	return r.Map(func(c registry.Component) registry.Component {
		make := c.New
		if make == nil {
			return c
		}
		c.New = func(ctx context.Context, cfg any, b registry.BuildContext) (any, error) {
			made, err := make(ctx, cfg, b)
			if err != nil {
				return nil, err
			}
			return f.wrap(c.Kind, c.Name, b, made), nil
		}
		return c
	})
}

type place struct {
	execution core.JobExecutionID
	step      string
	kind      registry.Kind
}

func (f *Faults) wrap(kind registry.Kind, name string, use registry.BuildContext, made any) any {
	f.mu.Lock()
	at := place{use.Execution, use.Step, kind}
	s := site{step: use.Step, component: name, index: f.made[at]}
	f.made[at]++
	f.mu.Unlock()
	switch made := made.(type) {
	case item.Reader:
		s.phase = core.PhaseRead
		return f.reader(s, made)
	case item.Processor:
		s.phase = core.PhaseProcess
		return f.processor(s, made)
	case item.Writer:
		s.phase = core.PhaseWrite
		return f.writer(s, made)
	}
	return made
}

func (f *Faults) reader(s site, r item.Reader) item.Reader {
	if list := f.at(s); len(list) > 0 {
		return &faultyReader{Reader: r, faults: f, list: list}
	}
	return r
}

func (f *Faults) processor(s site, p item.Processor) item.Processor {
	if list := f.at(s); len(list) > 0 {
		return &faultyProcessor{Processor: p, faults: f, list: list}
	}
	return p
}

func (f *Faults) writer(s site, w item.Writer) item.Writer {
	if list := f.at(s); len(list) > 0 {
		return &faultyWriter{Writer: w, faults: f, list: list}
	}
	return w
}

type faultyReader struct {
	item.Reader
	faults *Faults
	list   []*armed
}

func (r *faultyReader) Fill(ctx context.Context, items item.Items, n int) error {
	for items.Len() < n {
		blind := r.faults.call(r.list, func(a *armed) bool { return a.Match == nil })
		if err := blind.strike(); err != nil && !item.IsConsumed(err) {
			return err
		} else if err != nil {
			return r.consume(ctx, items, err)
		}
		last := items.Len()
		if err := r.Reader.Fill(ctx, items, last+1); err != nil {
			return err
		}
		seeing := r.faults.call(r.list, func(a *armed) bool { return a.Match != nil && a.Match(items.At(last)) })
		if err := seeing.strike(); err != nil {
			meta := items.Meta(last)
			items.Truncate(last)
			return item.Consumed(meta, err)
		}
	}
	return nil
}

func (r *faultyReader) consume(ctx context.Context, items item.Items, failure error) error {
	last := items.Len()
	if err := r.Reader.Fill(ctx, items, last+1); err != nil {
		return err
	}
	items.Truncate(last)
	return failure
}

type faultyProcessor struct {
	item.Processor
	faults *Faults
	list   []*armed
}

func (p *faultyProcessor) Chain(in any) (any, item.Advance, error) {
	out, advance, err := p.Processor.Chain(in)
	if err != nil {
		return nil, nil, err
	}
	item := reflect.ValueOf(in).Elem().FieldByName("Item")
	return out, func(ctx context.Context) error {
		fault := p.faults.call(p.list, func(a *armed) bool { return a.Match == nil || a.Match(item.Interface()) })
		return p.faults.around(fault, func() error { return advance(ctx) })
	}, nil
}

type faultyWriter struct {
	item.Writer
	faults *Faults
	list   []*armed
}

func (w *faultyWriter) Write(ctx context.Context, items item.Items) error {
	fault := w.faults.call(w.list, func(a *armed) bool { return a.Match == nil || matchesAny(a, items) })
	return w.faults.around(fault, func() error { return w.Writer.Write(ctx, items) })
}

func matchesAny(a *armed, items item.Items) bool {
	for i := range items.Len() {
		if a.Match(items.At(i)) {
			return true
		}
	}
	return false
}

func (f *Faults) around(fault *armed, call func() error) error {
	if fault == nil {
		return call()
	}
	if !fault.After {
		if err := fault.strike(); err != nil {
			return err
		}
		return call()
	}
	if err := call(); err != nil {
		f.missed(fault)
		return err
	}
	return fault.strike()
}
