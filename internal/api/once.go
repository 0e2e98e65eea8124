package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/surfin-batch/surfin/internal/access"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

type (
	// KeyHeader is embedded in the input of every POST that acts.
	KeyHeader struct {
		Key string `header:"Idempotency-Key" maxLength:"200" pattern:"^[!-~]*$" patternDescription:"visible ASCII characters" doc:"The client's key for this request, such as a UUID: a repetition with the same key returns the same response and does nothing again"`
	}
	acted struct {
		ID      core.JobExecutionID `json:"id" doc:"The execution that was started or that the request names"`
		Status  core.Status         `json:"status" doc:"Its status after the request"`
		Applied bool                `json:"applied" doc:"False if it was done before"`
		Notices []operator.Notice   `json:"notices,omitempty" doc:"Notes about the run before it started"`
		Warning string              `json:"warning,omitempty" doc:"Errors that did not prevent it"`
	}
	keyed[T any] struct {
		Replayed string `header:"Idempotency-Replayed" doc:"true if the response is that of an earlier request with the same key"`
		Body     verbatim[T]
	}
	verbatim[T any] struct{ json.RawMessage }
	request         struct {
		Operation string
		About     any
		Body      any
	}
	storedResponse struct {
		Body    json.RawMessage `json:"body,omitempty"`
		Problem *Problem        `json:"problem,omitempty"`
	}
)

func (verbatim[T]) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[T](), true, "")
}

// once continues after the client has disconnected.
func once[T any](a *api, ctx context.Context, key string, what request, do func(ctx context.Context, key ports.RequestKey) (*T, error)) (*keyed[T], error) { //nolint:revive // a method cannot have a type of its own
	return keyedAct(a, ctx, key, what, false, do)
}

// The answer is stored in the act's transaction.
func together[T any](a *api, ctx context.Context, key string, what request, do func(ctx context.Context, key ports.RequestKey) (*T, error)) (*keyed[T], error) { //nolint:revive // a method cannot have a type of its own
	return keyedAct(a, ctx, key, what, true, do)
}

func keyedAct[T any](a *api, ctx context.Context, key string, what request, oneTransaction bool, do func(ctx context.Context, key ports.RequestKey) (*T, error)) (*keyed[T], error) { //nolint:revive // a method cannot have a type of its own
	who := access.CallerOf(ctx).Name
	ctx, end := access.Answering(operator.WithActor(context.WithoutCancel(ctx), actorOf(ctx)), a.Service.CheckDatabase)
	defer end()
	if key == "" {
		body, err := do(ctx, ports.RequestKey{})
		if err != nil {
			return nil, a.problem(ctx, err)
		}
		text, err := json.Marshal(body)
		return &keyed[T]{Body: verbatim[T]{text}}, a.problem(ctx, err)
	}
	fingerprint, err := what.fingerprint()
	if err != nil {
		return nil, a.problem(ctx, err)
	}
	act := operator.Act{Key: ports.RequestKey{Client: who, Key: key}, Fingerprint: fingerprint, OneTransaction: oneTransaction}
	act.Do = func(ctx context.Context) (string, error) {
		body, err := do(ctx, act.Key)
		if err != nil {
			return "", err
		}
		return keep(body, nil)
	}
	act.Refused = func(err error) (string, bool) {
		var p *Problem
		if !errors.As(a.problem(ctx, err), &p) || p.Status >= http.StatusInternalServerError {
			return "", false
		}
		text, err := keep(nil, p)
		return text, err == nil
	}
	act.Started = func(e *operator.Execution) (string, error) {
		return keep(acted{ID: e.ID, Status: e.Status, Applied: true}, nil)
	}
	text, repeated, err := a.Service.Once(ctx, act)
	if err != nil {
		return nil, a.problem(ctx, err)
	}
	return replay[T](text, repeated)
}

func actorOf(ctx context.Context) string { return access.CallerOf(ctx).Actor() }

func replay[T any](text string, repeated bool) (*keyed[T], error) {
	var answer storedResponse
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		return nil, fmt.Errorf("read the stored response: %w", err)
	}
	if answer.Problem != nil {
		return nil, answer.Problem
	}
	out := &keyed[T]{Body: verbatim[T]{answer.Body}}
	if repeated {
		out.Replayed = "true"
	}
	return out, nil
}

func keep(body any, p *Problem) (string, error) {
	var answer storedResponse
	var err error
	if answer.Problem = p; p == nil {
		if answer.Body, err = json.Marshal(body); err != nil {
			return "", fmt.Errorf("store the response: %w", err)
		}
	}
	text, err := json.Marshal(answer)
	return string(text), err
}

func (r request) fingerprint() (string, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("name the request: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
