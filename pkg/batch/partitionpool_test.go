package batch_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// Parts wait in turn for the connections of a small pool (rule O4).
func TestMorePartsThanTheirReadersPoolHasConnectionsWaitInTurn(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		small := map[bool]string{true: "1", false: "3"}[strings.HasPrefix(url, "sqlite")]
		app, dir := appOf(t, "DATABASE_URL="+url, "SURFIN_DATABASES_DEFAULT_MAX_OPEN=17", "SURFIN_DATABASES_SOURCE="+url, "SURFIN_DATABASES_SOURCE_MAX_OPEN="+small)
		exec, err := app.Run(t.Context(), batch.RunRequest{File: write(t, dir, "job.yaml", "job: wait\nflow:"+skewedRows+`
- step: load
  partition: {by: {range: {database: source, table: src, key: id, parts: 24}}, workers: 8}
  chunk:
    size: 100
    reader: {query: {database: source, sql: "select id, value from src where id between ${part.min} and ${part.max}", key: [id], item: {id: int, value: int}}}
    writer: {table: dst}
  expect: written == 20000
`)})
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	})
}

func appOf(t *testing.T, environ ...string) (*batch.App, string) {
	t.Helper()
	s, err := settings.Load(settings.Source{Dir: t.TempDir(), Environ: environ})
	require.NoError(t, err)
	s.AutoMigrate = settings.MigrateAlways
	app, err := batch.New(t.Context(), s)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, app.Close(context.WithoutCancel(t.Context()))) })
	return app, t.TempDir()
}

func TestMoreWorkersThanThePoolOfTheStepServesAreRefusedAtTheirLine(t *testing.T) {
	t.Parallel()
	app, dir := appOf(t, "DATABASE_URL="+testdb.Postgres(t), "SURFIN_DATABASES_DEFAULT_MAX_OPEN=3")
	job := func(workers string) string {
		return write(t, dir, "job.yaml", "job: small\nflow:"+skewedRows+`- step: load
  partition: {by: {range: {table: src, key: id, parts: 4}}`+workers+`}
  chunk:
    reader: {query: {sql: "select id, value from src where id between ${part.min} and ${part.max}", key: [id], item: {id: int, value: int}}}
    writer: {table: dst}
  expect: written == 20000
`)
	}
	_, err := app.Run(t.Context(), batch.RunRequest{File: job(", workers: 4")})
	require.ErrorContains(t, err, "job.yaml:11:70: workers: database default may open 3 connections, but 4 workers need 9")
	require.ErrorContains(t, err, "raise max_open to 9")
	exec, err := app.Run(t.Context(), batch.RunRequest{File: job("")}) // as many as the pool serves
	require.NoError(t, err)
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
}
