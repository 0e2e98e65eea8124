//test:plain

package httprequest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

func server(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) //nolint:errcheck // of the test
		switch r.URL.Path {
		case "/echo":
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			_ = json.NewEncoder(w).Encode(map[string]string{"method": r.Method, "type": r.Header.Get("Content-Type"), "x": r.Header.Get("X-A"), "body": string(body)}) //nolint:errcheck // likewise
		case "/busy":
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/missing":
			w.WriteHeader(http.StatusNotFound)
		case "/slow":
			<-r.Context().Done()
		case "/large":
			_, _ = io.WriteString(w, strings.Repeat("a", 300<<10)) //nolint:errcheck // likewise
		default:
			_, _ = io.WriteString(w, "plain") //nolint:errcheck // likewise
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func do(t *testing.T, p taskPayload) (task.Outcome, error) {
	t.Helper()
	payload, err := json.Marshal(p)
	require.NoError(t, err)
	o, err := New(nil, nil).Execute(t.Context(), task.Task{Spec: task.Spec{Payload: payload}})
	return o, err
}

func TestARequestIsSentAndItsAnswerKept(t *testing.T) {
	t.Parallel()
	url := server(t).URL
	o, err := do(t, taskPayload{URL: url + "/echo", Body: json.RawMessage(`{"a": 1}`), Headers: map[string]string{"X-A": "b"}})
	require.NoError(t, err)
	require.Equal(t, task.OutcomeSuccess, o.Kind)
	require.JSONEq(t, `{"method":"POST","type":"application/json","x":"b","body":"{\"a\":1}"}`, string(o.Artifacts[0].JSON))
	require.JSONEq(t, `{"status":200}`, string(o.Artifacts[1].JSON))
	o, err = do(t, taskPayload{Method: http.MethodPut, URL: url + "/echo", Body: json.RawMessage(`"text"`)})
	require.NoError(t, err)
	require.JSONEq(t, `{"method":"PUT","type":"text/plain; charset=utf-8","x":"","body":"text"}`, string(o.Artifacts[0].JSON))
	o, err = do(t, taskPayload{URL: url + "/"})
	require.NoError(t, err)
	require.Equal(t, task.Stdout("plain"), o.Artifacts[0])
	o, err = do(t, taskPayload{URL: url + "/large"})
	require.NoError(t, err)
	require.Less(t, len(o.Artifacts[0].Text), 257<<10)
}

func TestWhatAnAnswerMeans(t *testing.T) {
	t.Parallel()
	s := server(t)
	o, err := do(t, taskPayload{URL: s.URL + "/busy"})
	require.NoError(t, err)
	require.Equal(t, task.OutcomeFailure, o.Kind)
	require.JSONEq(t, `{"delay_ms":7000}`, string(o.RetryHint))
	o, err = do(t, taskPayload{URL: s.URL + "/missing"})
	require.NoError(t, err)
	require.Equal(t, task.OutcomeBlocked, o.Kind)
	require.Contains(t, o.Reason, "404")
	o, err = do(t, taskPayload{URL: s.URL + "/missing", ExpectedStatus: []int{404}})
	require.NoError(t, err)
	require.Equal(t, task.OutcomeSuccess, o.Kind)
	_, err = do(t, taskPayload{URL: s.URL + "/slow", Timeout: "20ms"})
	require.ErrorContains(t, err, "no response within 20ms")
	require.False(t, taskports.OutcomeOf(task.Outcome{}, err).Fatal)
	s.Close()
	_, err = do(t, taskPayload{URL: strings.Replace(s.URL, "http://", "http://me:secret@", 1)})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "secret")
	require.False(t, taskports.OutcomeOf(task.Outcome{}, err).Fatal)
}

func TestAPayloadThatIsWrongIsFatal(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]string{
		``: "the payload has none", `{"url": "ftp://x"}`: "url: it must begin with http", `{"uri": "http://x"}`: `unknown field "uri"`,
		`{"url": "http://x", "timeout": "soon"}`: `"soon" is not a duration`, `{"url": "http://x", "method": "A B"}`: "invalid method",
	} {
		o, err := New(nil, nil).Execute(context.Background(), task.Task{Spec: task.Spec{Payload: json.RawMessage(payload)}})
		require.ErrorContains(t, err, want)
		require.True(t, taskports.OutcomeOf(o, err).Fatal, payload)
	}
}

// Rule SE6.
func TestSecretsOfATaskAreSentToTheirHostOnly(t *testing.T) {
	t.Parallel()
	s := server(t)
	host := strings.TrimPrefix(s.URL, "http://")
	h := New(nil, func(_ context.Context, name, to string) (string, error) {
		if name != "hook" || to != host {
			return "", errors.New("tasks must not send " + name + " to " + to)
		}
		return `a"b`, nil
	})
	send := func(p taskPayload) (task.Outcome, error) {
		payload, err := json.Marshal(p)
		require.NoError(t, err)
		return h.Execute(t.Context(), task.Task{Spec: task.Spec{Payload: payload}})
	}
	o, err := send(taskPayload{URL: s.URL + "/echo", Headers: map[string]string{"X-A": "Bearer ${secret.hook}"}, Body: json.RawMessage(`{"key": "${secret.hook}"}`)})
	require.NoError(t, err)
	require.JSONEq(t, `{"method":"POST","type":"application/json","x":"Bearer a\"b","body":"{\"key\":\"a\\\"b\"}"}`, string(o.Artifacts[0].JSON))
	for _, p := range []taskPayload{
		{URL: s.URL, Headers: map[string]string{"X-A": "${secret.other}"}}, {URL: "http://127.0.0.1:1", Headers: map[string]string{"X-A": "${secret.hook}"}},
		{URL: s.URL + "/?k=${secret.hook}"},
	} {
		o, err := send(p)
		require.Error(t, err)
		require.True(t, taskports.OutcomeOf(o, err).Fatal)
	}
	_, err = do(t, taskPayload{URL: s.URL, Headers: map[string]string{"X-A": "${secret.hook}"}})
	require.ErrorContains(t, err, "no secret store is configured for tasks")
}
