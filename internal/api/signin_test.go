package api_test

import (
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/access"
	"github.com/surfin-batch/surfin/internal/api"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// signIns are the pages of a server that has no others.
func signIns(c *api.Config) {
	c.Pages = func(guard *access.Guard, _ http.Handler) (http.Handler, error) { return guard.SignIns(signInText), nil }
}

func signInText(w http.ResponseWriter, _ *http.Request, s access.SignIn) {
	w.WriteHeader(s.Status)
	_, _ = io.WriteString(w, "sign in "+s.Wrong) //nolint:errcheck // the client has gone
}

// session signs in with a token, and returns the cookie.
func (s *server) session(token string) string {
	s.t.Helper()
	got := s.as("", "POST", "/login", url.Values{"token": {token}}.Encode(), "Content-Type", "application/x-www-form-urlencoded")
	require.Equal(s.t, http.StatusSeeOther, got.status, got.text)
	value, _, _ := strings.Cut(got.header.Get("Set-Cookie"), ";")
	return value
}

// Rule AP7.
func TestSigningInAndOutIsInTheAudit(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url).serve(signIns)
		session := s.session(viewerToken)
		s.as("", "GET", "/v1/me", nil, "Cookie", session).is(200).says(`"client":"wall"`, `"role":"viewer"`, `"until":"`)
		s.as("", "POST", "/v1/jobs/load/run", nil, "Cookie", session).is(403)
		require.Equal(t, http.StatusSeeOther, s.as("", "POST", "/logout", nil, "Cookie", session).status)
		anna := s.session(operatorToken)
		id := s.as("", "POST", "/v1/jobs/load/run", nil, "Cookie", anna).acted(true)
		s.over(id, core.StatusCompleted)
		s.as("", "GET", "/v1/audit", nil, "Cookie", anna).is(200).says(`"act":"sign in","actor":"API client wall"`, `"act":"sign out","actor":"API client wall"`,
			`"act":"sign in","actor":"API client anna"`, `"act":"run","actor":"API client anna"`, `"detail":"from 127.0.0.1"`)
		s.as("", "GET", "/v1/audit?act=sign%20in&actor=wall", nil, "Cookie", anna).is(200).says(`"act":"sign in"`)
	})
}

// Rule AP8.
func TestALinkOfAServerWithoutTokensMakesAnOperator(t *testing.T) {
	t.Parallel()
	links := make(chan string, 1)
	s := newScene(t, testdb.SQLite(t)).serve(signIns, func(c *api.Config) {
		c.Clients, c.Announce = nil, func(guard *access.Guard) { links <- guard.NewLink() }
	})
	link := <-links
	got := s.as("", "GET", link, nil)
	require.Equal(t, http.StatusSeeOther, got.status, got.text)
	session, _, _ := strings.Cut(got.header.Get("Set-Cookie"), ";")
	s.as("", "POST", "/v1/jobs/load/run", nil).is(401)
	s.over(s.as("", "POST", "/v1/jobs/load/run", nil, "Cookie", session).acted(true), core.StatusCompleted)
	s.as("", "GET", "/v1/audit", nil, "Cookie", session).is(200).says(`"act":"run","actor":"API client link"`)
	require.Equal(t, http.StatusForbidden, s.as("", "GET", link, nil).status)
}

func TestAServerBelowAPathOfItsHost(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t)).serve(func(c *api.Config) {
		c.BasePath = "/surfin"
		c.Pages = func(guard *access.Guard, _ http.Handler) (http.Handler, error) {
			pages := http.NewServeMux()
			pages.Handle("/login", guard.SignIns(signInText))
			pages.Handle("/", guard.Protect(access.Room{
				Enter:  http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "page "+r.URL.Path) }),
				Refuse: func(w http.ResponseWriter, r *http.Request, refused *access.Refusal) { guard.ToSignIn(w, r, refused) },
			}))
			return pages, nil
		}
	})
	for _, prefix := range []string{"/surfin", ""} { // a proxy may remove it
		require.Equal(t, 200, s.call("GET", prefix+"/v1/executions", nil).status)
		require.Equal(t, 200, s.as("", "GET", prefix+"/livez", nil).status)
		require.Equal(t, "page /jobs", s.call("GET", prefix+"/jobs", nil).text)
		require.Contains(t, s.as("", "GET", prefix+"/login", nil).text, "sign in")
	}
	require.Equal(t, "/surfin/login?next=%2Fjobs", s.as("", "GET", "/surfin/jobs", nil, "Accept", "text/html").header.Get("Location"))
	require.Equal(t, "page /surfinx/v1", s.call("GET", "/surfinx/v1", nil).text)
	require.Equal(t, "/surfin/", s.call("GET", "/surfin", nil).header.Get("Location"))
}

