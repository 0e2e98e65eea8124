package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/access"
	"github.com/surfin-batch/surfin/internal/api"
	"github.com/surfin-batch/surfin/internal/assembly"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/operator/catalog"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

const (
	operatorToken = "operator-0123456789"
	viewerToken   = "viewer-0123456789"
)

func clients() []settings.Client {
	return []settings.Client{
		{Name: "anna", Role: settings.Operator, Token: operatorToken}, {Name: "wall", Role: settings.Viewer, Token: viewerToken},
	}
}

// The jobs of a scene. hold waits for scene.release; broken fails while its table is missing.
const (
	loadJob = `job: load
description: Loads numbers.
parameters:
  input: {type: path, default: in.csv}
  day: {type: date, default: 2026-11-22}
  factor: {type: int, default: 1, min: 1, max: 9, identifying: false}
flow:
- step: table
  tasklet: {sql: create table if not exists loaded (id int)}
- step: load
  chunk: {size: 2, skip: {limit: 5}, reader: {csv: {path: "${params.input}", item: {id: int}}}, writer: {table: loaded}}
`
	holdJob = `job: hold
parameters: {n: {type: int, default: 1}}
flow:
- {step: hold, tasklet: hold}
- {step: after, tasklet: {sql: select 1}}
`
	brokenJob = `job: broken
parameters: {big: {type: int, default: 0}, text: {type: string, default: ""}, exact: {type: float, default: 0}, yes: {type: bool, default: false}}
flow:
- {step: fails, tasklet: {sql: insert into missing values (1)}}
`
	nightlyJob = `job: nightly
incrementer: day
parameters: {day: {type: date, default: 2026-11-22}}
flow:
- {step: one, tasklet: {sql: select 1}}
`
)

type scene struct {
	t        testing.TB
	url      string
	dir      string
	release  func()        // lets hold continue
	holding  chan struct{} // has an entry for each hold that began
	asked    chan struct{} // closed when hold receives a stop request
	hold     fx.Option
	log      *lockedBuffer
	provider tx.Provider
}

func newScene(t testing.TB, url string) *scene {
	t.Helper()
	held := make(chan struct{})
	s := &scene{t: t, url: url, dir: t.TempDir(), release: sync.OnceFunc(func() { close(held) }), holding: make(chan struct{}, 100), asked: make(chan struct{}), log: &lockedBuffer{}}
	asked := sync.OnceFunc(func() { close(s.asked) })
	s.hold = batch.Tasklet("hold", func() batch.TaskletFunc {
		return func(ctx context.Context, c *batch.StepContribution) error {
			s.holding <- struct{}{}
			select {
			case <-c.Stop:
				asked()
			case <-held:
				return nil
			case <-ctx.Done():
			}
			select {
			case <-held:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}, batch.NoTransaction())
	for name, text := range map[string]string{
		"load.yaml": loadJob, "hold.yaml": holdJob, "broken.yaml": brokenJob, "nightly.yml": nightlyJob,
		"in.csv": "id\n1\n2\nx\n4\n", "README.md": "no job",
	} {
		s.write(name, text)
	}
	return s
}

func (s *scene) write(name, text string) {
	s.t.Helper()
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600))
}

type server struct {
	*scene
	url  string
	app  *batch.App
	stop func() // and waits until it has ended
}

func (s *scene) config(change ...func(*api.Config)) (api.Config, *batch.App) {
	s.t.Helper()
	set, err := settings.Load(settings.Source{Dir: s.t.TempDir(), Environ: []string{"DATABASE_URL=" + s.url, "SURFIN_AUTO_MIGRATE=true"}})
	require.NoError(s.t, err)
	app, err := batch.New(s.t.Context(), set, s.hold, batch.Log(nil), fx.Populate(&s.provider))
	require.NoError(s.t, err)
	s.t.Cleanup(func() {
		s.release()
		require.NoError(s.t, app.Close(context.Background()))
	})
	require.NoError(s.t, app.Prepare(s.t.Context()))
	registry, err := assembly.NewRegistry(s.hold)
	require.NoError(s.t, err)
	catalog, err := catalog.New(registry, nil, s.dir)
	require.NoError(s.t, err)
	config := api.Config{Service: app.Service, Jobs: catalog, Tasks: app.Tasks, Clients: clients(), Rate: 1e6, Log: slog.New(slog.NewTextHandler(s.log, nil))}
	for _, f := range change {
		f(&config)
	}
	return config, app
}

