package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

type caller struct {
	name string // empty if unknown
	role settings.Role
}

type callerKey struct{}

func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller) //nolint:errcheck // absent is nobody
	return c
}

type door struct{ clients []known }

// Hashes have one length, so a comparison takes constant time.
type known struct {
	caller
	token [sha256.Size]byte
}

func newDoor(clients []settings.Client) door {
	var d door
	for _, c := range clients {
		d.clients = append(d.clients, known{caller{c.Name, c.Role}, sha256.Sum256([]byte(c.Token))})
	}
	return d
}

// 401 if the caller is unknown, 403 if that client may not.
func (d door) admit(r *http.Request) (caller, *Problem) {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	headers := r.Header.Values("Authorization")
	switch {
	case len(headers) == 0 && len(d.clients) == 0 && reads:
		return caller{role: settings.Viewer}, checkHost(r)
	case len(d.clients) == 0:
		return caller{}, newProblem(http.StatusUnauthorized,
			"this server has no tokens, so it is read-only: set api.operator_tokens.NAME (surfin help settings)")
	case len(headers) == 0:
		return caller{}, newProblem(http.StatusUnauthorized, "a token is needed: Authorization: Bearer TOKEN, or basic with the client's name and its token")
	case len(headers) > 1:
		return caller{}, newProblem(http.StatusUnauthorized, "there are several headers Authorization")
	}
	found := d.find(r, headers[0])
	switch {
	case found.name == "":
		return caller{}, newProblem(http.StatusUnauthorized, "the token, or the user and password, belong to no client")
	case !reads && found.role != settings.Operator:
		return found, newProblem(http.StatusForbidden, "client "+found.name+" is a viewer: it may only read")
	}
	return found, nil
}

// find compares with every client, also after a match.
func (d door) find(r *http.Request, header string) (found caller) {
	name, token, basic := r.BasicAuth()
	if !basic {
		scheme, bearer, _ := strings.Cut(header, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return caller{}
		}
		token = bearer
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
	for _, k := range d.clients {
		same := subtle.ConstantTimeCompare(sum[:], k.token[:]) == 1
		if same && (!basic || name == k.name) {
			found = k.caller
		}
	}
	return found
}

// Without tokens, a page of another site could point its own name here.
func checkHost(r *http.Request) *Problem {
	host := hostOf(r.Host)
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") || isLoopback(host) {
		return nil
	}
	return newProblem(http.StatusForbidden, "without a token the server accepts only requests to localhost or a loopback address")
}

func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return strings.Trim(address, "[]")
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
