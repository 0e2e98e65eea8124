package web_test

import (
	"bufio"
	"context"
	"errors"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
	"github.com/surfin-batch/surfin/pkg/batch/web"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

const at = "/admin/batch"

const hidden = "hidden-0123456789" // a secret

const nightly = `job: nightly
schedule: {cron: "0 3 * * *"}
flow: [{step: table, tasklet: {sql: create table night(id int)}}]
`

// scene is a service with its own server, sign-in and jobs.
type scene struct {
	t      *testing.T
	app    *batch.App
	broken atomic.Bool // billing fails
	server *http.Server
	host   string
}

func newScene(t *testing.T, database string, handler func(app *batch.App) (http.Handler, error)) *scene {
	t.Helper()
	s := &scene{t: t}
	set, err := settings.Load(settings.Source{Dir: t.TempDir(), Environ: []string{"DATABASE_URL=" + database, "SURFIN_AUTO_MIGRATE=true", "SURFIN_SECRET_KEY=" + hidden}})
	require.NoError(t, err)
	bill := func(context.Context, *batch.StepContribution) error {
		if s.broken.Load() {
			return errors.New("no paper")
		}
		return nil
	}
	billing := batch.NewJob("billing").Describe("Prints with "+hidden+".").Parameter(batch.Parameter{Name: "day", Type: "date", Default: "2026-11-20"}).Step("bill", batch.Do(bill))
	s.app, err = batch.New(t.Context(), set, batch.Log(nil), batch.Jobs(billing), batch.JobFiles(batch.Bytes("nightly", []byte(nightly))))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.app.Close(context.Background())) })
	require.NoError(t, s.app.Prepare(t.Context()))
	served, err := handler(s.app)
	require.NoError(t, err)
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.server, s.host = &http.Server{Handler: served, ReadHeaderTimeout: time.Minute}, "http://"+listener.Addr().String()
	ended := make(chan error, 1)
	go func() { ended <- s.server.Serve(listener) }()
	t.Cleanup(func() {
		require.NoError(t, s.server.Close())
		require.ErrorIs(t, <-ended, http.ErrServerClosed)
	})
	return s
}

type answer struct {
	t      *testing.T
	status int
	header http.Header
	text   string
}

