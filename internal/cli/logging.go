package cli

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/surfin-batch/surfin/internal/humanize"
)

func newLogger(w io.Writer, level, format string) *slog.Logger {
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		least = slog.LevelInfo // cannot happen: the settings have checked it
	}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: least}))
	}
	return slog.New(newLineHandler(w, least))
}

// slog's text handler without the keys of time, level and message: people
// recognize them by position.
type lineHandler struct {
	shared *lineOutput
	attrs  slog.Handler // writes the attributes to shared.line
}

type lineOutput struct {
	mu   sync.Mutex
	w    io.Writer
	line bytes.Buffer
}

func newLineHandler(w io.Writer, least slog.Level) *lineHandler {
	shared := &lineOutput{w: w}
	return &lineHandler{shared: shared, attrs: slog.NewTextHandler(&shared.line, &slog.HandlerOptions{
		Level: least,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
				return slog.Attr{}
			}
			return a
		},
	})}
}

func (h *lineHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.attrs.Enabled(ctx, level)
}

func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &lineHandler{h.shared, h.attrs.WithAttrs(attrs)}
}

func (h *lineHandler) WithGroup(name string) slog.Handler {
	return &lineHandler{h.shared, h.attrs.WithGroup(name)}
}

func (h *lineHandler) Handle(ctx context.Context, r slog.Record) error {
	h.shared.mu.Lock()
	defer h.shared.mu.Unlock()
	line := &h.shared.line
	line.Reset()
	level := r.Level.String()
	line.WriteString(r.Time.Format(time.DateTime+" ") + level + strings.Repeat(" ", max(6-len(level), 1)) + humanize.OneLine(r.Message) + " ")
	if err := h.attrs.Handle(ctx, r); err != nil {
		return err
	}
	_, err := h.shared.w.Write(append(bytes.TrimRight(line.Bytes(), " \n"), '\n'))
	return err
}
