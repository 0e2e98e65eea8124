//test:plain

package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

func TestAGroupIsSubmittedExecutedAndShown(t *testing.T) {
	t.Chdir(t.TempDir())
	testdb.Each(t, func(t *testing.T, url string) {
		t.Setenv("DATABASE_URL", url)
		var asked atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if asked.Add(1) <= 2 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			_, err := w.Write([]byte("to be or not to be"))
			if err != nil {
				t.Error(err)
			}
		}))
		defer server.Close()
		var out bytes.Buffer
		require.NoError(t, weave(t.Context(), server.URL, 10*time.Millisecond, &out))
		text := out.String()
		require.Contains(t, text, "look at a page: completed (3 total, 3 succeeded, 0 failed)\n")
		require.Contains(t, text, "Download file (http_request): SUCCEEDED\n")
		require.Contains(t, text, "Count words (words): SUCCEEDED\n")
		require.Contains(t, text, "Say so (shell): SUCCEEDED\n  attempt 1: SUCCESS \n")
		require.Contains(t, text, "FAILED the server answered 503 Service Unavailable\n  patient: Retry 2 of 3 after 10ms\n")
		require.EqualValues(t, 4, asked.Load())
	})
}

func TestAPageThatIsNotThereIsGivenUpAtOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	testdb.Each(t, func(t *testing.T, url string) {
		t.Setenv("DATABASE_URL", url)
		server := httptest.NewServer(http.NotFoundHandler())
		defer server.Close()
		var out bytes.Buffer
		require.NoError(t, weave(t.Context(), server.URL, time.Millisecond, &out))
		require.Contains(t, out.String(), "look at a page: failed (3 total, 1 succeeded, 2 failed)\n")
		require.Contains(t, out.String(), "patient: blocked: the server answered 404 Not Found\n")
		require.Contains(t, out.String(), "Count words (words): FAILED\n  attempt 1: FAILED")
		require.Contains(t, out.String(), "  attempt 3: FAILED the server answered 404 Not Found\n  patient: Max attempts (3) exceeded\n")
	})
}

func TestTheDelayDoublesUpToItsBound(t *testing.T) {
	t.Parallel()
	for attempts, want := range map[int]time.Duration{1: 2 * time.Second, 2: 4 * time.Second, 5: 32 * time.Second, 6: time.Minute, 99: time.Minute} {
		d := patient{time.Minute}.Decide(task.Case{Outcome: task.Failure("x"), Budget: task.Budget{MaxAttempts: 100}, Spent: task.Spent{Attempts: attempts}})
		require.Equal(t, want, d.Delay)
		require.False(t, d.Dead)
	}
}
