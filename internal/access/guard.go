package access

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// Config configures a Guard.
type Config struct {
	// Without Clients everyone on this machine may read, and no one may change anything.
	Clients []settings.Client
	// Rate is in requests per second and client.
	Rate int
	// Log: nil means slog.Default().
	Log *slog.Logger
	// Now: nil means time.Now.
	Now func() time.Time
	// Stopping is closed when the server stops; may be nil.
	Stopping <-chan struct{}
	// Proxy signs users in; may be zero.
	Proxy Proxy
	// UserOf replaces clients, sessions, the proxy and the rate; may be nil.
	UserOf UserOf
	// Base is the path of the server below its host, such as /surfin; may be empty.
	Base string
	// Note writes the audit of signing in and out; nil means that none is written.
	Note Note
}

// Note notes in the audit that a client signed in, or out.
type Note func(ctx context.Context, in bool, client, address string) error

// Guard admits requests to the rooms of a server, which share its clients and
// their rates.
type Guard struct {
	config  Config
	door    door
	limiter *limiter
	origins *http.CrossOriginProtection
	link    linkCode
}

// New returns a guard.
func New(config Config) *Guard {
	if config.Log == nil {
		config.Log = slog.Default()
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Note == nil {
		config.Note = func(context.Context, bool, string, string) error { return nil }
	}
	return &Guard{
		config: config, door: newDoor(config.Clients, config.Proxy, config.Now), limiter: newLimiter(config.Rate, config.Now),
		origins: http.NewCrossOriginProtection(),
	}
}

// Room is a part of a server, such as the API or the console.
type Room struct {
	// Name is used in the log.
	Name string
	// Enter serves admitted requests: CallerOf of their context is the client, and
	// their body has at most MaxBody bytes.
	Enter http.Handler
	// Refuse renders a refusal for the room's clients.
	Refuse func(w http.ResponseWriter, r *http.Request, refused *Refusal)
	// Open returns true for requests that need no client and no role, such as those
	// of the sign-in: CallerOf may be unknown then. May be nil.
	Open func(r *http.Request) bool
}

// Protect returns the handler of a room. A request that it refuses changes nothing.
func (g *Guard) Protect(room Room) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer g.recovered(room, w, r)
		who, refused := g.admit(room, r)
		if refused != nil {
			room.Refuse(w, r, refused)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), callerKey{}, who))
		r.Body = http.MaxBytesReader(w, r.Body, MaxBody)
		room.Enter.ServeHTTP(w, r)
	})
}

func (g *Guard) admit(room Room, r *http.Request) (Caller, *Refusal) {
	if refused := g.check(r); refused != nil {
		return Caller{}, refused
	}
	who, refused := g.identify(r)
	open := room.Open != nil && room.Open(r)
	switch {
	case refused != nil && open && (refused.Status == http.StatusUnauthorized || g.config.UserOf != nil):
		return Caller{}, nil
	case refused == nil && !reads(r) && !open:
		return who, who.mayChange()
	}
	return who, refused
}

func (g *Guard) identify(r *http.Request) (Caller, *Refusal) {
	if g.config.UserOf != nil {
		return g.config.UserOf.identify(r)
	}
	who, refused := g.door.identify(r)
	client := "client " + who.Name
	if who.Name == "" { // limited by address, so that tokens cannot be guessed faster
		client = "address " + HostOf(r.RemoteAddr)
	}
	if wait := g.limiter.take(client); wait > 0 {
		return who, &Refusal{http.StatusTooManyRequests, fmt.Sprintf("%s: more than %d requests a second", client, g.config.Rate), wait}
	}
	return who, refused
}

func (g *Guard) check(r *http.Request) *Refusal {
	query, err := url.QueryUnescape(strings.ReplaceAll(r.URL.RawQuery, ";", "%3B"))
	switch {
	case err != nil || !IsText(r.URL.Path) || !IsText(query):
		return refuse(http.StatusBadRequest, "the URL is not valid UTF-8, or contains a NUL character")
	case r.ContentLength > MaxBody:
		return refuse(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", MaxBody))
	}
	if err := g.origins.Check(r); err != nil {
		return refuse(http.StatusForbidden, "a page of another site must not request this: "+err.Error())
	}
	if !reads(r) && g.isStopping() {
		return &Refusal{http.StatusServiceUnavailable, "the server is stopping", RetryAfter}
	}
	return nil
}

func reads(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead
}

func (g *Guard) isStopping() bool {
	select {
	case <-g.config.Stopping:
		return true
	default: // also if there is no such channel
		return false
	}
}

func (g *Guard) recovered(room Room, w http.ResponseWriter, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler { //nolint:errorlint // as net/http compares it
		panic(v)
	}
	g.config.Log.ErrorContext(r.Context(), "a request of "+room.Name+" panicked", "method", r.Method, "path", r.URL.Path, "panic", v, "stack", string(debug.Stack()))
	room.Refuse(w, r, refuse(http.StatusInternalServerError, "the server failed; see its log"))
}
