package prometheus_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testproxy"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/observe/prometheus"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func opened(t *testing.T, url string, opts ...fx.Option) (*batch.App, *prometheus.Exporter) {
	t.Helper()
	e := exporterOf(t, prometheus.ExporterConfig{Listen: "127.0.0.1:0"})
	s := batch.Settings{
		Databases: map[string]settings.Database{tx.Default: {URL: url}}, Repository: settings.Repository{Database: tx.Default},
		Lease: 30 * time.Second, Heartbeat: 5 * time.Second,
	}
	app, err := batch.New(t.Context(), s, append(opts, batch.Observe(e), batch.Log(nil))...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, app.Close(context.WithoutCancel(t.Context()))) })
	_, err = app.Migrate(t.Context(), "")
	require.NoError(t, err)
	return app, e
}

// Rules OP1, OP2.
func TestARestartOfTheServerForgetsNothing(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		dir := t.TempDir()
		good, bad := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml")
		require.NoError(t, os.WriteFile(good, []byte("job: good\nschedule: {cron: '0 0 1 1 *', timezone: UTC}\nflow:\n- step: a\n  tasklet: {sql: select 1}\n"), 0o600))
		require.NoError(t, os.WriteFile(bad, []byte("job: bad\nflow:\n- step: a\n  tasklet: {fail: no}\n"), 0o600))
		before, _ := opened(t, url)
		_, err := before.Run(t.Context(), batch.RunRequest{File: good})
		require.NoError(t, err)
		_, err = before.Register(t.Context(), operator.RegisterRequest{File: good})
		require.NoError(t, err)

		_, e := opened(t, url)
		e.Observe(t.Context(), core.ServerStarted{Address: "a:1"})
		s := scrape(t, e.Address())
		require.EqualValues(t, 1, s["surfin_history_up{}"])
		require.InDelta(t, time.Now().Unix(), s[`surfin_history_last_completed_timestamp_seconds{job_name="good"}`], 60)
		require.Greater(t, s[`surfin_history_next_due_timestamp_seconds{job_name="good"}`], float64(time.Now().Unix()))
		require.Zero(t, s[`surfin_history_late_seconds{job_name="good"}`])
		for _, name := range []string{
			"surfin_history_workers{}", `surfin_job_executions_total{exit_code="FAILED",job_name="good",status="FAILED"}`,
			`surfin_owners_lost_total{job_name="good"}`, `surfin_heartbeat_failures_total{job_name=""}`,
			`surfin_transitions_total{machine="job execution",result="applied",trigger="take over"}`,
			`surfin_transitions_total{machine="step execution",result="rejected",trigger="end step"}`,
		} {
			value, there := s[name]
			require.True(t, there, name)
			require.Zero(t, value, name)
		}

		_, err = before.Run(t.Context(), batch.RunRequest{File: bad})
		require.NoError(t, err)
		_, err = before.Repository.Launch(t.Context(), ports.LaunchRequest{JobName: "open", Owner: core.Owner{Host: "h", PID: 1}, Lease: time.Hour})
		require.NoError(t, err)
		require.NotContains(t, scrape(t, e.Address()), `surfin_history_executions{job_name="open",status="STARTING"}`, "figures are used for 15 seconds")
		e.Expire()
		s = scrape(t, e.Address())
		require.EqualValues(t, 1, s[`surfin_history_executions{job_name="open",status="STARTING"}`])
		require.InDelta(t, time.Now().Unix(), s[`surfin_history_oldest_execution_timestamp_seconds{job_name="open",status="STARTING"}`], 60)
		require.NotContains(t, s, `surfin_history_last_completed_timestamp_seconds{job_name="bad"}`)
	})
}

func TestAScheduledRunThatNobodyBeginsIsLate(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		job := filepath.Join(t.TempDir(), "often.yaml")
		require.NoError(t, os.WriteFile(job, []byte("job: often\nschedule: {cron: '* * * * *', timezone: UTC}\nflow:\n- step: a\n  tasklet: {sql: select 1}\n"), 0o600))
		var provider tx.Provider
		app, _ := opened(t, url, fx.Populate(&provider))
		_, err := app.Register(t.Context(), operator.RegisterRequest{File: job})
		require.NoError(t, err)
		db, err := provider.Database("")
		require.NoError(t, err)
		_, err = db.Conn().ExecContext(t.Context(), "UPDATE surfin_job_definition SET scheduled_until = "+map[tx.Dialect]string{
			tx.Postgres: "clock_timestamp() - interval '10 minutes'", tx.SQLite: "scheduled_until - 600000000"}[db.Dialect()])
		require.NoError(t, err)
		f, err := app.Figures(t.Context())
		require.NoError(t, err)
		require.Len(t, f.Schedules, 1)
		require.InDelta(t, 9.5*60, f.Schedules[0].Late.Seconds(), 40)
		require.WithinDuration(t, f.At, f.Schedules[0].Next, time.Minute+time.Second)
	})
}

// Rule OP1.
func TestAScrapeIsAnsweredWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	e := exporterOf(t, prometheus.ExporterConfig{Listen: "127.0.0.1:0"})
	away := true
	asked := 0
	e.ReadFigures(func(ctx context.Context) (core.Figures, error) {
		asked++
		if away {
			_, bounded := ctx.Deadline()
			require.True(t, bounded)
			return core.Figures{}, errors.New("away")
		}
		return core.Figures{Workers: 2}, nil
	})
	e.Observe(t.Context(), core.ServerStarted{Address: "a:1"})
	for range 3 {
		s := scrape(t, e.Address())
		require.Contains(t, s, "surfin_history_up{}")
		require.Zero(t, s["surfin_history_up{}"])
		require.NotContains(t, s, "surfin_history_workers{}")
		require.Contains(t, s, `surfin_heartbeat_failures_total{job_name=""}`)
	}
	require.Equal(t, 1, asked)
	away = false
	e.Expire()
	require.EqualValues(t, 2, scrape(t, e.Address())["surfin_history_workers{}"])
}

func TestAFrozenServerHoldsNoScrape(t *testing.T) {
	t.Parallel()
	proxy := testproxy.New(t, testdb.Postgres(t))
	_, e := opened(t, proxy.URL())
	e.Observe(t.Context(), core.ServerStarted{Address: "a:1"})
	require.EqualValues(t, 1, scrape(t, e.Address())["surfin_history_up{}"])
	proxy.Freeze()
	e.Expire()
	begun := time.Now()
	s := scrape(t, e.Address())
	require.Zero(t, s["surfin_history_up{}"])
	require.Less(t, time.Since(begun), 9*time.Second, strconv.Itoa(len(s)))
	proxy.Thaw()
}
