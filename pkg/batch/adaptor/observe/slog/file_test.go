package slog

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx/fxtest"

	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

func TestTheEventLogIsTheOwnersAloneAndHasNoPasswords(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.jsonl")
	lc := fxtest.NewLifecycle(t)
	_, err := observers(lc, settings.Settings{Log: settings.Log{Events: path}})
	require.NoError(t, err)
	lc.RequireStart().RequireStop()
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	slog.New(slog.NewJSONHandler(masked{w: f}, nil)).Error("no answer of postgres://me:hunter2@h/x")
	require.NoError(t, f.Close())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), "no answer of postgres://me:***@h/x")
}
