// Package httprequest executes tasks of type `http_request`.
//
// It imports core/task, core/exception and internal/httpcall.
package httprequest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/httpcall"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// Type is the type of the tasks.
const Type = "http_request"

// of the answer's body
const maxArtifactBytes = 256 << 10

// taskPayload is the payload of a task.
type taskPayload struct {
	Method  string            `json:"method,omitempty"` // "" means GET, or POST if there is a body
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"`
	// Body is sent unchanged if it is a text, else as JSON.
	Body json.RawMessage `json:"body,omitempty"`
	// ExpectedStatus is 200 to 299 if empty.
	ExpectedStatus []int `json:"expected_status,omitempty"`
	// Timeout is such as "10s"; "" means 30 s.
	Timeout string `json:"timeout,omitempty"`
}

// handler executes tasks. Safe for concurrent use.
type handler struct {
	client *http.Client
	secret func(ctx context.Context, name, host string) (string, error)
}

// New returns a handler; a nil client means http.DefaultClient. secret finds the secrets that headers and
// bodies name (${secret.NAME}), for the URL's host; nil means that no secret may be sent.
func New(client *http.Client, secret func(ctx context.Context, name, host string) (string, error)) task.Handler {
	if client == nil {
		client = http.DefaultClient
	}
	return &handler{client, secret}
}

// Execute sends the request. The outcome is SUCCESS if the status is expected, FAILURE for 5xx, 408, 429
// and without an answer, and BLOCKED for another 4xx. Retry-After is the retry hint. The artifacts are the
// body, as Json or Stdout, and the Json {"status"}. An invalid payload is fatal.
func (h *handler) Execute(ctx context.Context, t task.Task) (task.Outcome, error) {
	request, err := read(t.Spec.Payload)
	if err == nil {
		err = h.fill(ctx, &request)
	}
	if err != nil {
		return task.Outcome{}, exception.Fatal("http_request: payload", err)
	}
	answer, err := httpcall.Do(ctx, h.client, request)
	if err != nil {
		return task.Outcome{}, fmt.Errorf("http_request: %w", err)
	}
	return outcome(answer).WithArtifact(artifact(answer)).
		WithArtifact(task.JSON(json.RawMessage(fmt.Sprintf(`{"status":%d}`, answer.Code)))), nil
}

func read(payload json.RawMessage) (r httpcall.Request, err error) {
	var p taskPayload
	if len(payload) == 0 {
		return r, errors.New(`the payload has none: write "payload": {"url": "https://example.com/data.json"}; the goal is not used`)
	}
	d := json.NewDecoder(bytes.NewReader(payload))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return r, err
	}
	if err := httpcall.CheckURL(p.URL); err != nil {
		return r, fmt.Errorf("url: %w", err)
	}
	r = httpcall.Request{Method: p.Method, URL: p.URL, Headers: p.Headers, Expected: p.ExpectedStatus, Keep: maxArtifactBytes}
	if p.Timeout != "" {
		if r.Timeout, err = time.ParseDuration(p.Timeout); err != nil || r.Timeout <= 0 {
			return r, fmt.Errorf("timeout: %q is not a duration, such as 10s", p.Timeout)
		}
	}
	var text string
	switch {
	case len(p.Body) == 0:
	case json.Unmarshal(p.Body, &text) == nil:
		r.Body, r.ContentType = []byte(text), "text/plain; charset=utf-8"
	default:
		r.Body, r.ContentType = p.Body, "application/json"
	}
	return r, nil
}

func outcome(a *httpcall.Answer) task.Outcome {
	switch {
	case a.Success:
		return task.Success()
	case !a.Again:
		return task.Blocked("the server answered " + a.Status)
	}
	failed := task.Failure("the server answered " + a.Status)
	if a.Asked {
		failed = failed.WithRetryHint(json.RawMessage(fmt.Sprintf(`{"delay_ms":%d}`, a.Wait.Milliseconds())))
	}
	return failed
}

func artifact(a *httpcall.Answer) task.Artifact {
	media, _, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	isJSON := err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
	if isJSON && !a.Cut && json.Valid(a.Body) && utf8.Valid(a.Body) {
		return task.JSON(a.Body)
	}
	if a.Cut {
		return task.Stdout(string(a.Body) + "…")
	}
	return task.Stdout(string(a.Body))
}
