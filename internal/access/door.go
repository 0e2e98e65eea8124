package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// Listen opens HOST:PORT. Without clients and proxies it must be a loopback
// address, because everyone may then read.
func Listen(ctx context.Context, address string, clients []settings.Client, proxies ...netip.Prefix) (net.Listener, error) {
	var config net.ListenConfig
	at, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", address, err)
	}
	if len(clients)+len(proxies) == 0 && !isLoopback(HostOf(at.Addr().String())) {
		err := fmt.Errorf("listen at %s: without tokens the API is only for this machine: listen at a loopback address such as 127.0.0.1:8321, or set api.operator_tokens.NAME", address)
		return nil, errors.Join(err, at.Close())
	}
	return at, nil
}

type door struct {
	clients  []known
	proxy    Proxy
	sessions *sessions
	now      func() time.Time
}

// Hashes have one length, so a comparison takes constant time.
type known struct {
	Caller
	token [sha256.Size]byte
}

func newDoor(clients []settings.Client, proxy Proxy, now func() time.Time) door {
	d := door{proxy: proxy, sessions: newSessions(clients), now: now}
	if len(clients) == 0 {
		d.sessions.add(linkCaller(), []byte(secretText()))
	}
	for _, c := range clients {
		d.clients = append(d.clients, known{Caller{Name: c.Name, Role: c.Role}, sha256.Sum256([]byte(c.Token))})
	}
	return d
}

// open reports whether everyone on this machine may read.
func (d door) open() bool { return len(d.clients) == 0 && len(d.proxy.From) == 0 }

// identify refuses with 401 if the caller is unknown.
func (d door) identify(r *http.Request) (Caller, *Refusal) {
	who, known, refused := d.proxy.identify(r)
	if known || refused != nil {
		return who, refused
	}
	headers := r.Header.Values("Authorization")
	if session, is := d.sessions.find(r, d.now()); is && len(headers) == 0 {
		if d.open() {
			return session, checkHost(r)
		}
		return session, nil
	}
	switch {
	case len(headers) == 0 && d.open():
		return Caller{Role: settings.Viewer}, checkHost(r)
	case d.open():
		return Caller{}, refuse(http.StatusUnauthorized, readOnly)
	case len(headers) == 0 && hasSession(r):
		return Caller{}, refuse(http.StatusUnauthorized, "the session is over: sign in again")
	case len(headers) == 0 && len(d.clients) == 0:
		return Caller{}, refuse(http.StatusUnauthorized, "the proxy (api.proxy.from) has signed no user in")
	case len(headers) == 0:
		return Caller{}, refuse(http.StatusUnauthorized, "a token is needed: Authorization: Bearer TOKEN, or basic with the client's name and its token")
	case len(headers) > 1:
		return Caller{}, refuse(http.StatusUnauthorized, "there are several headers Authorization")
	}
	found := d.find(r, headers[0])
	if found.Name == "" {
		return Caller{}, refuse(http.StatusUnauthorized, "the token, or the user and password, belong to no client")
	}
	return found, nil
}

func (d door) find(r *http.Request, header string) Caller {
	name, token, basic := r.BasicAuth()
	if !basic {
		scheme, bearer, _ := strings.Cut(header, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return Caller{}
		}
		token = bearer
	}
	if basic && name == "" {
		return Caller{}
	}
	return d.byToken(token, name)
}

// byToken compares with every client, also after a match. An empty name is any.
func (d door) byToken(token, name string) (found Caller) {
	sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
	for _, k := range d.clients {
		same := subtle.ConstantTimeCompare(sum[:], k.token[:]) == 1
		if same && (name == "" || name == k.Name) {
			found = k.Caller
		}
	}
	return found
}

// Without tokens, a page of another site could point its own name here.
func checkHost(r *http.Request) *Refusal {
	host := HostOf(r.Host)
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") || isLoopback(host) {
		return nil
	}
	return refuse(http.StatusForbidden, "without a token the server accepts only requests to localhost or a loopback address")
}