// ask sends a request of a user: a form, if it has values.
func (s *scene) ask(user, path string, form url.Values, headers ...string) answer {
	s.t.Helper()
	r := s.request(user, path, form, headers...)
	got, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(s.t, err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	require.NoError(s.t, err)
	return answer{s.t, got.StatusCode, got.Header, string(text)}
}

func (s *scene) request(user, path string, form url.Values, headers ...string) *http.Request {
	s.t.Helper()
	method := http.MethodGet
	if form != nil {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.host+path, strings.NewReader(form.Encode()))
	require.NoError(s.t, err)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if user != "" {
		r.SetBasicAuth(user, "secret of "+user)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func (a answer) is(status int) answer {
	a.t.Helper()
	require.Equal(a.t, status, a.status, a.text)
	return a
}

func (a answer) says(texts ...string) answer {
	a.t.Helper()
	for _, text := range texts {
		require.Contains(a.t, a.text, text)
	}
	return a
}

// below checks that a page leads to pages and files of the console only, and that it is guarded as one.
func (a answer) below(base string) answer {
	a.t.Helper()
	for _, m := range regexp.MustCompile(` (?:href|src|action|hx-get|data-stream)="([^"]*)"`).FindAllStringSubmatch(a.text, -1) {
		require.Regexp(a.t, `^(#|$|`+base+`/)`, m[1])
	}
	require.Contains(a.t, a.header.Get("Content-Security-Policy"), "frame-ancestors 'none'")
	require.Contains(a.t, a.header.Get("Content-Security-Policy"), "default-src 'none'")
	require.Equal(a.t, "nosniff", a.header.Get("X-Content-Type-Options"))
	require.Equal(a.t, "no-store", a.header.Get("Cache-Control"))
	require.NotContains(a.t, a.text, "Sign out")
	return a
}

// form are the values of the form of a page.
func (a answer) form() url.Values {
	a.t.Helper()
	_, form, found := strings.Cut(a.text, `<form class="act"`)
	require.True(a.t, found, a.text)
	values := url.Values{}
	for _, tag := range regexp.MustCompile(`<input [^>]*>`).FindAllString(strings.Split(form, "</form>")[0], -1) {
		name, value := regexp.MustCompile(` name="([^"]*)"`).FindStringSubmatch(tag), regexp.MustCompile(` value="([^"]*)"`).FindStringSubmatch(tag)
		if name != nil && value != nil && (!strings.Contains(tag, "radio") && !strings.Contains(tag, "checkbox") || strings.Contains(tag, " checked")) {
			values.Set(name[1], html.UnescapeString(value[1]))
		}
	}
	return values
}

// started waits for the execution to which an act leads.
func (s *scene) started(a answer, base string, status core.Status) string {
	s.t.Helper()
	number, is := strings.CutPrefix(a.is(http.StatusSeeOther).header.Get("Location"), base+"/executions/")
	require.True(s.t, is, a.header)
	id, err := strconv.ParseInt(number, 10, 64)
	require.NoError(s.t, err)
	e, err := s.app.AwaitEnd(s.t.Context(), core.JobExecutionID(id))
	require.NoError(s.t, err)
	require.Equal(s.t, status, e.Status, e.Error)
	return base + "/executions/" + number
}

// Rule OP19.
func TestAJobIsRunAndRestartedInTheConsoleOfAService(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, database string) {
		t.Parallel()
		s := newScene(t, database, shop)
		s.ask("guest", "/", nil).is(http.StatusSeeOther)
		require.Equal(t, at+"/", s.ask("anna", at, nil).is(http.StatusTemporaryRedirect).header.Get("Location"))
		s.ask("anna", at+"/jobs", nil).is(http.StatusOK).below(at).says("billing", "nightly", `data-stream="`+at+`/v1/stream"`)

		require.NotContains(t, s.ask("anna", at+"/jobs/billing", nil).is(http.StatusOK).below(at).says("Prints with ").text, hidden)
		require.NotContains(t, s.ask("anna", at+"/v1/jobs/billing", nil).is(http.StatusOK).says("Prints with ").text, hidden)

		s.broken.Store(true)
		run := s.ask("anna", at+"/jobs/billing/run", nil).is(http.StatusOK).below(at).form()
		failed := s.started(s.ask("anna", at+"/jobs/billing/run", run), at, core.StatusFailed)
		require.Equal(t, failed, s.ask("anna", at+"/jobs/billing/run", run).is(http.StatusSeeOther).header.Get("Location"), "a double click")
		s.ask("anna", failed, nil).is(http.StatusOK).below(at).says("no paper", failed+"/restart")
		s.broken.Store(false)
		restart := s.ask("anna", failed+"/restart", nil).is(http.StatusOK).below(at).form()

		for name, refused := range map[string]answer{
			"a viewer":           s.ask("support", failed+"/restart", restart),
			"without a role":     s.ask("guest", failed+"/restart", restart),
			"another site":       s.ask("anna", failed+"/restart", restart, "Origin", "https://evil.example"),
			"a page of a site":   s.ask("anna", failed+"/restart", restart, "Sec-Fetch-Site", "cross-site"),
			"a viewer by API":    s.ask("support", at+"/v1"+strings.TrimPrefix(failed, at)+"/abandon", url.Values{}),
			"another site's API": s.ask("anna", at+"/v1/recover", url.Values{}, "Origin", "https://evil.example"),
		} {
			require.Equal(t, http.StatusForbidden, refused.status, "%s: %s", name, refused.text)
		}
		s.ask("", failed+"/restart", restart).is(http.StatusUnauthorized)
		require.NotContains(t, s.ask("support", failed, nil).is(http.StatusOK).below(at).says("read only, as support").text, "/restart")
		s.ask("support", failed+"/restart", nil).is(http.StatusForbidden).below(at)

		done := s.started(s.ask("anna", failed+"/restart", restart), at, core.StatusCompleted)
		require.NotEqual(t, failed, done)
		page, err := s.app.Acts(t.Context(), operator.ActsRequest{Actor: "anna"})
		require.NoError(t, err)
		require.Len(t, page.Acts, 2, "a run and a restart: %v", page.Acts)
		for _, act := range page.Acts {
			require.Equal(t, "anna", act.Actor)
		}
		s.ask("anna", at+"/audit", nil).is(http.StatusOK).below(at).says("anna")
	})
}

func TestUsersWithoutARoleSeeNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), shop)
	for _, path := range []string{"/", "/jobs", "/jobs/billing", "/executions", "/unknown", "/login", "/livez"} {
		got := s.ask("guest", at+path, nil).is(http.StatusForbidden).below(at).says("no access to its batch jobs")
		_, main, _ := strings.Cut(got.text, "<main")
		require.NotContains(t, main, "billing") // the frame has the address
	}
	require.NotContains(t, s.ask("guest", at+"/v1/jobs", nil).is(http.StatusForbidden).text, "billing")
	require.NotContains(t, s.ask("guest", at+"/v1/stream", nil).is(http.StatusForbidden).text, "listening")
	style := regexp.MustCompile(`href="([^"]*\.css)"`).FindStringSubmatch(s.ask("guest", at+"/", nil).text)
	s.ask("guest", style[1], nil).is(http.StatusOK)
}

