package ports

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// RequestKey identifies a request of a client: a repetition with the same key has no effect. Zero means
// none.
type RequestKey struct {
	Client string // the client that made the key
	Key    string
}

// ClientRequest is the known state of a request.
type ClientRequest struct {
	// Execution is the execution that it started; 0 means none.
	Execution core.JobExecutionID
	// Answer is the first answer; empty means that it was not answered yet.
	Answer string
}

// Requests stores the requests of clients by their keys.
type Requests interface {
	// ClaimRequest records a request, or returns its known state. fingerprint is the same for the same
	// request: a *KeyReusedError if the key was used for another one.
	ClaimRequest(ctx context.Context, key RequestKey, fingerprint string) (ClientRequest, error)
	// AnswerRequest stores the answer, unless there is one, and returns the stored one.
	AnswerRequest(ctx context.Context, key RequestKey, answer string) (string, error)
}

// KeyReusedError means that a key was used for another request.
type KeyReusedError struct{ Key string }

// Error names the key.
func (e *KeyReusedError) Error() string {
	return fmt.Sprintf("key %q was used for another request: each request needs its own key", e.Key)
}

// RequestStartedError refuses a launch if its request has started an execution before. Nothing was
// changed.
type RequestStartedError struct{ Key string }

// Error names the key.
func (e *RequestStartedError) Error() string {
	return fmt.Sprintf("the request with key %q has already started an execution", e.Key)
}
