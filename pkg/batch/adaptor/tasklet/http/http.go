// Package httptask is the tasklet `http`: it sends a request, and keeps the answer.
//
// It imports core, core/registry and internal/httpcall.
package httptask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/httpcall"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// config configures the tasklet.
type config struct {
	Method      string            `key:"method" enum:"GET,HEAD,POST,PUT,PATCH,DELETE" doc:"Default: GET, or POST with a body."`
	URL         string            `key:"url" main:"true" required:"true" doc:"The URL. Values in its query are used as they are: write them encoded."`
	Headers     map[string]string `key:"headers" doc:"Headers of the request."`
	Body        string            `key:"body" doc:"The body, as text/plain unless a header says otherwise."`
	JSON        registry.JSON     `key:"json" doc:"The body, as JSON: any value, written as YAML. Its ${...} keep their types."`
	Status      []int             `key:"status" doc:"The codes of success; default: 200 to 299."`
	Timeout     time.Duration     `key:"timeout" default:"30s" doc:"How long the request and its response may take."`
	MaxResponse registry.Size     `key:"max_response" default:"1MB" doc:"The longest response; a longer one is an error."`
	Out         item.Type         `key:"out" doc:"The values of a JSON response that become steps.NAME.out, with names, types and paths, like the item of a json reader: {id: {type: int, from: data.id}}."`
	RowData     bool              `key:"row_data" default:"false" doc:"Whether job.error is the whole message here, which may contain values of rows; without it, job.error names the step and where to find the message (rule OP7)."`
	Idempotency bool              `key:"idempotency" default:"false" doc:"Send a header Idempotency-Key, with the same value in all requests and attempts of the step."`
}

// SendsRowData implements trait.Sender.
func (c *config) SendsRowData() bool { return c.RowData }

// Validate checks the request.
func (c *config) Validate() error {
	var errs []error
	bad := func(key, format string, args ...any) {
		errs = append(errs, &registry.ConfigError{Key: key, Err: fmt.Errorf(format, args...)})
	}
	if err := httpcall.CheckURL(c.URL); err != nil {
		bad("url", "%w", err)
	}
	if c.Body != "" && c.JSON != nil {
		bad("json", "a body is set, too: set one of them")
	}
	for name, value := range c.Headers {
		if err := httpcall.CheckHeader(name, value); err != nil {
			bad("headers."+name, "%w", err)
		}
	}
	for _, code := range c.Status {
		if code < 100 || code > 599 {
			bad("status", "%d is not an HTTP status", code)
		}
	}
	if c.Timeout < 0 {
		bad("timeout", "it must not be negative")
	}
	if out := c.Out; out != nil && (out.Schema() == nil || out.Schema().IsOpen()) {
		bad("out", "%s does not name fields and types", out.Name())
	}
	return errors.Join(errs...)
}

func results() []row.Field {
	return []row.Field{{Name: "status", Kind: row.Int}, {Name: "body", Kind: row.String, Nullable: true}}
}

// Components describes the tasklet.
func Components() []registry.Component {
	return []registry.Component{{
		Kind: registry.KindTasklet, Name: "http", Config: reflect.TypeFor[config](), NoTransaction: true, Results: results(),
		Summary: "sends an HTTP request, such as to a webhook, and keeps values of the response",
		Doc: `The step completes if the status is expected. Otherwise it fails with the status and the beginning of
the response; its error belongs to the class ` + "`http`" + `, or to ` + "`http(404)`" + `, and one without a response to
` + "`connection` or `timeout`" + `. The results are ` + "`status`" + `, ` + "`body`" + `, the response if it is a text of at most
8 KB, and the fields of ` + "`out`" + `. No message contains the URL's user and query. With ` + "`retry`" + ` in the step the
request is sent again if that may help: no connection, no response in time, 5xx, 429, 408; a longer
` + "`Retry-After`" + ` of the server replaces the backoff.

A request is sent at least once: after a crash between the response and the end of the step, the restart
sends it again (rule TL6). A server that knows ` + "`Idempotency-Key`" + ` then processes it once: set ` + "`idempotency: true`" + `.

Send a message to a webhook, in ` + "`finally`" + ` and, for example, when the job has failed, with this tasklet and ` + "`json`" + `:
there is no special tasklet for notifications. For thousands of requests use [tasks](../howto/tasks.md) of the type http_request.`,
		Example: `job: announce
parameters: {year: {type: int}}
flow:
- step: announce
  tasklet:
    http:
      url: https://api.example.org/v1/loads
      headers: {Accept: application/json}
      json: {job: "${job.name}", year: "${params.year}", tags: [nightly, final]}
      idempotency: true
      out: {id: {type: string, from: data.id}}
  retry: {limit: 3, backoff: {initial: 1s, max: 1m}}`,
		New: func(_ context.Context, cfg any, _ registry.BuildContext) (any, error) {
			return newTasklet(http.DefaultClient, *cfg.(*config))
		},
	}}
}

type tasklet struct {
	client *http.Client
	config config
}

// newTasklet checks config.
func newTasklet(client *http.Client, cfg config) (core.Tasklet, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.MaxResponse = cmp.Or(cfg.MaxResponse, 1<<20)
	return &tasklet{client: client, config: cfg}, nil
}

func (t *tasklet) request(key string) httpcall.Request {
	c := &t.config
	r := httpcall.Request{
		Method: c.Method, URL: c.URL, Headers: map[string]string{}, Expected: slices.Clone(c.Status), Timeout: c.Timeout, Keep: int64(c.MaxResponse),
	}
	switch {
	case c.JSON != nil:
		r.Body, r.ContentType = c.JSON, "application/json"
	case c.Body != "":
		r.Body, r.ContentType = []byte(c.Body), "text/plain; charset=utf-8"
	}
	if key != "" {
		r.Headers["Idempotency-Key"] = key
	}
	for name, value := range c.Headers {
		r.Headers[name] = value
	}
	return r
}
