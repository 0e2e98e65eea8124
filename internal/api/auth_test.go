package api_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/access"
	"github.com/surfin-batch/surfin/internal/api"
	"github.com/surfin-batch/surfin/internal/testdb"
)

const (
	deadline = 30 * time.Second
)

func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t)).serve()
	for _, c := range []struct {
		header    string
		read, run int
	}{
		{"", 401, 401},
		{"Bearer " + operatorToken, 200, 422},
		{"bearer " + operatorToken, 200, 422},
		{"Bearer " + viewerToken, 200, 403},
		{"Bearer " + operatorToken + "x", 401, 401},
		{"Bearer ", 401, 401},
		{"Bearer", 401, 401},
		{operatorToken, 401, 401},
		{"Digest " + operatorToken, 401, 401},
		{basic("anna", operatorToken), 200, 422},
		{basic("wall", viewerToken), 200, 403},
		{basic("wall", operatorToken), 401, 401},
		{basic("anna", ""), 401, 401},
		{basic("", operatorToken), 401, 401},
		{"Basic %%%", 401, 401},
	} {
		var got *reply
		for path, want := range map[string]int{"/v1/executions": c.read, "/openapi.json": c.read, "/v1/jobs/load/run": c.run} {
			if path == "/v1/jobs/load/run" {
				got = s.as("", "POST", path, `{"params": {"factor": 0}}`, "Authorization", c.header).is(want)
			} else {
				got = s.as("", "GET", path, nil, "Authorization", c.header).is(want)
			}
			if want == 401 {
				require.Len(t, got.header.Values("WWW-Authenticate"), 2)
			}
			require.NotContains(t, got.text, operatorToken)
		}
	}
	require.Empty(t, s.executions())
	s.as(viewerToken, "GET", "/v1/me", nil).is(200).says(`"client":"wall"`, `"role":"viewer"`)
	s.as(operatorToken, "GET", "/v1/me", nil).is(200).says(`"client":"anna"`, `"role":"operator"`)
}

func basic(user, password string) string {
	r, err := http.NewRequest(http.MethodGet, "http://localhost", nil) //nolint:noctx // for its header
	if err != nil {
		panic(err)
	}
	r.SetBasicAuth(user, password)
	return r.Header.Get("Authorization")
}

func TestAServerWithoutTokensIsReadFromThisMachineAndChangesNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t)).serve(func(c *api.Config) { c.Clients = nil })
	s.as("", "GET", "/v1/executions", nil).is(200)
	s.as("", "POST", "/v1/jobs/load/run", nil).is(401).says("api.operator_tokens.NAME")
	s.as(operatorToken, "POST", "/v1/recover", nil).is(401)
	rebound, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/v1/executions", nil)
	require.NoError(t, err)
	rebound.Host = "evil.example.com"
	s.send(rebound).is(403).says("localhost")
	require.Empty(t, s.executions())
}

func TestWithoutTokensNoOtherAddressIsServed(t *testing.T) {
	t.Parallel()
	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0"} {
		_, err := access.Listen(t.Context(), address, nil)
		require.ErrorContains(t, err, "api.operator_tokens.NAME", address)
	}
	for _, address := range []string{"localhost:0", "127.0.0.1:0"} {
		at, err := access.Listen(t.Context(), address, nil)
		require.NoError(t, err)
		require.NoError(t, at.Close())
	}
	at, err := access.Listen(t.Context(), ":0", clients())
	require.NoError(t, err)
	require.NoError(t, at.Close())
}

func TestAPageOfAnotherSiteMayChangeNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t)).serve()
	s.call("POST", "/v1/recover", nil, "Sec-Fetch-Site", "cross-site").is(403)
	s.call("POST", "/v1/recover", nil, "Origin", "https://evil.example.com").is(403)
	s.call("POST", "/v1/recover", nil, "Sec-Fetch-Site", "same-origin").is(200)
	got := s.call("GET", "/v1/executions", nil, "Origin", "https://evil.example.com").is(200)
	require.Empty(t, got.header.Get("Access-Control-Allow-Origin"))
	s.call("OPTIONS", "/v1/executions", nil, "Origin", "https://evil.example.com", "Access-Control-Request-Method", "GET").is(405)
}

func TestAClientThatAsksTooOftenWaits(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := newScene(t, testdb.SQLite(t)).serve(func(c *api.Config) { c.Rate, c.Now = 3, func() time.Time { return now } })
	for range 3 {
		s.call("GET", "/v1/executions", nil).is(200)
		s.as("guessed-0123456789", "GET", "/v1/executions", nil).is(401)
	}
	require.Equal(t, "1", s.call("GET", "/v1/executions", nil).is(429).says("client anna: more than 3 requests a second").header.Get("Retry-After"))
	s.as("guessed-9876543210", "GET", "/v1/executions", nil).is(429)
	s.as(viewerToken, "GET", "/v1/executions", nil).is(200)
}
