package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/surfin-batch/surfin/internal/access"
	"github.com/surfin-batch/surfin/internal/changes"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/operator/catalog"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/pkg/batch/core"
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
	// Proxy signs users in; may be zero.
	Proxy access.Proxy
	// UserOf replaces Clients, Rate, Proxy and the probes in an application that mounts the handler; may be nil.
	UserOf access.UserOf
	// BasePath is the path of the server below its host, such as /surfin; may be empty.
	BasePath string
	// Mask hides secrets in a JSON document; may be nil.
	Mask func(document []byte) []byte
	// Log: nil means slog.Default().
	Log *slog.Logger
	Now func() time.Time
	// Pages returns the handler of everything that is neither the API nor a probe, such as
	// the sign-in, with the same clients and rates; nil means that there are no pages. The
	// operations are the API's, for requests that the guard has admitted.
	Pages func(guard *access.Guard, operations http.Handler) (http.Handler, error)
	// Changes looks for changes for the streams; nil means a looker of their own.
	Changes *changes.Looker
	// Announce receives the guard before the first request; may be nil.
	Announce func(guard *access.Guard)

	started  func(*operator.Running)
	stopping <-chan struct{}
}

type api struct {
	Config
	servers servers
}

type output[T any] struct{ Body T }

func operation(h huma.API, id, method, path, summary, text string) huma.Operation {
	schema := h.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Problem](), true, "Problem")
	return huma.Operation{
		OperationID: id, Method: method, Path: path, Summary: summary, Description: text,
		RejectUnknownQueryParameters: true, MaxBodyBytes: access.MaxBody, BodyReadTimeout: bodyTime,
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

func answer[T any](a *api, ctx context.Context, ask func() (*T, error)) (*output[T], error) { //nolint:revive // a method cannot have a type of its own
	view, err := ask()
	if err != nil {
		return nil, a.problem(ctx, err)
	}
	return &output[T]{*view}, nil
}

// Errors of the server are logged, and not shown to the client.
func (a *api) problem(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var known *Problem
	var refused *operator.Refusal
	var wrong *operator.RequestError
	var problems jobfile.Problems
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &refused):
		return problemOf(refused)
	case errors.As(err, &wrong):
		p := newProblem(http.StatusUnprocessableEntity, wrong.Error())
		p.Errors = []*huma.ErrorDetail{{Message: wrong.Reason, Location: wrong.Field, Value: wrong.Value}}
		return p
	case errors.Is(err, core.ErrNotFound):
		return problemOf(&operator.Refusal{Reason: refusal.NotFound, Err: err})
	case errors.As(err, &problems): // in a file that the parameters make invalid
		return problemOf(&operator.Refusal{Reason: refusal.Parameters, Err: err})
	case len(parameterErrors(err)) > 0:
		return problemOf(&operator.Refusal{Reason: refusal.Parameters, Err: err})
	}
	a.Log.ErrorContext(ctx, "a request of the API failed", "error", err)
	if access.IsUnavailable(err) || errors.Is(context.Cause(ctx), access.ErrUnavailable) {
		return newProblem(http.StatusServiceUnavailable, "the database cannot be reached, or did not respond in time: repeat the request later; the server's log has details")
	}
	return newProblem(http.StatusInternalServerError, "the server failed; see its log")
}

const documentPath = "/openapi.json"
