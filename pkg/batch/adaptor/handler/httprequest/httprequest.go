// Package httprequest executes tasks of type `http_request`: one request to a server.
//
// It imports core/task and core/exception.
package httprequest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// Type is that of the tasks.
const Type = "http_request"

const (
	// defaultTimeout is that of a request where none is given.
	defaultTimeout = 30 * time.Second
	// keptBytes is how much of the answer's body becomes an artifact.
	keptBytes = 256 << 10
)

// Payload is what a task is to do.
type Payload struct {
	Method  string            `json:"method,omitempty"` // "": GET, or POST where there is a body
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"`
	// Body is sent as it is where it is a text, else as JSON.
	Body json.RawMessage `json:"body,omitempty"`
	// ExpectedStatus are the codes of success; none: 200 to 299.
	ExpectedStatus []int `json:"expected_status,omitempty"`
	// Timeout is that of the request, such as "10s"; "": 30 s.
	Timeout string `json:"timeout,omitempty"`
}

// Handler executes tasks. It is safe for concurrent use.
type Handler struct{ client *http.Client }

var _ task.Handler = (*Handler)(nil)

// New returns a handler that uses the client; nil: http.DefaultClient.
func New(client *http.Client) *Handler {
	if client == nil {
		client = http.DefaultClient
	}
	return &Handler{client}
}

// Execute sends the request. The outcome is SUCCESS where the status is expected, FAILURE
// of 5xx, 408, 429 and where there is no answer, and BLOCKED of another 4xx. A Retry-After
// of the server is the retry hint. The artifacts are the body, as Json where it is that and
// else as Stdout, and the Json {"status"}. A payload that is wrong is fatal.
func (h *Handler) Execute(ctx context.Context, t task.Task) (task.Outcome, error) {
	p, timeout, err := read(t.Spec.Payload)
	if err != nil {
		return task.Outcome{}, exception.Fatal("http_request: payload", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %v", timeout))
	defer cancel()
	req, err := p.request(ctx)
	if err != nil {
		return task.Outcome{}, exception.Fatal("http_request", err)
	}
	answer, err := h.client.Do(req)
	if err != nil {
		return task.Outcome{}, because(ctx, err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(io.LimitReader(answer.Body, keptBytes+1))
	if err != nil {
		return task.Outcome{}, because(ctx, err)
	}
	return p.outcome(answer).WithArtifact(artifact(answer.Header.Get("Content-Type"), body)).
		WithArtifact(task.JSON(json.RawMessage(fmt.Sprintf(`{"status":%d}`, answer.StatusCode)))), nil
}

// because is why there is no answer. Credentials of the URL are not shown.
func because(ctx context.Context, err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return fmt.Errorf("http_request: %w", err)
}

func read(payload json.RawMessage) (p Payload, timeout time.Duration, err error) {
	d := json.NewDecoder(bytes.NewReader(payload))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return p, 0, err
	}
	u, err := url.Parse(p.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return p, 0, errors.New("url: it must begin with http:// or https:// and name a host")
	}
	timeout = defaultTimeout
	if p.Timeout != "" {
		if timeout, err = time.ParseDuration(p.Timeout); err != nil || timeout <= 0 {
			return p, 0, fmt.Errorf("timeout: %q is no duration, such as 10s", p.Timeout)
		}
	}
	if p.Method == "" {
		p.Method = http.MethodGet
		if len(p.Body) > 0 {
			p.Method = http.MethodPost
		}
	}
	return p, timeout, nil
}

func (p Payload) request(ctx context.Context) (*http.Request, error) {
	var text string
	body, kind := []byte(p.Body), "application/json"
	if len(p.Body) > 0 && json.Unmarshal(p.Body, &text) == nil {
		body, kind = []byte(text), "text/plain; charset=utf-8"
	}
	req, err := http.NewRequestWithContext(ctx, p.Method, p.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if len(p.Body) > 0 {
		req.Header.Set("Content-Type", kind)
	}
	for name, value := range p.Headers {
		req.Header.Set(name, value)
		if strings.EqualFold(name, "Host") {
			req.Host = value
		}
	}
	return req, nil
}

func (p Payload) outcome(answer *http.Response) task.Outcome {
	code := answer.StatusCode
	switch {
	case len(p.ExpectedStatus) == 0 && code/100 == 2, slices.Contains(p.ExpectedStatus, code):
		return task.Success()
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code/100 != 4:
		failed := task.Failure("the server answered " + answer.Status)
		if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && seconds >= 0 {
			failed = failed.WithRetryHint(json.RawMessage(fmt.Sprintf(`{"delay_ms":%d}`, min(seconds, 1<<30)*1000)))
		}
		return failed
	}
	return task.Blocked("the server answered " + answer.Status)
}

func artifact(kind string, body []byte) task.Artifact {
	media, _, err := mime.ParseMediaType(kind)
	isJSON := err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
	if isJSON && len(body) <= keptBytes && json.Valid(body) && utf8.Valid(body) {
		return task.JSON(body)
	}
	if len(body) > keptBytes {
		return task.Stdout(string(body[:keptBytes]) + "…")
	}
	return task.Stdout(string(body))
}
