package access_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/access"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

const (
	operatorToken = "operator-0123456789"
	viewerToken   = "viewer-0123456789"
)

func clients() []settings.Client {
	return []settings.Client{
		{Name: "anna", Role: settings.Operator, Token: operatorToken}, {Name: "wall", Role: settings.Viewer, Token: viewerToken},
	}
}

// house is a server with one room, which answers with the caller, and panics at /panic.
type house struct {
	t   *testing.T
	url string
	log *bytes.Buffer
}

func open(t *testing.T, config access.Config, public ...string) *house {
	t.Helper()
	h := &house{t: t, log: &bytes.Buffer{}}
	config.Log = slog.New(slog.NewTextHandler(h.log, nil))
	if config.Rate == 0 {
		config.Rate = 1000
	}
	server := httptest.NewServer(access.New(config).Protect(access.Room{
		Name: "the room",
		Enter: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/panic":
				panic("oh")
			case "/abort":
				panic(http.ErrAbortHandler)
			}
			if _, err := io.ReadAll(r.Body); err != nil {
				http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
				return
			}
			c := access.CallerOf(r.Context())
			_, _ = fmt.Fprintf(w, "%s %s", c.Name, c.Role) //nolint:errcheck // the client has gone
		}),
		Refuse: func(w http.ResponseWriter, _ *http.Request, refused *access.Refusal) {
			refused.SetRetryAfter(w.Header())
			http.Error(w, refused.Text, refused.Status)
		},
		Open: func(r *http.Request) bool {
			for _, path := range public {
				if r.URL.Path == path {
					return true
				}
			}
			return false
		},
	}))
	t.Cleanup(server.Close)
	h.url = server.URL
	return h
}

type response struct {
	t      *testing.T
	status int
	text   string
	header http.Header
}

// call sends a request with a bearer token, unless it is empty. headers are names and values.
func (h *house) call(token, method, path, body string, headers ...string) response {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), method, h.url+path, strings.NewReader(body))
	require.NoError(h.t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
	}
	got, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(h.t, err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	require.NoError(h.t, err)
	return response{h.t, got.StatusCode, strings.TrimSpace(string(text)), got.Header}
}

func (r response) is(status int, text string) response {
	r.t.Helper()
	require.Equal(r.t, status, r.status, r.text)
	require.Contains(r.t, r.text, text)
	return r
}

func TestARoomLearnsItsCaller(t *testing.T) {
	t.Parallel()
	h := open(t, access.Config{Clients: clients()}, "/login")
	h.call(operatorToken, "POST", "/", "").is(200, "anna operator")
	h.call(viewerToken, "GET", "/", "").is(200, "wall viewer")
	h.call(viewerToken, "POST", "/", "").is(403, "client wall is a viewer")
	h.call("", "GET", "/", "").is(401, "a token is needed")
	h.call("", "GET", "/", "", "Host", "evil.example.com").is(401, "a token is needed")
	h.call("wrong-0123456789", "GET", "/", "").is(401, "belong to no client")
	require.Empty(t, h.log.String())
}

func TestWithoutClientsThisMachineReads(t *testing.T) {
	t.Parallel()
	h := open(t, access.Config{}, "/login")
	h.call("", "GET", "/", "").is(200, "viewer")
	h.call("", "HEAD", "/", "").is(200, "")
	h.call("", "POST", "/", "").is(401, "api.operator_tokens.NAME")
	h.call("", "GET", "/", "", "Host", "evil.example.com").is(403, "localhost")
	h.call("", "GET", "/login", "", "Host", "evil.example.com").is(403, "localhost")
	h.call(operatorToken, "GET", "/", "").is(401, "read-only")
}

func TestAnOpenRequestNeedsNoClientAndHasEveryOtherBound(t *testing.T) {
	t.Parallel()
	now := time.Now()
	h := open(t, access.Config{Clients: clients(), Rate: 4, Now: func() time.Time { return now }}, "/login")
	h.call("", "POST", "/login", "token=x").is(200, "")
	h.call(viewerToken, "POST", "/login", "").is(200, "wall viewer")
	h.call("", "POST", "/login", "", "Origin", "https://evil.example.com").is(403, "another site")
	h.call("", "GET", "/login?a=%00", "").is(400, "NUL")
	h.call("", "POST", "/login", strings.Repeat("x", access.MaxBody+1)).is(413, "bytes")
	for range 3 {
		h.call("wrong-0123456789", "GET", "/login", "").is(200, "")
	}
	got := h.call("", "GET", "/login", "").is(429, "address 127.0.0.1: more than 4 requests a second")
	require.Equal(t, "1", got.header.Get("Retry-After"))
	h.call(viewerToken, "GET", "/", "").is(200, "")
}

func TestAStoppingServerChangesNothing(t *testing.T) {
	t.Parallel()
	stopping := make(chan struct{})
	h := open(t, access.Config{Clients: clients(), Stopping: stopping})
	h.call(operatorToken, "POST", "/", "").is(200, "")
	close(stopping)
	got := h.call(operatorToken, "POST", "/", "").is(503, "the server is stopping")
	require.Equal(t, "5", got.header.Get("Retry-After"))
	h.call(operatorToken, "GET", "/", "").is(200, "")
}

func TestAPanicIsLoggedAndRefused(t *testing.T) {
	t.Parallel()
	h := open(t, access.Config{Clients: clients()})
	h.call(operatorToken, "GET", "/panic", "").is(500, "see its log")
	require.Contains(t, h.log.String(), "a request of the room panicked")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+"/abort", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+operatorToken)
	_, err = http.DefaultTransport.RoundTrip(r) //nolint:bodyclose // there is none
	require.True(t, errors.Is(err, io.EOF), "%v", err)
}