func (s *scene) serve(change ...func(*api.Config)) *server {
	s.t.Helper()
	config, app := s.config(change...)
	at, err := access.Listen(s.t.Context(), "127.0.0.1:0", config.Clients)
	require.NoError(s.t, err)
	stop, over := make(chan struct{}), make(chan error, 1)
	go func() { over <- api.Serve(context.Background(), stop, at, config) }()
	end := sync.OnceFunc(func() {
		close(stop)
		require.NoError(s.t, <-over)
	})
	s.t.Cleanup(func() {
		s.release()
		end()
	})
	return &server{scene: s, url: "http://" + at.Addr().String(), app: app, stop: end}
}

type reply struct {
	t      testing.TB
	what   string
	status int
	header http.Header
	text   string
	body   map[string]any
}

// call makes a request as the operator. body is nil, a text, or a value to convert to JSON. headers
// are names and values.
func (s *server) call(method, path string, body any, headers ...string) *reply {
	s.t.Helper()
	return s.as(operatorToken, method, path, body, headers...)
}

func (s *server) as(token, method, path string, body any, headers ...string) *reply {
	s.t.Helper()
	var text []byte
	switch b := body.(type) {
	case nil:
	case string:
		text = []byte(b)
	default:
		var err error
		text, err = json.Marshal(b)
		require.NoError(s.t, err)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, bytes.NewReader(text))
	require.NoError(s.t, err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return s.send(req)
}

func (s *server) send(req *http.Request) *reply {
	s.t.Helper()
	got, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(s.t, err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	require.NoError(s.t, err)
	r := &reply{t: s.t, what: req.Method + " " + req.URL.String(), status: got.StatusCode, header: got.Header, text: string(text)}
	if strings.HasSuffix(got.Header.Get("Content-Type"), "json") && len(text) > 0 {
		require.NoError(s.t, json.Unmarshal(text, &r.body), r.text)
	}
	if r.body != nil {
		requireDescribed(s.t, req.Method, req.URL.EscapedPath(), r.status, r.text)
	}
	return r
}

func (r *reply) is(status int) *reply {
	r.t.Helper()
	require.Equal(r.t, status, r.status, "%s\n%s", r.what, r.text)
	if status >= 400 {
		require.Equal(r.t, "application/problem+json", r.header.Get("Content-Type"), r.what)
		require.EqualValues(r.t, status, r.body["status"], r.text)
		require.NotEmpty(r.t, r.body["detail"], r.text)
	}
	return r
}

func (r *reply) says(texts ...string) *reply {
	r.t.Helper()
	for _, text := range texts {
		require.Contains(r.t, r.text, text, r.what)
	}
	return r
}

func (r *reply) acted(applied bool) core.JobExecutionID {
	r.t.Helper()
	r.is(http.StatusOK)
	require.Equal(r.t, applied, r.body["applied"], r.text)
	require.NotEmpty(r.t, r.body["status"], r.text)
	return core.JobExecutionID(r.body["id"].(float64))
}

func (s *scene) await(signal <-chan struct{}, what string) {
	s.t.Helper()
	select {
	case <-signal:
	case <-time.After(deadline):
		require.Fail(s.t, what)
	}
}

func (s *server) over(id core.JobExecutionID, want core.Status) *operator.Execution {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	e, err := s.app.AwaitEnd(ctx, id)
	require.NoError(s.t, err)
	require.Equal(s.t, want, e.Status, e.Error)
	return e
}

func (s *server) executions() []operator.Execution {
	s.t.Helper()
	page, err := s.app.List(s.t.Context(), operator.ListRequest{Limit: 1000})
	require.NoError(s.t, err)
	return page.Executions
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
