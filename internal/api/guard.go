package api

import (
	"bytes"
	"context"
	"net/http"
	"strings"

	"github.com/surfin-batch/surfin/internal/access"
	"github.com/surfin-batch/surfin/internal/operator"
)

// front has the handlers of a server: the probes, which need neither token nor
// rate, the API, and the pages, if there are any.
func front(config Config, mux *http.ServeMux) (http.Handler, error) {
	guard := access.New(access.Config{
		Clients: config.Clients, Rate: config.Rate, Now: config.Now, Log: config.Log, Stopping: config.stopping,
		Proxy: config.Proxy, UserOf: config.UserOf, Base: config.BasePath, Note: func(ctx context.Context, in bool, client, address string) error {
			ctx, end := access.Answering(ctx, config.Service.CheckDatabase)
			defer end()
			return config.Service.NoteSignIn(ctx, in, client, address)
		},
	})
	if config.Announce != nil {
		config.Announce(guard)
	}
	probes := &Health{Check: config.Service.CheckDatabase, Stopping: config.stopping, Log: config.Log}
	operations := &guarded{config: config, mux: mux}
	room := guard.Protect(access.Room{Name: "the API", Enter: operations, Refuse: refuse})
	var pages http.Handler
	if config.Pages != nil {
		var err error
		if pages, err = config.Pages(guard, operations); err != nil {
			return nil, err
		}
	}
	return below(config.BasePath, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case config.UserOf == nil && isProbe(r):
			probes.ServeHTTP(w, r)
		case pages != nil && !ofAPI(r.URL.Path):
			pages.ServeHTTP(w, r)
		default:
			h := w.Header()
			h.Set("Cache-Control", "no-store")
			h.Set("X-Content-Type-Options", "nosniff")
			h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
			room.ServeHTTP(w, r)
		}
	})), nil
}

// below serves paths with the base, and those from which a proxy has removed it.
func below(base string, handler http.Handler) http.Handler {
	if base == "" {
		return handler
	}
	stripped := http.StripPrefix(base, handler)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == base || r.URL.Path == "":
			http.Redirect(w, r, base+"/", http.StatusPermanentRedirect)
		case strings.HasPrefix(r.URL.Path, base+"/"):
			stripped.ServeHTTP(w, r)
		default:
			handler.ServeHTTP(w, r)
		}
	})
}

func ofAPI(path string) bool {
	return path == "/v1" || strings.HasPrefix(path, "/v1/") || path == documentPath
}

func refuse(w http.ResponseWriter, r *http.Request, refused *access.Refusal) {
	refused.SetChallenge(w.Header(), r)
	refused.SetRetryAfter(w.Header())
	newProblem(refused.Status, refused.Text).write(w)
}

type guarded struct {
	config Config
	mux    *http.ServeMux
}

func (g *guarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, pattern := g.mux.Handler(r)
	if pattern == "GET "+streamPath { // it has no end
		g.mux.ServeHTTP(w, r)
		return
	}
	ctx, end := access.Answering(r.Context(), g.config.Service.CheckDatabase)
	defer end()
	r = r.WithContext(operator.WithClient(ctx, g.config.Paths))
	lowerMediaType(r.Header)
	if pattern == "" {
		g.unknown(w, r)
		return
	}
	masked := &maskedAnswer{ResponseWriter: w, mask: g.config.Mask}
	g.mux.ServeHTTP(masked, r)
	masked.send()
}

type maskedAnswer struct {
	http.ResponseWriter
	mask   func(document []byte) []byte
	status int
	body   bytes.Buffer
}

func (m *maskedAnswer) WriteHeader(status int) {
	if m.status == 0 {
		m.status = status
	}
}

func (m *maskedAnswer) Write(p []byte) (int, error) {
	m.WriteHeader(http.StatusOK)
	return m.body.Write(p)
}

func (m *maskedAnswer) send() {
	if m.status == 0 {
		return
	}
	m.ResponseWriter.WriteHeader(m.status)
	_, _ = m.ResponseWriter.Write(m.mask(m.body.Bytes())) //nolint:errcheck // the client has gone
}

func (g *guarded) unknown(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := g.mux.Handler(other); pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		newProblem(http.StatusNotFound, "there is no such URL: "+documentPath+" lists the existing ones").write(w)
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	newProblem(http.StatusMethodNotAllowed, "allowed here: "+strings.Join(allowed, ", ")).write(w)
}
