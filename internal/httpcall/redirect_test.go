package httpcall_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/httpcall"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

func TestARedirectToAnotherHostCarriesNoCredentials(t *testing.T) {
	t.Parallel()
	echo := func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.Header.Get("X-Api-Key") + "|" + r.Header.Get("Authorization") + "|" + r.Referer())) //nolint:errcheck // of the test
	}
	other := httptest.NewServer(http.HandlerFunc(echo))
	t.Cleanup(other.Close)
	mux := http.NewServeMux()
	mux.HandleFunc("/here", echo)
	mux.Handle("/in", http.RedirectHandler("/here", http.StatusFound))
	mux.Handle("/out", http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	first := httptest.NewServer(mux)
	t.Cleanup(first.Close)
	call := func(path string) string {
		a, err := httpcall.Do(t.Context(), http.DefaultClient, httpcall.Request{
			URL: first.URL + path, Headers: map[string]string{"x-api-key": "k", "Authorization": "a"}, Keep: 1000,
		})
		require.NoError(t, err)
		return string(a.Body)
	}
	require.Equal(t, "k|a|"+first.URL+"/in?q=s", call("/in?q=s"))
	require.Equal(t, "||", call("/out?q=s"))
}

func TestABodyIsNotSentToAnotherHost(t *testing.T) {
	t.Parallel()
	var gets, others atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			gets.Add(1)
		} else {
			others.Add(1)
		}
	}))
	t.Cleanup(other.Close)
	mux := http.NewServeMux()
	mux.HandleFunc("/here", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) //nolint:errcheck // of the test
		_, _ = w.Write(body)          //nolint:errcheck // of the test
	})
	for path, code := range map[string]int{"/307": 307, "/308": 308, "/303": 303} {
		mux.Handle(path, http.RedirectHandler(other.URL+"/in?key=s", code))
	}
	mux.Handle("/in", http.RedirectHandler("/here", http.StatusPermanentRedirect))
	first := httptest.NewServer(mux)
	t.Cleanup(first.Close)
	call := func(path string) (string, error) {
		a, err := httpcall.Do(t.Context(), http.DefaultClient, httpcall.Request{URL: first.URL + path, Body: []byte("password"), Keep: 1000})
		if err != nil {
			return "", err
		}
		return string(a.Body), nil
	}
	body, err := call("/in")
	require.NoError(t, err)
	require.Equal(t, "password", body)
	for _, path := range []string{"/307", "/308"} {
		_, err = call(path)
		require.EqualError(t, err, "the server answered "+path[1:]+", a redirect to "+other.URL+"/in: a body is not sent to another host; if it is the right one, use its URL")
		require.False(t, exception.IsRetryable(err))
	}
	require.Zero(t, gets.Load())
	_, err = call("/303") // a GET without a body
	require.NoError(t, err)
	require.EqualValues(t, 1, gets.Load())
	require.Zero(t, others.Load())
}

func TestRetryAfterIsANumberOrADate(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC().Truncate(time.Second)
	date := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for text, want := range map[string]time.Duration{
		"7": 7 * time.Second, "0": 0, "-1": -1, "": -1, "soon": -1,
		date(time.Hour): time.Hour, date(-time.Hour): 0, now.Add(90 * time.Second).Format(time.RFC850): 90 * time.Second,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", date(0))
			w.Header().Set("Retry-After", text)
			w.WriteHeader(http.StatusServiceUnavailable)
		}))
		a, err := httpcall.Do(t.Context(), http.DefaultClient, httpcall.Request{URL: server.URL})
		server.Close()
		require.NoError(t, err)
		require.Equal(t, want >= 0, a.Asked, text)
		require.Equal(t, max(want, 0), a.Wait, text)
	}
}
