package runlog

import (
	"context"
	"log/slog"
	"slices"
)

// Handler returns next with an addition: a record from INFO on that is logged with the context of a job or a step is
// in the log of its execution, too, whatever the level of next.
func Handler(next slog.Handler) slog.Handler { return &handler{next: next} }

type handler struct {
	next   slog.Handler
	groups []string
	attrs  []slog.Attr // with their groups
}

// Enabled implements slog.Handler.
func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo && originOf(ctx) != nil || h.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	if o := originOf(ctx); o != nil && r.Level >= slog.LevelInfo {
		o.record(r, h.groups, h.attrs)
	}
	if !h.next.Enabled(ctx, r.Level) {
		return nil
	}
	return h.next.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{next: h.next.WithAttrs(attrs), groups: h.groups, attrs: slices.Concat(h.attrs, grouped(h.groups, attrs))}
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return &handler{next: h.next.WithGroup(name), groups: append(slices.Clone(h.groups), name), attrs: h.attrs}
}

// grouped gives attributes the names of their groups, such as request.id.
func grouped(groups []string, attrs []slog.Attr) []slog.Attr {
	if len(groups) == 0 {
		return attrs
	}
	prefix := ""
	for _, g := range groups {
		prefix += g + "."
	}
	named := slices.Clone(attrs)
	for i := range named {
		named[i].Key = prefix + named[i].Key
	}
	return named
}

func (o *origin) record(r slog.Record, groups []string, attrs []slog.Attr) {
	line := o.line(r.Level, eventLog, r.Message)
	if !r.Time.IsZero() {
		line.At = r.Time.UTC()
	}
	values := o.log.newValues()
	for _, a := range attrs {
		values.add(a)
	}
	r.Attrs(func(a slog.Attr) bool {
		values.add(grouped(groups, []slog.Attr{a})[0])
		return true
	})
	line.Attributes = values.text()
	o.add(line)
}
