//test:plain

package httptask_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/errorclass"
	httptask "github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/http"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// server answers the codes one after the other, and then 200, with the request as JSON.
type server struct {
	*httptest.Server
	mu    sync.Mutex
	codes []int
	keys  []string
	body  string
}

func serve(t *testing.T, codes ...int) *server {
	t.Helper()
	s := &server{codes: codes}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.keys, s.body = append(s.keys, r.Header.Get("Idempotency-Key")), string(body)
		switch {
		case err != nil:
		case r.URL.Path == "/slow":
			<-r.Context().Done()
		case r.URL.Path == "/large":
			_, _ = io.WriteString(w, strings.Repeat("x", 5000)) //nolint:errcheck // of the test
		case len(s.codes) > 0:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(s.codes[0])
			s.codes = s.codes[1:]
			_, _ = io.WriteString(w, "try again") //nolint:errcheck // of the test
		default:
			_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{"id": 7, "tags": []string{"a", "b"}}, "method": r.Method, "auth": r.Header.Get("Authorization")}) //nolint:errcheck // of the test
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func do(t *testing.T, c httptask.Config) (*core.StepContribution, error) {
	t.Helper()
	task, err := httptask.New(http.DefaultClient, c)
	require.NoError(t, err)
	contribution := &core.StepContribution{Context: core.NewExecutionContext()}
	return contribution, task.Execute(t.Context(), contribution)
}

func class(t *testing.T, err error) string {
	t.Helper()
	m, merr := exception.NewMatchers(errorclass.Stock()...)
	require.NoError(t, merr)
	return m.Class(err)
}

// Rule TL6.
func TestAJobSendsARequestByTemplateAndReadsTheAnswer(t *testing.T) {
	t.Parallel()
	s := serve(t, 503, 429, 404)
	e := batchtest.New(t)
	file := e.File("job.yaml", `job: call
parameters: {url: {type: string}, year: {type: int, default: 1995}}
flow:
- step: call
  tasklet:
    http:
      url: ${params.url}/v1?key=hidden
      headers: {Authorization: "Bearer ${job.name}"}
      json: {year: "${params.year}", text: "year ${params.year}", tags: [a, "1", 2, true, null], deep: {yes: no}}
      idempotency: true
      out: {id: {type: int, from: data.id}, second: {type: string, from: "data.tags[1]"}, auth: string}
  retry: {limit: 2, backoff: {initial: 1ms}}
- step: use
  when: steps.call.out.id == 7 and steps.call.out.second == 'b' and steps.call.out.auth == 'Bearer call' and steps.call.out.status == 200
  tasklet: {sql: create table used (a int)}
`)
	r := e.Job(file, "url="+s.URL).Failed("/v1: the server answered 404 Not Found: try again")
	require.NotContains(t, r.Step("call").Error, "hidden")
	e.Job(file, "url="+s.URL).Completed()
	e.HasRows("select count(*) from used", "0")
	require.JSONEq(t, `{"year": 1995, "text": "year 1995", "tags": ["a", "1", 2, true, null], "deep": {"yes": "no"}}`, s.body)
	require.Len(t, s.keys, 4)
	for _, key := range s.keys {
		require.NotEmpty(t, key)
		require.Equal(t, s.keys[0], key)
	}
}

func TestWhatFailsHasItsClass(t *testing.T) {
	t.Parallel()
	s := serve(t, 500, 404, 302)
	_, err := do(t, httptask.Config{URL: s.URL})
	require.Equal(t, "http", class(t, err))
	require.True(t, exception.IsRetryable(err))
	_, err = do(t, httptask.Config{URL: s.URL, Status: []int{200}})
	require.ErrorContains(t, err, "404")
	require.False(t, exception.IsRetryable(err))
	_, err = do(t, httptask.Config{URL: s.URL, Status: []int{302}})
	require.NoError(t, err)
	_, err = do(t, httptask.Config{URL: s.URL + "/slow?a=b", Timeout: 20 * time.Millisecond})
	require.ErrorContains(t, err, "no response within 20ms")
	require.Equal(t, "timeout", class(t, err))
	_, err = do(t, httptask.Config{URL: s.URL + "/large", MaxResponse: 4999})
	require.ErrorContains(t, err, "longer than max_response (4999 bytes)")
	c, err := do(t, httptask.Config{URL: s.URL, Method: http.MethodDelete})
	require.NoError(t, err)
	require.Contains(t, c.Out["body"], `"method":"DELETE"`)
	s.Close()
	_, err = do(t, httptask.Config{URL: strings.Replace(s.URL, "http://", "http://me:secret@", 1)})
	require.Equal(t, "connection", class(t, err))
	require.NotContains(t, err.Error(), "secret")
}

func TestWrongConfigurationsAreRefusedAtTheirKey(t *testing.T) {
	t.Parallel()
	for key, c := range map[string]httptask.Config{
		"url": {URL: "ftp://x"}, "json": {URL: "http://x", Body: "a", JSON: registry.JSON("1")}, "headers.a b": {URL: "http://x", Headers: map[string]string{"a b": ""}},
		"headers.a": {URL: "http://x", Headers: map[string]string{"a": "b\nc"}}, "status": {URL: "http://x", Status: []int{99}},
	} {
		var at *registry.ConfigError
		require.ErrorAs(t, c.Validate(), &at)
		require.Equal(t, key, at.Key)
	}
}