// Rules AP7 to AP9.
func TestWithoutASignInNothingIsShownAndNothingChanges(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		scene := newScene(t, url)
		proxy := access.Proxy{From: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}, UserHeader: "X-Forwarded-User", GroupsHeader: "X-Forwarded-Groups", Operators: []string{"anna"}}
		s := scene.serve(signIns, func(c *api.Config) { c.Proxy = proxy })
		s.over(s.call("POST", "/v1/jobs/load/run", nil).acted(true), core.StatusCompleted)
		s.call("POST", "/v1/tasks", `{"type": "http_request", "delay": "1h"}`).is(200)
		foreign := newScene(t, testdb.SQLite(t)).serve(signIns, func(c *api.Config) {
			c.Clients = []settings.Client{{Name: "anna", Role: settings.Operator, Token: "changed-0123456789"}}
		})
		later := newScene(t, testdb.SQLite(t)).serve(signIns, func(c *api.Config) { c.Now = func() time.Time { return time.Now().Add(-13 * time.Hour) } })
		wall, anna := s.session(viewerToken), s.session(operatorToken)
		db, err := scene.provider.Database(tx.Default)
		require.NoError(t, err)
		history := &odd{scene, nil, db}
		before := history.everything(t)
		unknown := map[string][]string{
			"nobody": nil, "an empty cookie": {"Cookie", "surfin_session="}, "a forged cookie": {"Cookie", strings.Replace(wall, "wall", "anna", 1)},
			"a foreign cookie": {"Cookie", foreign.session("changed-0123456789")}, "an old cookie": {"Cookie", later.session(operatorToken)},
			"a foreign token": {"Authorization", "Bearer changed-0123456789"}, "a foreign header": {"X-Forwarded-User", "anna", "X-Forwarded-For", "10.1.2.3"},
			"a cookie and a foreign header": {"Cookie", anna, "X-Forwarded-Groups", "anna"}, "a cookie and a wrong token": {"Cookie", anna, "Authorization", "Bearer changed-0123456789"},
		}
		all, err := operations()
		require.NoError(t, err)
		all = append(all, described{method: "GET", path: "/openapi.json"}, described{method: "GET", path: "/v1/stream"}, described{method: "GET", path: "/v1/unknown"}, described{method: "DELETE", path: "/v1/executions/1"})
		for _, d := range all {
			path := strings.NewReplacer("{execution}", "1", "{job}", "load", "{name}", "history_retention_days", "{task}", "1", "{group}", "1", "{skip}", "1", "{event}", "1").Replace(d.path)
			for who, headers := range unknown {
				got := s.as("", d.method, path, nil, headers...)
				require.Contains(t, []int{401, 403}, got.status, "%s: %s %s: %s", who, d.method, path, got.text)
				require.NotContains(t, got.text, "load", "%s: %s %s", who, d.method, path)
			}
			if d.method != http.MethodGet {
				s.as("", d.method, path, nil, "Cookie", wall).is(403)
				s.as("", d.method, path, nil, "Cookie", anna, "Origin", "https://evil.example.com").is(403)
				s.as("", d.method, path, nil, "Cookie", anna, "Sec-Fetch-Site", "cross-site").is(403)
				s.as("", d.method, path, nil, "Cookie", anna, "Sec-Fetch-Site", "same-site").is(403)
			}
		}
		require.Equal(t, before, history.everything(t))
	})
}
