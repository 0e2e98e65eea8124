package core

import (
	"context"
	"fmt"
)

// RequestKey names a request of a client: a repetition with the same key does nothing again.
// The zero value is none.
type RequestKey struct {
	Client string // who made the key
	Key    string
}

// ClientRequest is what is known of a request.
type ClientRequest struct {
	// Execution is what it has started; 0: nothing.
	Execution JobExecutionID
	// Answer is that of the first time; empty: it was not answered yet.
	Answer string
}

// Requests remembers the requests of clients by their keys.
type Requests interface {
	// ClaimRequest records a request, or returns what is known of it. fingerprint is the same
	// for the same request: a *KeyReusedError where the key was used for another one.
	ClaimRequest(ctx context.Context, key RequestKey, fingerprint string) (ClientRequest, error)
	// AnswerRequest keeps the answer, unless there is one. It returns the one that is kept.
	AnswerRequest(ctx context.Context, key RequestKey, answer string) (string, error)
}

// KeyReusedError says that a key was used for another request.
type KeyReusedError struct{ Key string }

// Error names the key.
func (e *KeyReusedError) Error() string {
	return fmt.Sprintf("key %q was used for another request: each request needs a key of its own", e.Key)
}

// RequestStartedError refuses a launch whose request has started an execution before. Nothing
// was changed.
type RequestStartedError struct{ Key string }

// Error names the key.
func (e *RequestStartedError) Error() string {
	return fmt.Sprintf("the request with key %q has started an execution already", e.Key)
}
