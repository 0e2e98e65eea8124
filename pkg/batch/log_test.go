package batch_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
)

// It changes slog's default logger, so it is not parallel.
func TestAnApplicationLogsToSlogsDefaultUnlessItSaysOtherwise(t *testing.T) {
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	for name, c := range map[string]struct {
		opts func(own *slog.Logger) []fx.Option
		// byDefault and byOwn are the loggers that get the records.
		byDefault, byOwn bool
	}{
		"nothing said": {func(*slog.Logger) []fx.Option { return nil }, true, false},
		"own logger":   {func(own *slog.Logger) []fx.Option { return []fx.Option{batch.Log(own)} }, false, true},
		"no log":       {func(*slog.Logger) []fx.Option { return []fx.Option{batch.Log(nil)} }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			var standard, other bytes.Buffer
			slog.SetDefault(slog.New(slog.NewTextHandler(&standard, nil)))
			opts := append(c.opts(slog.New(slog.NewTextHandler(&other, nil))), batch.Jobs(batch.NewJob("nightly").Step("note", batch.TaskletOf(
				func(context.Context, *batch.StepContribution) error { return nil }))))
			app, err := batch.New(t.Context(), settingsFor(t, testdb.SQLite(t)), opts...)
			require.NoError(t, err)
			_, err = app.Run(t.Context(), batch.RunRequest{Name: "nightly"})
			require.NoError(t, err)
			require.NoError(t, app.Close(t.Context()))
			require.Equal(t, c.byDefault, strings.Contains(standard.String(), "event=job.ended job=nightly"), standard.String())
			require.Equal(t, c.byOwn, strings.Contains(other.String(), "event=job.ended job=nightly"), other.String())
		})
	}
}
