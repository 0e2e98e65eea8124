package console_test

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/access"
	"github.com/surfin-batch/surfin/internal/api"
	"github.com/surfin-batch/surfin/internal/assembly"
	"github.com/surfin-batch/surfin/internal/console"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/operator/catalog"
	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

const (
	operatorToken = "operator-0123456789"
	viewerToken   = "viewer-0123456789"
)

const (
	loadJob = `job: load
description: Loads numbers.
parameters:
  input: {type: path, default: in.csv, identifying: false}
  day: {type: date, default: 2026-11-22}
  note: {type: string, default: plain, identifying: false}
flow:
- step: table
  tasklet: {sql: create table if not exists loaded (id int)}
- step: load
  chunk: {size: 2, skip: {limit: 3}, reader: {csv: {path: "${params.input}", item: {id: int}}}, writer: {table: loaded}}
- decide: weekend
  choose:
  - {when: steps.load.read > 1000, next: {end: {exit: MANY}}}
  - next: report
- step: report
  tasklet: {sql: select 1}
`
	partsJob = `job: parts
flow:
- step: table
  tasklet: {sql: create table if not exists part (id int)}
- step: load
  partition: {by: {files: "in/*.csv"}, workers: 2}
  chunk: {reader: {csv: {path: "${part.path}", item: {id: int}}}, writer: {table: part}}
`
	failJob = `job: fails
parameters: {text: {type: string, default: plain}}
flow:
- step: says
  tasklet: {fail: {message: "${params.text}"}}
`
)

type scene struct {
	t   testing.TB
	url string
	dir string
	app *batch.App
	log *lockedBuffer
	at  string
	// vault is the application's.
	vault *secret.Vault
	// handler has the pages at the address, config is theirs.
	handler http.Handler
	config  console.Config
}

// newScene serves the console of real services with their jobs.
func newScene(t testing.TB, url string, change ...func(*console.Config)) *scene {
	t.Helper()
	s := &scene{t: t, url: url, dir: t.TempDir(), log: &lockedBuffer{}}
	for name, text := range map[string]string{
		"load.yaml": loadJob, "parts.yaml": partsJob, "fails.yaml": failJob, "wait.yaml": waitJob, "daily.yaml": dailyJob, "in.csv": "id\n1\n2\nx\n4\n", "bad.csv": "id\n1\n2\na\nb\nc\nd\n",
		"in/a.csv": "id\n1\n", "in/b.csv": "id\n2\n", "in/c.csv": "id\nmany\n",
	} {
		s.write(name, text)
	}
	set, err := settings.Load(settings.Source{Dir: t.TempDir(), Environ: []string{"DATABASE_URL=" + url, "SURFIN_AUTO_MIGRATE=true", "SURFIN_TASKS_SHELL=true"}})
	require.NoError(t, err)
	s.vault = set.Secrets
	s.app, err = batch.New(t.Context(), set, batch.Log(nil))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.app.Close(context.Background())) })
	require.NoError(t, s.app.Prepare(t.Context()))
	registry, err := assembly.NewRegistry()
	require.NoError(t, err)
	jobs, err := catalog.New(registry, nil, s.dir)
	require.NoError(t, err)
	config := console.Config{Service: s.app.Service, Jobs: jobs, Tasks: s.app.Tasks, Log: slog.New(slog.NewTextHandler(s.log, nil))}
	for _, f := range change {
		f(&config)
	}
	s.handler, err = api.New(api.Config{
		Service: config.Service, Jobs: config.Jobs, Tasks: config.Tasks, Clients: clients(), Rate: 1e6, Log: config.Log,
		Pages: func(guard *access.Guard, operations http.Handler) (http.Handler, error) {
			config.Operations = operations
			return console.New(guard, config)
		},
	})
	require.NoError(t, err)
	s.config = config
	server := httptest.NewServer(s.handler)
	t.Cleanup(server.Close)
	s.at = server.URL
	return s
}

func (s *scene) write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	require.NoError(s.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(s.t, os.WriteFile(path, []byte(text), 0o600))
}

func (s *scene) run(job string, params map[string]string) core.JobExecutionID {
	s.t.Helper()
	e, err := s.app.Run(s.t.Context(), runRequest(filepath.Join(s.dir, job+".yaml"), params))
	require.NoError(s.t, err)
	return e.ID
}

