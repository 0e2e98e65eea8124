package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/surfin-batch/surfin/internal/changes"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// New returns the handler. Started executions continue until they end, or the
// service is closed; Serve also stops them.
func New(config Config) (http.Handler, error) {
	if config.Service == nil || config.Jobs == nil || config.Tasks == nil || config.UserOf == nil && config.Rate < 1 {
		return nil, errors.New("the API needs a service, a catalog of jobs, a service of tasks and a rate")
	}
	if config.Planner == nil {
		config.Planner = config.Service
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	if config.Changes == nil {
		config.Changes = changes.New(config.Service.Changes, config.Log)
	}
	if config.Mask == nil {
		config.Mask = func(document []byte) []byte { return document }
	}
	if config.started == nil {
		var running runs
		config.started = func(r *operator.Running) { running.follow(context.Background(), nil, r, config.Log) }
	}
	mux := http.NewServeMux()
	document, err := (&api{Config: config}).register(mux)
	if err != nil {
		return nil, err
	}
	mux.HandleFunc("GET "+documentPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(document) //nolint:errcheck // the client has gone
	})
	return front(config, mux)
}

// Document returns the OpenAPI 3.1 description as indented JSON.
func Document() ([]byte, error) { return (&api{}).register(http.NewServeMux()) }

func (a *api) register(mux *http.ServeMux) ([]byte, error) {
	schemas := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	schemas.RegisterTypeAlias(reflect.TypeFor[operator.Parameters](), reflect.TypeFor[map[string]any]())
	schemas.RegisterTypeAlias(reflect.TypeFor[core.Placement](), reflect.TypeFor[any]()) // a text, or an object of texts
	schemas.RegisterTypeAlias(reflect.TypeFor[task.Artifact](), reflect.TypeFor[artifactForm]())
	h := humago.New(mux, huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info:    &huma.Info{Title: "Surfin", Version: "1", Description: description},
			Components: &huma.Components{Schemas: schemas, SecuritySchemes: map[string]*huma.SecurityScheme{
				"token":   {Type: "http", Scheme: "bearer"},
				"user":    {Type: "http", Scheme: "basic"},
				"session": {Type: "apiKey", In: "cookie", Name: "surfin_session", Description: "Made by /login"},
			}},
			Security: []map[string][]string{{"token": {}}, {"user": {}}, {"session": {}}},
		},
		Formats:       map[string]huma.Format{"application/json": jsonFormat(), "json": jsonFormat()},
		DefaultFormat: "application/json",
		Transformers:  []huma.Transformer{suggestKeys},
	})
	a.addJobs(h)
	a.addOverview(h)
	a.addExecutions(h)
	a.addSkips(h)
	a.addActs(h)
	a.addBulk(h)
	a.addTasks(h)
	a.addEvents(h)
	a.addWorkers(h)
	a.addDefinitions(h)
	a.addAudit(h)
	a.addStream(h, mux)
	document, err := json.MarshalIndent(h.OpenAPI(), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("describe the API: %w", err)
	}
	return append(document, '\n'), nil
}

const description = `Runs and operates batch jobs. Reading needs a token of any role, everything else an operator's
token, as a bearer token or as the password of basic authentication with the name of the client. A
server without tokens listens on a loopback address and is read-only.

Errors are problem details (RFC 9457). Refusals have a reason and the actions that
are possible instead. A POST is answered with 200 and {id, status, applied}; applied is
false if it was done before. A refusal is 409, an unknown object 404, and wrong parameters are
422: nothing was changed then. A database that is away is 503 with Retry-After. With the header Idempotency-Key a POST can be repeated: the same key
with the same request has the same answer, and does nothing twice.`
