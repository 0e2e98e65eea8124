package access_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/access"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// rooms are a server with a room at / and the sign-in.
type rooms struct {
	*house
	guard *access.Guard
	clock time.Time
	mu    sync.Mutex
	notes []string
	away  bool
}

func openRooms(t *testing.T, config access.Config) *rooms {
	t.Helper()
	s := &rooms{house: &house{t: t}, clock: time.Now()}
	config.Now = func() time.Time { return s.clock }
	if config.Rate == 0 {
		config.Rate = 1000
	}
	config.Note = func(_ context.Context, in bool, client, address string) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.away {
			return errors.New("away")
		}
		s.notes = append(s.notes, fmt.Sprint(in, " ", client, " ", address))
		return nil
	}
	s.guard = access.New(config)
	signIns := s.guard.SignIns(func(w http.ResponseWriter, _ *http.Request, s access.SignIn) {
		w.WriteHeader(s.Status)
		_, _ = fmt.Fprintf(w, "%s next %s over %t again %s", s.Wrong, s.Next, s.Over, s.RetryAfter) //nolint:errcheck // the client has gone
	})
	room := s.guard.Protect(access.Room{
		Name: "the room",
		Enter: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c := access.CallerOf(r.Context())
			_, _ = fmt.Fprintf(w, "%s %s", c.Name, c.Role) //nolint:errcheck // the client has gone
		}),
		Refuse: func(w http.ResponseWriter, r *http.Request, refused *access.Refusal) {
			if !s.guard.ToSignIn(w, r, refused) {
				refused.SetChallenge(w.Header(), r)
				http.Error(w, refused.Text, refused.Status)
			}
		},
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/login" || r.URL.Path == "/logout" {
			signIns.ServeHTTP(w, r)
			return
		}
		room.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *rooms) signIn(token string, headers ...string) response {
	s.t.Helper()
	form := url.Values{"token": {token}}.Encode()
	return s.call("", "POST", "/login?next=%2Fjobs%3Fx%3D1", form, append([]string{"Content-Type", "application/x-www-form-urlencoded"}, headers...)...)
}

// session returns NAME=VALUE of the cookie.
func (r response) session() string {
	r.t.Helper()
	value, _, _ := strings.Cut(r.header.Get("Set-Cookie"), ";")
	require.Regexp(r.t, "^surfin_session=.+", value)
	return value
}