func TestTheSignInOfSurfinIsNotMounted(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), shop)
	for _, path := range []string{"/login", "/logout", "/livez", "/readyz"} {
		s.ask("anna", at+path, nil).is(http.StatusNotFound).below(at)
		s.ask("anna", at+path, url.Values{}).is(http.StatusMethodNotAllowed)
	}
	s.ask("", at+"/jobs", nil, "Cookie", "surfin_session=anna.9999999999.x", "Authorization", "Bearer operator-0123456789").is(http.StatusUnauthorized)
	for range 200 { // no rate of ours
		s.ask("anna", at+"/v1/me", nil).is(http.StatusOK).says(`"client":"anna"`)
	}
}

func TestAServiceWithoutWorkersSaysThatNothingStarts(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), shop)
	_, err := s.app.Register(t.Context(), operator.RegisterRequest{Source: batch.Bytes("nightly", []byte(nightly))})
	require.NoError(t, err)
	_, err = s.app.Tasks.Submit(t.Context(), task.Submission{Title: "one", Tasks: []task.Spec{{Type: task.TypeJob, Payload: []byte(`{"job": "billing"}`)}}})
	require.NoError(t, err)
	s.ask("anna", at+"/workers", nil).is(http.StatusOK).below(at).says("No worker is alive")
	s.ask("support", at+"/schedules", nil).is(http.StatusOK).below(at).says("no worker is alive to start them")
	s.ask("support", at+"/tasks", nil).is(http.StatusOK).below(at).says("no worker is alive: the tasks wait until one is started")
}

// A router may have removed the path, and a handler around may hide parts of the answer.
func TestTheHandlerFitsTheRoutersOfOthers(t *testing.T) {
	t.Parallel()
	for name, mount := range map[string]func(console http.Handler) http.Handler{
		"whole paths":    func(c http.Handler) http.Handler { return c },
		"stripped paths": func(c http.Handler) http.Handler { return http.StripPrefix("/ops", c) },
		"a wrapped answer": func(c http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.ServeHTTP(flushing{w}, r) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, testdb.SQLite(t), func(app *batch.App) (http.Handler, error) {
				console, err := web.Handler(app, "/ops", operatorOf)
				return signIn(mount(console)), err
			})
			s.ask("anna", "/ops/", nil).is(http.StatusOK).below("/ops")
			run := s.ask("anna", "/ops/jobs/billing/run", nil).is(http.StatusOK).below("/ops").form()
			s.started(s.ask("anna", "/ops/jobs/billing/run", run), "/ops", core.StatusCompleted)
			s.listens("/ops")
		})
	}
	s := newScene(t, testdb.SQLite(t), func(app *batch.App) (http.Handler, error) {
		console, err := web.Handler(app, "/", operatorOf)
		return signIn(http.TimeoutHandler(console, time.Minute, "late")), err
	})
	s.ask("anna", "/jobs", nil).is(http.StatusOK).below("")
	s.ask("anna", "/v1/stream", nil).is(http.StatusNotImplemented).says("no live updates")
}

// flushing hides all of an answer except its flush.
type flushing struct{ http.ResponseWriter }

func (f flushing) Flush() { f.ResponseWriter.(http.Flusher).Flush() } //nolint:forcetypeassert // the server's

// listens reads the stream, which ends with the server.
func (s *scene) listens(base string) {
	s.t.Helper()
	got, err := http.DefaultTransport.RoundTrip(s.request("anna", base+"/v1/stream", nil))
	require.NoError(s.t, err)
	defer got.Body.Close()
	lines := bufio.NewScanner(got.Body)
	require.True(s.t, lines.Scan())
	require.Equal(s.t, ": listening", lines.Text())
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(s.t, s.server.Shutdown(ctx))
	for lines.Scan() {
		require.NotContains(s.t, lines.Text(), "error")
	}
}

func TestAWrongMountIsAnError(t *testing.T) {
	t.Parallel()
	app := &batch.App{Service: &operator.Service{}}
	for _, path := range []string{"admin", "/a//b", "/a/../b", "/{x}/", "/a?b", "//"} {
		_, err := web.Handler(app, path, operatorOf)
		require.ErrorContains(t, err, "not a path such as /admin/batch/", path)
	}
	_, err := web.Handler(nil, "/a/", operatorOf)
	require.ErrorContains(t, err, "needs an App")
	_, err = web.Handler(app, "/a/", nil)
	require.ErrorContains(t, err, "a function that returns the user")
}

func TestAnOddUserIsRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), shop)
	for name, role := range map[string]settings.Role{"": settings.Operator, "a\nb": settings.Operator, strings.Repeat("a", 201): settings.Viewer, "\xff": settings.Viewer, "anna": "admin"} {
		handler, err := web.Handler(s.app, "/", func(*http.Request) (string, settings.Role) { return name, role })
		require.NoError(t, err)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/me", nil))
		require.Equal(t, http.StatusForbidden, w.Code, "%q", name)
	}
}
