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
	return refuse(http.StatusForbidden, "client "+c.Name+" is a viewer: it may only read")
}
