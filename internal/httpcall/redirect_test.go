package httpcall_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/httpcall"
)

// A redirect within the host keeps the headers, one to another host has none of them.
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
