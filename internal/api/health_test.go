package api_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/api"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testproxy"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func probe(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	req.Host = "10.1.2.3" // as an orchestrator calls it
	got, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(t, err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	return got.StatusCode, string(text)
}

func TestProbesSayWhetherTheProcessLivesAndWhetherItCanWork(t *testing.T) {
	t.Parallel()
	proxy := testproxy.New(t, testdb.Postgres(t))
	s := newScene(t, proxy.URL()).serve(func(c *api.Config) { c.Rate = 1 })
	t.Cleanup(proxy.Thaw)
	until := func(status int, says string) {
		require.Eventually(t, func() bool { got, text := probe(t, s.url+"/readyz"); return got == status && text == says }, time.Minute, 50*time.Millisecond)
	}
	for _, away := range []struct{ begin, end func() }{{proxy.Freeze, proxy.Thaw}, {proxy.Cut, proxy.Heal}} {
		until(http.StatusOK, `{"status":"ok"}`+"\n")
		away.begin()
		until(http.StatusServiceUnavailable, `{"status":"unavailable","reason":"the database cannot be reached, or does not answer"}`+"\n")
		began := time.Now()
		for range 20 {
			status, text := probe(t, s.url+"/livez")
			require.Equal(t, http.StatusOK, status, text)
		}
		require.Less(t, time.Since(began), 2*time.Second, "it asks no database")
		away.end()
	}
	until(http.StatusOK, `{"status":"ok"}`+"\n")
	status, _ := probe(t, s.url+"/v1/executions")
	require.Equal(t, http.StatusUnauthorized, status, "nothing else is answered without a token")
}

func TestAProcessWithoutTablesOrThatStopsIsNotReady(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url).serve()
		db, err := s.provider.Database(tx.Default)
		require.NoError(t, err)
		stopping := make(chan struct{})
		at, end, err := api.ServeHealth(t.Context(), "127.0.0.1:0", &api.Health{Stopping: stopping, Check: s.app.CheckDatabase})
		require.NoError(t, err)
		_, _, err = api.ServeHealth(t.Context(), at.String(), &api.Health{Check: s.app.CheckDatabase})
		require.ErrorContains(t, err, "listen for probes at "+at.String())
		ready := "http://" + at.String() + "/readyz"
		status, text := probe(t, ready)
		require.Equal(t, http.StatusOK, status, text)
		_, err = db.Conn().ExecContext(t.Context(), "alter table surfin_schema_migrations rename to gone")
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			status, text := probe(t, ready)
			return status == http.StatusServiceUnavailable && text == `{"status":"unavailable","reason":"the tables are missing or outdated: migrate"}`+"\n"
		}, time.Minute, 50*time.Millisecond)
		close(stopping)
		status, text = probe(t, ready)
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Contains(t, text, "the process is stopping")
		status, _ = probe(t, "http://"+at.String()+"/livez")
		require.Equal(t, http.StatusOK, status)
		status, _ = probe(t, "http://"+at.String()+"/v1/executions")
		require.Equal(t, http.StatusNotFound, status)
		require.NoError(t, end())
	})
}
