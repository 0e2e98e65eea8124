package console_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/access"
	"github.com/surfin-batch/surfin/internal/console"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// filled is a scene with something on every page, and a path of each.
func filled(t testing.TB, url string, change ...func(*console.Config)) (s *scene, paths []string) {
	t.Helper()
	s = newScene(t, url, change...)
	id := text(s.run("load", nil))
	s.run("parts", nil)
	accepted, err := s.app.Tasks.Submit(t.Context(), task.Submission{Title: "one", Tasks: []task.Spec{{Type: "shell", Payload: raw(t, map[string]any{"command": "echo x"})}}})
	require.NoError(t, err)
	values := strings.NewReplacer("{execution}", id, "{job}", "load", "{skip}", "1", "{task}", text64(int64(accepted.Tasks[0])), "{group}", text64(int64(accepted.Group)), "{$}", "")
	for _, pattern := range slices.Concat(console.Patterns(), console.Downloads()) {
		paths = append(paths, values.Replace(pattern))
	}
	return s, paths
}

// caller sends requests, and knows their answers.
type caller struct {
	name    string
	headers []string
	// shown means that a page is shown to the caller.
	shown bool
}

// Rules AP7 to AP9.
func TestNoPageIsShownToStrangersAndNoneChangesAnything(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, address string) {
		s, paths := filled(t, address)
		callers := s.callers(t)
		before := s.everything()
		for k, c := range append(callers, caller{"an operator", []string{"Cookie", s.session(operatorToken)}, true}) {
			for i, path := range append(paths, "/unknown", "/executions/1/unknown") {
				s.meets(c, path, i+k)
			}
		}
		require.Equal(t, before, s.everything())
	})
}

// callers may not change anything, at a door that is open from now on.
func (s *scene) callers(t *testing.T) []caller {
	t.Helper()
	proxy := access.Proxy{From: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}, UserHeader: "X-Forwarded-User", GroupsHeader: "X-Forwarded-Groups", Operators: []string{"anna"}}
	own := s.door(t, access.Config{Clients: clients(), Proxy: proxy})
	s.at = s.door(t, access.Config{Clients: []settings.Client{{Name: "anna", Role: settings.Operator, Token: "changed-0123456789"}}})
	foreign := s.session("changed-0123456789")
	s.at = s.door(t, access.Config{Clients: clients(), Now: func() time.Time { return time.Now().Add(-13 * time.Hour) }})
	old := s.session(operatorToken)
	s.at = own
	anna, wall := s.session(operatorToken), s.session(viewerToken)
	return []caller{
		{"nobody", nil, false}, {"an empty cookie", []string{"Cookie", "surfin_session="}, false}, {"a forged cookie", []string{"Cookie", strings.Replace(wall, "wall", "anna", 1)}, false},
		{"a foreign cookie", []string{"Cookie", foreign}, false}, {"an old cookie", []string{"Cookie", old}, false}, {"a foreign token", []string{"Authorization", "Bearer changed-0123456789"}, false},
		{"a cookie and a wrong token", []string{"Cookie", anna, "Authorization", "Bearer changed-0123456789"}, false},
		{"the header of the proxy from elsewhere", []string{"X-Forwarded-User", "anna", "X-Forwarded-For", "10.1.2.3"}, false},
		{"a cookie and a header of the proxy", []string{"Cookie", anna, "X-Forwarded-Groups", "anna"}, false},
		{"a viewer", []string{"Cookie", wall}, true},
		{"another site that reads", []string{"Cookie", anna, "Origin", "https://evil.example.com"}, true},
		{"a page of another site", []string{"Cookie", anna, "Sec-Fetch-Site", "cross-site"}, true},
		{"a page of the same site", []string{"Cookie", anna, "Sec-Fetch-Site", "same-site"}, true},
		{"a page without an origin", []string{"Cookie", anna, "Origin", "null"}, true},
	}
}

// meets asks for a page in one of the ways of browsers, and tries to change it by one of the methods.
func (s *scene) meets(c caller, path string, turn int) {
	s.t.Helper()
	ways := [][]string{nil, {"HX-Request", "true"}, {"Accept", "text/html"}}
	got := s.call("", http.MethodGet, path, append(slices.Clone(c.headers), ways[turn%len(ways)]...)...)
	switch {
	case c.shown:
		require.Less(s.t, got.status, http.StatusInternalServerError, "%s: %s", c.name, path)
		require.NotEqual(s.t, http.StatusUnauthorized, got.status, "%s: %s", c.name, path)
	case got.status == http.StatusSeeOther:
		require.True(s.t, strings.HasPrefix(got.header.Get("Location"), "/login?next="), "%s: %s", c.name, path)
	default:
		require.Contains(s.t, []int{http.StatusUnauthorized, http.StatusForbidden}, got.status, "%s: %s", c.name, path)
		got.clean()
		for _, secret := range []string{"load", "in.csv", "echo", "parts.yaml", "anna</span>"} {
			require.NotContains(s.t, mainOf(got.text), secret, "%s: %s", c.name, path)
		}
	}
	if !c.shown {
		require.Empty(s.t, got.header.Values("Set-Cookie"), "%s: %s", c.name, path)
	}
	methods := []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch}
	got = s.call("", methods[turn%len(methods)], path, c.headers...)
	require.Contains(s.t, []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusMethodNotAllowed}, got.status, "%s: %s", c.name, path)
	require.True(s.t, c.shown || got.status != http.StatusMethodNotAllowed, "%s: %s", c.name, path)
}

