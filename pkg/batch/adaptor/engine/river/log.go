package river

import (
	"context"
	"log/slog"
)

// River's records about itself are useful only for debugging.
func quiet(log *slog.Logger) *slog.Logger {
	return slog.New(&lowered{log.Handler()}).With("engine", engineName)
}

type lowered struct{ slog.Handler }

func (l *lowered) level(of slog.Level) slog.Level {
	if of == slog.LevelInfo {
		return slog.LevelDebug
	}
	return of
}

func (l *lowered) Enabled(ctx context.Context, level slog.Level) bool {
	return l.Handler.Enabled(ctx, l.level(level))
}

func (l *lowered) Handle(ctx context.Context, r slog.Record) error {
	r.Level = l.level(r.Level)
	return l.Handler.Handle(ctx, r)
}

func (l *lowered) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &lowered{l.Handler.WithAttrs(attrs)}
}

func (l *lowered) WithGroup(name string) slog.Handler { return &lowered{l.Handler.WithGroup(name)} }
