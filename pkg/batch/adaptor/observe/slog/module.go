package slog

import (
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// Module appends events (from DEBUG on) as lines of JSON to the file of the setting log.events, if set. An
// application with its own logger uses batch.Log(logger).
func Module() fx.Option {
	return fx.Module("surfin.slog", fx.Provide(fx.Annotate(observers, fx.ResultTags(`group:"surfin.observers,flatten"`))))
}

func observers(lc fx.Lifecycle, s settings.Settings) ([]core.Observer, error) {
	if s.Log.Events == "" {
		return nil, nil
	}
	f, err := os.OpenFile(s.Log.Events, os.O_APPEND|os.O_CREATE|os.O_WRONLY, mode(s.Files.Mode))
	if err != nil {
		return nil, fmt.Errorf("log.events: %w", err)
	}
	lc.Append(fx.StopHook(f.Close))
	handler := slog.NewJSONHandler(masked{f, s.Secrets}, &slog.HandlerOptions{Level: slog.LevelDebug})
	return []core.Observer{New(slog.New(handler))}, nil
}

func mode(m fs.FileMode) fs.FileMode {
	if m == 0 {
		return 0o600
	}
	return m
}

// A database may quote its URL's password in an error.
type masked struct {
	w       io.Writer
	secrets *secret.Vault
}

func (m masked) Write(line []byte) (int, error) {
	if _, err := io.WriteString(m.w, m.secrets.Mask(string(line))); err != nil {
		return 0, err
	}
	return len(line), nil
}