// A browser of a year of clicks: it follows links, fills in forms and changes addresses, and always gets a
// page. The log of the test has the seed of a walk.
func TestARandomWalkMeetsPagesOnly(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	testdb.Each(t, func(t *testing.T, address string) {
		s, paths := filled(t, address)
		r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a walk
		at := "/"
		for range 300 {
			got := s.get(at)
			require.Less(t, got.status, http.StatusInternalServerError, "seed %d: %s\n%s", seed, at, s.log)
			if to := got.header.Get("Location"); to != "" {
				at = to
				continue
			}
			if !strings.HasPrefix(got.header.Get("Content-Type"), "text/html") {
				requireHarmless(t, got, "", false)
				at = "/"
				continue
			}
			got.clean()
			at = next(r, got, paths)
		}
		require.NotContains(t, s.log.String(), "level=ERROR")
	})
}

// next is a link of the page, a form of it with values, or an address with an odd value.
func next(r *rand.Rand, page answer, paths []string) string {
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	switch n := r.IntN(10); {
	case n < 5:
		var links []string
		for _, m := range regexp.MustCompile(`href="(/[^"]*)"`).FindAllStringSubmatch(mainOf(page.text), -1) {
			if !strings.HasPrefix(m[1], "/static/") {
				links = append(links, strings.NewReplacer("&amp;", "&", "&#43;", "+", "&#34;", "%22", "&#39;", "%27").Replace(m[1]))
			}
		}
		if len(links) > 0 {
			return pick(links)
		}
	case n < 8:
		u, err := url.Parse(page.path)
		if err != nil {
			break
		}
		values := u.Query()
		if names := fields(page.text); len(names) > 0 {
			values.Set(pick(names), pick(oddValues()))
		}
		return cmp.Or(u.Path, "/") + "?" + values.Encode()
	}
	return pick(paths)
}

// fields are the names of the values that a page asks for, and that pages have in links.
func fields(page string) []string {
	names := strings.Fields("tz theme before after since until ended_since ended_until statuses state job instance exit param text longer_than has actor worker count step element part order left phase with q act type topic level attempt limit group from zone window")
	for _, m := range regexp.MustCompile(`name="(\w+)"`).FindAllStringSubmatch(page, -1) {
		names = append(names, m[1])
	}
	return names
}