// Rule AP7.
func TestATokenSignsInAndOut(t *testing.T) {
	t.Parallel()
	s := openRooms(t, access.Config{Clients: clients()})
	in := s.signIn(operatorToken).is(303, "")
	require.Equal(t, "/jobs?x=1", in.header.Get("Location"))
	for _, part := range []string{"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"} {
		require.Contains(t, in.header.Get("Set-Cookie"), part)
	}
	require.NotContains(t, in.header.Get("Set-Cookie"), "Secure")
	require.Contains(t, s.signIn(operatorToken, "X-Forwarded-Proto", "https").header.Get("Set-Cookie"), "Secure")
	anna := in.session()
	wall := s.signIn(viewerToken).session()
	s.call("", "POST", "/", "", "Cookie", anna).is(200, "anna operator")
	s.call("", "GET", "/", "", "Cookie", wall).is(200, "wall viewer")
	s.call("", "POST", "/", "", "Cookie", wall).is(403, "viewer")
	s.call("", "POST", "/", "", "Cookie", anna, "Origin", "https://evil.example.com").is(403, "another site")
	s.call("", "POST", "/login", "token="+operatorToken, "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "cross-site").is(403, "another site")
	s.call("wrong-0123456789", "GET", "/", "", "Cookie", anna).is(401, "belong to no client")
	out := s.call("", "POST", "/logout", "", "Cookie", anna).is(303, "")
	require.Contains(t, out.header.Get("Set-Cookie"), "Max-Age=0")
	require.Equal(t, []string{"true anna 127.0.0.1", "true anna 127.0.0.1", "true wall 127.0.0.1", "false anna 127.0.0.1"}, s.notes)
	s.away = true
	require.Empty(t, s.signIn(operatorToken).is(503, "cannot be noted in the audit: the database does not answer next /jobs?x=1 over false again 5s").header.Get("Set-Cookie"))
}

// Rule AP7.
func TestAForgedOldOrForeignSessionIsUnknown(t *testing.T) {
	t.Parallel()
	s := openRooms(t, access.Config{Clients: clients()})
	session := s.signIn(operatorToken).session()
	value := strings.TrimPrefix(session, "surfin_session=")
	name, rest, _ := strings.Cut(value, ".")
	end, signature, _ := strings.Cut(rest, ".")
	wall := strings.TrimPrefix(s.signIn(viewerToken).session(), "surfin_session=")
	another := openRooms(t, access.Config{Clients: []settings.Client{{Name: "anna", Role: settings.Operator, Token: "changed-0123456789"}}})
	foreign := strings.TrimPrefix(another.signIn("changed-0123456789").session(), "surfin_session=")
	for _, wrong := range []string{
		"", ".", "..", "...", value + "x", value[1:], "wall." + rest, name + ".99999999999." + signature, name + "." + end + "1." + signature, name + "." + end + ".", strings.Replace(wall, "wall", "anna", 1),
		foreign, strings.ToUpper(value), "link." + rest, name + "." + end + "." + signature + "=",
	} {
		s.call("", "GET", "/", "", "Cookie", "surfin_session="+wrong).is(401, "")
		s.call("", "POST", "/", "", "Cookie", "surfin_session="+wrong).is(401, "")
	}
	another.call("", "GET", "/", "", "Cookie", session).is(401, "the session is over")
	another.call("", "GET", "/login?next=/jobs", "", "Cookie", session).is(200, "next /jobs over true")
	s.call("", "GET", "/login?next=/jobs", "", "Cookie", session).is(200, "next /jobs over false")
	same := openRooms(t, access.Config{Clients: clients()[:1]})
	same.call("", "GET", "/", "", "Cookie", session).is(200, "anna operator")
	s.clock = s.clock.Add(access.SessionTime - time.Minute)
	s.call("", "GET", "/", "", "Cookie", session).is(200, "anna operator")
	s.clock = s.clock.Add(2 * time.Minute)
	s.call("", "GET", "/", "", "Cookie", session).is(401, "the session is over")
}

func TestUnknownTokensAreLimitedByAddress(t *testing.T) {
	t.Parallel()
	s := openRooms(t, access.Config{Clients: clients(), Rate: 4})
	s.signIn("wrong-0123456789").is(401, "belongs to no client")
	s.signIn("wrong-0123456789").is(401, "belongs to no client")
	s.signIn("wrong-0123456789").is(429, "more than 4 requests a second next /jobs?x=1")
	s.signIn(operatorToken).is(429, "")
	s.call(operatorToken, "GET", "/", "").is(200, "")
}

func TestABrowserIsSentToTheSignInAndBack(t *testing.T) {
	t.Parallel()
	s := openRooms(t, access.Config{Clients: clients(), Base: "/surfin"})
	got := s.call("", "GET", "/executions?job=a%20b", "", "Accept", "text/html").is(303, "")
	require.Equal(t, "/surfin/login?next=%2Fexecutions%3Fjob%3Da%2520b", got.header.Get("Location"))
	s.call("", "GET", "/executions", "", "Accept", "application/json").is(401, "")
	// A fragment, a stream, and a session that is over: the browser must not ask for a password.
	for _, header := range [][]string{{"Accept", "text/html", "HX-Request", "true"}, {"Accept", "text/event-stream"}, {"Cookie", "surfin_session=old"}} {
		got := s.call("", "GET", "/executions", "", header...).is(401, "")
		require.Equal(t, []string{`Bearer realm="surfin"`}, got.header.Values("WWW-Authenticate"), header)
	}
	require.Len(t, s.call("", "GET", "/executions", "").is(401, "a token is needed").header.Values("WWW-Authenticate"), 2)
	page := s.call("", "GET", "/login?next=/executions?job=a", "").is(200, "next /executions?job=a over false")
	require.Contains(t, page.header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'")
	for _, next := range []string{"", "//evil.example.com", "https://evil.example.com", `/\evil.example.com`, "javascript:alert(1)", "/login?next=/login", "/logout", "/\t/evil.example.com"} {
		form := url.Values{"token": {operatorToken}}.Encode()
		in := s.call("", "POST", "/login?next="+url.QueryEscape(next), form, "Content-Type", "application/x-www-form-urlencoded").is(303, "")
		require.Equal(t, "/surfin/", in.header.Get("Location"), next)
		require.Contains(t, in.header.Get("Set-Cookie"), "Path=/surfin/")
	}
	s.call("", "GET", "/logout", "").is(405, "")
}

// Rule AP8.
func TestALinkSignsInOnce(t *testing.T) {
	t.Parallel()
	s := openRooms(t, access.Config{})
	require.Empty(t, openRooms(t, access.Config{Clients: clients()}).guard.NewLink())
	link := s.guard.NewLink()
	s.call("", "GET", "/", "").is(200, "viewer")
	s.call("", "POST", "/", "").is(401, "read-only")
	s.call("", "GET", "/login?code=wrong", "").is(403, "the link was used")
	s.call("", "HEAD", link, "").is(200, "")
	s.call("", "GET", link, "", "Host", "evil.example.com").is(403, "localhost")
	session := s.call("", "GET", link, "").is(303, "").session()
	s.call("", "GET", link, "").is(403, "the link was used")
	s.call("", "POST", "/", "", "Cookie", session).is(200, "link operator")
	s.call("", "POST", "/", "", "Cookie", session, "Host", "evil.example.com").is(403, "localhost")
	s.call("", "POST", "/", "", "Cookie", session, "Origin", "https://evil.example.com").is(403, "another site")
	require.Equal(t, []string{"true link 127.0.0.1"}, s.notes)
	other := openRooms(t, access.Config{})
	other.call("", "GET", "/", "", "Cookie", session).is(200, "viewer")
	other.call("", "POST", "/", "", "Cookie", session).is(401, "read-only")
	other.call("", "GET", link, "").is(403, "the link was used")
	late := s.guard.NewLink()
	s.clock = s.clock.Add(10 * time.Minute)
	s.call("", "GET", late, "").is(403, "older than ten minutes")
}

// Rule AP8.
func TestALinkWorksAgainIfTheSignInCouldNotBeNoted(t *testing.T) {
	t.Parallel()
	s := openRooms(t, access.Config{})
	link := s.guard.NewLink()
	s.away = true
	s.call("", "GET", link, "").is(503, "cannot be noted")
	s.away = false
	s.call("", "GET", link, "").is(303, "")
	s.call("", "GET", link, "").is(403, "the link was used")

	link = s.guard.NewLink()
	s.away = true
	s.call("", "GET", link, "").is(503, "cannot be noted")
	s.away, s.clock = false, s.clock.Add(10*time.Minute)
	s.call("", "GET", link, "").is(403, "older than ten minutes")
}

func proxy(from string) access.Proxy {
	return access.Proxy{
		From: []netip.Prefix{netip.MustParsePrefix(from)}, UserHeader: "X-Forwarded-User", GroupsHeader: "Remote-Groups",
		Operators: []string{"anna", "@ops"}, Viewers: []string{"@all"},
	}
}

// Rule AP9.
func TestAProxySignsUsersIn(t *testing.T) {
	t.Parallel()
	s := openRooms(t, access.Config{Proxy: proxy("127.0.0.0/8"), Clients: clients()[1:]})
	user := func(method string, headers ...string) response { return s.call("", method, "/", "", headers...) }
	user("POST", "X-Forwarded-User", "anna").is(200, "anna operator")
	user("POST", "X-Forwarded-User", "bob@example.org", "Remote-Groups", "x, ops").is(200, "bob@example.org operator")
	user("GET", "X-Forwarded-User", "bob", "Remote-Groups", "all").is(200, "bob viewer")
	user("POST", "X-Forwarded-User", "bob", "Remote-Groups", "all").is(403, "viewer")
	user("GET", "X-Forwarded-User", "bob", "Remote-Groups", "anna,@ops").is(403, "neither an operator nor a viewer")
	user("GET", "X-Forwarded-User", "@ops").is(403, "neither")
	user("GET", "X-Forwarded-User", "b\xffb", "Remote-Groups", "all").is(403, "no plain name")
	user("GET", "X-Forwarded-User", strings.Repeat("b", 300), "Remote-Groups", "all").is(403, "no plain name")
	user("GET").is(401, "")
	user("GET", "X-Forwarded-User", "").is(401, "")
	s.call(viewerToken, "GET", "/", "").is(200, "wall viewer")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/", nil)
	require.NoError(t, err)
	r.Header["X-Forwarded-User"] = []string{"anna", "bob"}
	got, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, got.Body.Close())
	require.Equal(t, 403, got.StatusCode)
}

// Rule AP9.
func TestTheHeadersOfAProxyCountFromThereOnly(t *testing.T) {
	t.Parallel()
	s := openRooms(t, access.Config{Proxy: proxy("10.1.0.0/16"), Clients: clients()})
	s.call("", "GET", "/", "", "X-Forwarded-User", "anna").is(403, "only the proxy")
	s.call("", "GET", "/", "", "X-Forwarded-User", "anna", "X-Forwarded-For", "10.1.0.1").is(403, "only the proxy")
	s.call(operatorToken, "POST", "/", "", "Remote-Groups", "ops").is(403, "only the proxy")
	s.call(operatorToken, "POST", "/", "").is(200, "anna operator")
	without := openRooms(t, access.Config{Clients: clients()})
	without.call("", "GET", "/", "", "X-Forwarded-User", "anna").is(401, "a token is needed")
	alone := openRooms(t, access.Config{Proxy: proxy("10.1.0.0/16")})
	alone.call("", "GET", "/", "").is(401, "the proxy")
	require.Empty(t, alone.guard.NewLink())
}
