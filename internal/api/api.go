package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/operator/catalog"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// Config configures the API.
type Config struct {
	Service *operator.Service
	// Planner has read-only sessions; nil means Service.
	Planner *operator.Service
	Jobs    *catalog.Catalog
	Tasks   *runtime.TaskService
	// Without Clients the API can be read without a token, and changes nothing.
	Clients []settings.Client
	// Paths are allowed folders in addition to the job file's.
	Paths []string
	// Rate is in requests per second and client.
	Rate int
	// Mask hides secrets in a JSON document; may be nil.
	Mask func(document []byte) []byte
	// Log: nil means slog.Default().
	Log *slog.Logger
	Now func() time.Time

	started  func(*operator.Running)
	stopping <-chan struct{}
}

type api struct {
	Config
}

// New returns the handler. Started executions continue until they end, or the
// service is closed; Serve also stops them.
func New(config Config) (http.Handler, error) {
	if config.Service == nil || config.Jobs == nil || config.Tasks == nil || config.Rate < 1 {
		return nil, errors.New("the API needs a service, a catalog of jobs, a service of tasks and a rate")
	}
	if config.Planner == nil {
		config.Planner = config.Service
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	if config.Mask == nil {
		config.Mask = func(document []byte) []byte { return document }
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.started == nil {
		config.started = func(*operator.Running) {}
	}
	mux := http.NewServeMux()
	document, err := (&api{config}).register(mux)
	if err != nil {
		return nil, err
	}
	mux.HandleFunc("GET "+documentPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(document) //nolint:errcheck // the client has gone
	})
	return newGuard(config, mux), nil
}

const documentPath = "/openapi.json"

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
				"token": {Type: "http", Scheme: "bearer"},
				"user":  {Type: "http", Scheme: "basic"},
			}},
			Security: []map[string][]string{{"token": {}}, {"user": {}}},
		},
		Formats:       map[string]huma.Format{"application/json": jsonFormat(), "json": jsonFormat()},
		DefaultFormat: "application/json",
		Transformers:  []huma.Transformer{suggestKeys},
	})
	a.addJobs(h)
	a.addExecutions(h)
	a.addSkips(h)
	a.addActs(h)
	a.addTasks(h)
	a.addEvents(h)
	a.addWorkers(h)
	a.addDefinitions(h)
	a.addAudit(h)
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

type output[T any] struct{ Body T }

func operation(h huma.API, id, method, path, summary, text string) huma.Operation {
	schema := h.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Problem](), true, "Problem")
	return huma.Operation{
		OperationID: id, Method: method, Path: path, Summary: summary, Description: text,
		RejectUnknownQueryParameters: true, MaxBodyBytes: maxBody, BodyReadTimeout: bodyTime,
		Responses: map[string]*huma.Response{"default": {
			Description: "The request is wrong or was refused", Content: map[string]*huma.MediaType{"application/problem+json": {Schema: schema}},
		}},
	}
}

func get(h huma.API, id, path, summary, text string) huma.Operation {
	return operation(h, id, http.MethodGet, path, summary, text)
}

func post(h huma.API, id, path, summary, text string) huma.Operation {
	return operation(h, id, http.MethodPost, path, summary, text)
}