func runRequest(file string, params map[string]string) operator.RunRequest {
	return operator.RunRequest{File: file, Params: params}
}

type answer struct {
	t      testing.TB
	path   string
	status int
	header http.Header
	text   string
}

// get asks as the operator. headers are names and values.
func (s *scene) get(path string, headers ...string) answer {
	s.t.Helper()
	return s.call(operatorToken, http.MethodGet, path, headers...)
}

func (s *scene) call(token, method, path string, headers ...string) answer {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.at+path, nil)
	require.NoError(s.t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return s.send(r, headers)
}

// send sends a request with further headers: names and values.
func (s *scene) send(r *http.Request, headers []string) answer {
	s.t.Helper()
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	got, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(s.t, err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	require.NoError(s.t, err)
	return answer{s.t, r.URL.RequestURI(), got.StatusCode, got.Header, string(text)}
}

func (a answer) is(status int) answer {
	a.t.Helper()
	require.Equal(a.t, status, a.status, "%s\n%s", a.path, a.text)
	return a
}

func (a answer) says(texts ...string) answer {
	a.t.Helper()
	for _, text := range texts {
		require.Contains(a.t, a.text, text, a.path)
	}
	return a
}

// clean checks that it is a page as every page must be: well-formed, with a title and one heading, with
// nothing that the policy forbids, and with links to nowhere else.
func (a answer) clean() answer {
	a.t.Helper()
	require.Equal(a.t, "text/html; charset=utf-8", a.header.Get("Content-Type"), a.path)
	require.Equal(a.t, policy, a.header.Get("Content-Security-Policy"), a.path)
	require.Equal(a.t, "no-store", a.header.Get("Cache-Control"), a.path)
	require.Equal(a.t, "nosniff", a.header.Get("X-Content-Type-Options"), a.path)
	require.Equal(a.t, "no-referrer", a.header.Get("Referrer-Policy"), a.path)
	counts := wellFormed(a.t, a.path, a.text)
	require.Equal(a.t, 1, counts["h1"], a.path)
	require.NotContains(a.t, a.text, "ZgotmplZ", a.path)
	return a
}

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// wellFormed walks over the tags, and counts them.
func wellFormed(t testing.TB, path, page string) map[string]int {
	t.Helper()
	empty := strings.Fields("area base br col embed hr img input link meta rect path use source track wbr option")
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.Entity = false, xml.HTMLEntity
	counts, open := map[string]int{}, []string(nil)
	for {
		token, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err, "%s\n%s", path, page)
		switch token := token.(type) {
		case xml.StartElement:
			name := token.Name.Local
			counts[name]++
			checkAttributes(t, path, name, token.Attr)
			if !slices.Contains(empty, name) {
				open = append(open, name)
			}
		case xml.EndElement:
			if slices.Contains(empty, token.Name.Local) {
				continue
			}
			require.NotEmpty(t, open, "%s: </%s>", path, token.Name.Local)
			require.Equal(t, open[len(open)-1], token.Name.Local, "%s\n%s", path, page)
			open = open[:len(open)-1]
		case xml.Comment:
			require.Fail(t, "a comment", path)
		}
	}
	require.Empty(t, open, path)
	return counts
}

func checkAttributes(t testing.TB, path, name string, attributes []xml.Attr) {
	t.Helper()
	sources := 0
	for _, a := range attributes {
		require.False(t, strings.HasPrefix(a.Name.Local, "on"), "%s: <%s %s>", path, name, a.Name.Local)
		switch a.Name.Local {
		case "style":
			require.Fail(t, "a style attribute", "%s: <%s>", path, name)
		case "src":
			sources++
			fallthrough
		case "href", "action":
			require.Regexp(t, `^(/[^/\\]|/$|#|\?|$)`, a.Value, "%s: <%s>", path, name)
		}
	}
	if name == "script" {
		require.Equal(t, 1, sources, path)
	}
	if name == "style" && strings.Contains(path, "/report.html") { // an attachment
		return
	}
	require.NotContains(t, []string{"iframe", "object", "embed", "base", "style"}, name, path)
}

// plain is the text of a page without its tags.
func plain(page string) string {
	return strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page, " ")), " ")
}

type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// raw is a value as JSON.
func raw(t testing.TB, value any) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return text
}
