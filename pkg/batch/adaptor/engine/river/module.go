package river

import (
	"log/slog"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/runtime/engine"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Module offers the engine; settings select it by `engine: river`. Warnings go to the application's
// *slog.Logger, or slog.Default().
func Module() fx.Option {
	return fx.Module("surfin.river", fx.Provide(fx.Annotate(makers, fx.ResultTags(engine.Makers))))
}

type dependencies struct {
	fx.In
	Settings settings.Settings
	Log      *slog.Logger `optional:"true"`
}

func makers(d dependencies) []engine.Maker {
	s, log := d.Settings.River, d.Log
	if log == nil {
		log = slog.Default()
	}
	return []engine.Maker{{Name: engineName, New: func(db tx.Database) (engine.Engine, error) {
		return New(Config{Database: db, Schema: s.Schema, PollOnly: !s.Listen, Poll: s.Poll, Log: log})
	}}}
}
