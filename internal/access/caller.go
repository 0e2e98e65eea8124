package access

import (
	"context"
	"net/http"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// Caller is the client that a request is from.
type Caller struct {
	Name string // empty if unknown
	Role settings.Role
	// Until is the end of the session; zero without one.
	Until time.Time

	// user: the application names it, and has signed it in.
	user bool
}

// Actor is the caller in the audit.
func (c Caller) Actor() string {
	if c.user {
		return c.Name
	}
	return "API client " + c.Name
}

type callerKey struct{}

// CallerOf returns the client of an admitted request. Without clients it has no
// name, and is a viewer.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller) //nolint:errcheck // absent is unknown
	return c
}

const readOnly = "this server has no tokens, so it is read-only: set api.operator_tokens.NAME (surfin help settings), or open the link that it printed"

func (c Caller) mayChange() *Refusal {
	switch {
	case c.Role == settings.Operator:
		return nil
	case c.Name == "":
		return refuse(http.StatusUnauthorized, readOnly)
	}
	kind := "client "
	if c.user {
		kind = "user "
	}
	return refuse(http.StatusForbidden, kind+c.Name+" is a viewer: it may only read")
}
