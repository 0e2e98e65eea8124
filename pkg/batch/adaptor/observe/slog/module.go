package slog

import (
	"fmt"
	"log/slog"
	"os"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/cli/settings"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Module appends events as lines of JSON to the file of the setting log.events,
// from level DEBUG on. Without the setting it does nothing. An application with a
// logger of its own says batch.Observe(slog.New(logger)) instead.
func Module() fx.Option {
	return fx.Module("surfin.slog", fx.Provide(fx.Annotate(observers, fx.ResultTags(`group:"surfin.observers,flatten"`))))
}

func observers(lc fx.Lifecycle, s settings.Settings) ([]core.Observer, error) {
	if s.Log.Events == "" {
		return nil, nil
	}
	f, err := os.OpenFile(s.Log.Events, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("log.events: %w", err)
	}
	lc.Append(fx.StopHook(f.Close))
	handler := slog.NewJSONHandler(f, &slog.HandlerOptions{Level: slog.LevelDebug})
	return []core.Observer{New(slog.New(handler))}, nil
}
