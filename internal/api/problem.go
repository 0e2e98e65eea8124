package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"

	"github.com/surfin-batch/surfin/internal/access"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/refusal"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/secret"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Problem is a refusal (RFC 9457), with members as in operator.Refusal.
type Problem struct {
	huma.ErrorModel
	Reason    operator.Reason     `json:"reason,omitempty" doc:"Why it was refused"`
	Execution core.JobExecutionID `json:"execution,omitempty" doc:"The execution that the request names"`
	Now       *refusal.State      `json:"now,omitempty" doc:"The state, if the reason is moved"`
	Last      core.JobExecutionID `json:"last,omitempty" doc:"The last execution of the instance, with which a changed job file is compared"`
	Details   []string            `json:"details,omitempty" doc:"The errors, one by one"`
	Diff      string              `json:"diff,omitempty" doc:"The changed lines of the job file"`
	Actions   []operator.Action   `json:"actions,omitempty" doc:"What you can do instead, the best first"`
}

func newProblem(status int, detail string) *Problem {
	return &Problem{ErrorModel: huma.ErrorModel{Title: http.StatusText(status), Status: status, Detail: secret.Text(detail)}}
}

func problemOf(r *operator.Refusal) *Problem {
	p := newProblem(operator.HTTPStatus(r.Reason), r.Err.Error())
	p.Reason, p.Execution, p.Now, p.Last, p.Diff, p.Actions = r.Reason, r.Execution, r.Now, r.Last, secret.Text(r.Diff), r.Actions
	for _, d := range r.Details {
		p.Details = append(p.Details, secret.Text(d))
	}
	for _, e := range parameterErrors(r.Err) {
		p.Errors = append(p.Errors, &huma.ErrorDetail{Message: secret.Text(e.Err.Error()), Location: "body.params." + e.Name})
	}
	var problems jobfile.Problems
	if errors.As(r.Err, &problems) {
		for _, one := range problems {
			p.Details = append(p.Details, secret.Text(one.Error()))
		}
	}
	return p
}

func parameterErrors(err error) []*ports.ParameterError {
	switch e := err.(type) { //nolint:errorlint // the tree is walked
	case nil:
		return nil
	case *ports.ParameterError:
		return []*ports.ParameterError{e}
	case interface{ Unwrap() []error }:
		var all []*ports.ParameterError
		for _, one := range e.Unwrap() {
			all = append(all, parameterErrors(one)...)
		}
		return all
	}
	return parameterErrors(errors.Unwrap(err))
}

const unknownParameter = "unknown query parameter" // of huma

func queryNames(o *huma.Operation) (names []string) {
	for _, p := range o.Parameters {
		if p.In == "query" {
			names = append(names, p.Name)
		}
	}
	return names
}

func suggestKeys(ctx huma.Context, _ string, v any) (any, error) {
	if model, is := v.(*huma.ErrorModel); is {
		for _, e := range model.Errors {
			key := e.Location[strings.LastIndexByte(e.Location, '.')+1:]
			if cure := runtime.KeyCure(key); cure != "" && e.Message == validation.MsgUnexpectedProperty {
				e.Message += ": " + cure
			}
			if name, is := strings.CutPrefix(e.Location, "query."); is && e.Message == unknownParameter {
				e.Message += nearest.Hint(name, queryNames(ctx.Operation()))
			}
		}
	}
	return v, nil
}

func (p *Problem) write(w http.ResponseWriter) {
	for name, values := range p.GetHeaders() {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) //nolint:errcheck // the client has gone
}

// GetHeaders implements huma.HeadersError.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	if p.Status == http.StatusServiceUnavailable {
		h.Set("Retry-After", strconv.Itoa(int(access.RetryAfter/time.Second)))
	}
	return h
}
