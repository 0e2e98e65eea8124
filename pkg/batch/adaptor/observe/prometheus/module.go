package prometheus

import (
	"context"
	"log/slog"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// Module offers metrics by the settings metrics.listen and metrics.textfile, if set. Warnings go to the
// application's *slog.Logger, or slog.Default().
func Module() fx.Option {
	return fx.Module("surfin.prometheus", fx.Provide(fx.Annotate(observers, fx.ResultTags(`group:"surfin.observers,flatten"`))))
}

type dependencies struct {
	fx.In
	Settings settings.Settings
	Log      *slog.Logger `optional:"true"`
}

func observers(lc fx.Lifecycle, d dependencies) ([]core.Observer, error) {
	s := d.Settings.Metrics
	if !s.Wanted() {
		return nil, nil
	}
	e, err := NewExporter(ExporterConfig{Listen: s.Listen, Textfile: s.Textfile, Every: s.Every, Log: d.Log})
	if err != nil {
		return nil, err
	}
	lc.Append(fx.StopHook(func(ctx context.Context) {
		if err := e.Close(ctx); err != nil { // the job's result stands
			e.config.Log.WarnContext(ctx, "metrics: close the listener", "error", err.Error())
		}
	}))
	return []core.Observer{e}, nil
}