func oddValues() []string {
	return append([]string{
		"", "0", "1", "-1", "2", "9223372036854775807", "9223372036854775808", "1e9", "x", "true", "false", "null", "load", "lod", "FAILED", "COMPLETED,FAILED", "day=2026-11-22", "=", "a=b=c", "2026-11-22",
		"2026-11-22T00:00:00Z", "9999-12-31T23:59:59Z", "0000-01-01T00:00:00Z", "yesterday", "24h", "-5m", "Europe/Berlin", "../../etc/passwd", "server", "dark", "previous", "typical", "skips_left", "lost",
		"' or 1=1 --", "%", "_", "*", "[", "(", `\`, "\x00", "\xff\xfe", "ü€😀", strings.Repeat("a", 3000), "\r\nX: y", "duration", "number", "read", "error", "debug", "PENDING",
	}, payloads()[:60]...)
}

// FuzzPage asks for any address, with any query and cookie.
func FuzzPage(f *testing.F) {
	s, paths := filled(f, testdb.SQLite(f))
	for i, path := range paths {
		f.Add(path, "", "", i%2 == 0)
		for k, value := range oddValues() {
			if (i+k)%7 == 0 {
				names := fields("")
				f.Add(path, names[k%len(names)]+"="+url.QueryEscape(value), "surfin_tz="+value, i%2 == 0)
			}
		}
	}
	f.Fuzz(func(t *testing.T, path, query, cookie string, fragment bool) {
		r := &http.Request{
			Method: http.MethodGet, URL: &url.URL{Path: "/" + strings.TrimPrefix(path, "/"), RawQuery: query}, Host: "localhost", RemoteAddr: "127.0.0.1:1", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"Authorization": {"Bearer " + operatorToken}}, Body: http.NoBody,
		}
		if cookie != "" {
			r.Header["Cookie"] = []string{cookie}
		}
		if fragment {
			r.Header.Set("HX-Request", "true")
		}
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r.WithContext(context.WithoutCancel(t.Context())))
		got := answer{t, fmt.Sprintf("%q?%q", path, query), w.Code, w.Header(), w.Body.String()}
		require.Less(t, got.status, http.StatusInternalServerError, "%s\n%s", got.path, s.log)
		switch {
		case got.status >= 300 && got.status < 400:
			require.Regexp(t, `^(/[^/\\]|/$)`, got.header.Get("Location"))
		case strings.HasPrefix(r.URL.Path, "/static/"):
		default:
			requireHarmless(t, got, "", false)
		}
	})
}

// door opens the console with its sign-in for other clients, and returns its address.
func (s *scene) door(t testing.TB, config access.Config) string {
	t.Helper()
	config.Rate, config.Log = 1e6, s.config.Log
	pages, err := console.New(access.New(config), s.config)
	require.NoError(t, err)
	server := httptest.NewServer(pages)
	t.Cleanup(server.Close)
	return server.URL
}

func clients() []settings.Client {
	return []settings.Client{{Name: "anna", Role: settings.Operator, Token: operatorToken}, {Name: "wall", Role: settings.Viewer, Token: viewerToken}}
}

// session signs in with a token, and returns the cookie.
func (s *scene) session(token string) string {
	s.t.Helper()
	got := s.post("/login", url.Values{"token": {token}}.Encode())
	require.Equal(s.t, http.StatusSeeOther, got.status, got.text)
	value, _, _ := strings.Cut(got.header.Get("Set-Cookie"), ";")
	return value
}

func (s *scene) post(path, form string, headers ...string) answer {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.at+path, strings.NewReader(form))
	require.NoError(s.t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return s.send(r, headers)
}

// Every form that is sent is one of the sign-in: whatever is typed there, a page answers.
func TestHostileSignInsAreAnsweredByAPage(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t))
	s.at = s.door(t, access.Config{Clients: clients()})
	for _, payload := range append(payloads(), oddValues()...) {
		next := payload[:min(len(payload), 5000)]
		for _, form := range []string{url.Values{"token": {payload}, "next": {payload}}.Encode(), "token=" + payload, payload, "token=" + operatorToken + "&next=" + url.QueryEscape(payload)} {
			got := s.post("/login?next="+url.QueryEscape(next), form)
			require.Less(t, got.status, http.StatusInternalServerError)
			if to := got.header.Get("Location"); to != "" {
				require.Regexp(t, `^/([^/\\].*)?$`, to, "%q", payload)
				require.Regexp(t, `^surfin_session=anna\.`, got.header.Get("Set-Cookie"))
				continue
			}
			requireHarmless(t, got, "", false)
			require.Empty(t, got.header.Values("Set-Cookie"))
		}
		got := s.call("", http.MethodGet, "/login?code="+url.QueryEscape(next)+"&next="+url.QueryEscape(next))
		require.Less(t, got.status, http.StatusInternalServerError)
		requireHarmless(t, got, "", false)
		require.Less(t, s.post("/logout", payload, "Cookie", "surfin_session="+url.QueryEscape(next)).status, http.StatusInternalServerError)
	}
}

// everything is the whole history, but for the acts of signing in.
func (s *scene) everything() string {
	s.t.Helper()
	db := s.database()
	var all strings.Builder
	for _, table := range []string{
		"job_instance", "job_execution", "job_execution_param", "step_execution", "skipped_item", "flow_visit", "client_request", "task_group", "task", "task_attempt", "task_audit", "setting", "job_definition", "event", "worker",
		"(select * from surfin_audit where act not like 'sign %') as audit",
	} {
		if !strings.HasPrefix(table, "(") {
			table = "surfin_" + table
		}
		rows, err := db.QueryContext(s.t.Context(), "select * from "+table+" order by 1, 2, 3")
		require.NoError(s.t, err)
		columns, err := rows.Columns()
		require.NoError(s.t, err)
		for rows.Next() {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			require.NoError(s.t, rows.Scan(values...))
			for i, v := range values {
				fmt.Fprint(&all, columns[i], "=", *v.(*any), "|")
			}
			all.WriteByte('\n')
		}
		require.NoError(s.t, rows.Err())
		require.NoError(s.t, rows.Close())
	}
	return all.String()
}

// mainOf is a page without its frame, which has the names of all pages.
func mainOf(page string) string {
	_, main, found := strings.Cut(page, "<main")
	if !found {
		return page
	}
	main, _, _ = strings.Cut(main, "</main>")
	return main
}
