package acceptance

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testproxy"
)

func TestAWorkerAnswersProbes(t *testing.T) {
	t.Parallel()
	proxy := testproxy.New(t, testdb.Postgres(t))
	t.Cleanup(proxy.Thaw)
	s := newRemoteScene(t, proxy.URL(), 10, 10)
	w := s.start("worker", "--health", "127.0.0.1:0")
	t.Cleanup(func() { w.signal(syscall.SIGKILL) })
	w.await("waiting for work")
	at := regexp.MustCompile(`probes are answered at (http://127\.0\.0\.1:\d+)/livez`).FindStringSubmatch(w.out.String())
	require.Len(t, at, 2, w.out.String())
	ask := func(path string) int {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, at[1]+path, nil)
		require.NoError(t, err)
		got, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer got.Body.Close()
		_, err = io.Copy(io.Discard, got.Body)
		require.NoError(t, err)
		return got.StatusCode
	}
	becomes := func(path string, status int) {
		t.Helper()
		require.Eventually(t, func() bool { return ask(path) == status }, time.Minute, 50*time.Millisecond, "%s is not %d", path, status)
	}
	becomes("/readyz", http.StatusOK)
	proxy.Freeze()
	becomes("/readyz", http.StatusServiceUnavailable)
	require.Equal(t, http.StatusOK, ask("/livez"))
	proxy.Thaw()
	becomes("/readyz", http.StatusOK)
	w.signal(syscall.SIGTERM)
	code, out := w.wait()
	require.Zero(t, code, out)
}
