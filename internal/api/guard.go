package api

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/operator"
)

// A refused request changes nothing.
type guard struct {
	config  Config
	door    door
	limiter *limiter
	origins *http.CrossOriginProtection
	mux     *http.ServeMux
	health  *Health
}

func newGuard(config Config, mux *http.ServeMux) http.Handler {
	return &guard{
		config: config, door: newDoor(config.Clients), limiter: newLimiter(config.Rate, config.Now),
		origins: http.NewCrossOriginProtection(), mux: mux,
		health: &Health{Check: config.Service.CheckDatabase, Stopping: config.stopping, Log: config.Log},
	}
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer g.recovered(w, r)
	if isProbe(r) { // before tokens and rates: an orchestrator has neither
		g.health.ServeHTTP(w, r)
		return
	}
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	if p := g.check(r); p != nil {
		p.write(w)
		return
	}
	who, p := g.door.admit(r)
	client := "client " + who.name
	if who.name == "" { // limited by address, so that tokens cannot be guessed faster
		client = "address " + hostOf(r.RemoteAddr)
	}
	if wait := g.limiter.take(client); wait > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
		p = newProblem(http.StatusTooManyRequests, fmt.Sprintf("%s: more than %d requests a second", client, g.config.Rate))
	}
	if p != nil {
		if p.Status == http.StatusUnauthorized {
			h.Add("WWW-Authenticate", `Bearer realm="surfin"`)
			h.Add("WWW-Authenticate", `Basic realm="surfin", charset="UTF-8"`)
		}
		p.write(w)
		return
	}
	ctx, end := whileAnswering(context.WithValue(r.Context(), callerKey{}, who), g.config.Service.CheckDatabase)
	defer end()
	r = r.WithContext(operator.WithClient(ctx, g.config.Paths))
	lowerMediaType(r.Header)
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if _, pattern := g.mux.Handler(r); pattern == "" {
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

func (g *guard) check(r *http.Request) *Problem {
	query, err := url.QueryUnescape(strings.ReplaceAll(r.URL.RawQuery, ";", "%3B"))
	switch {
	case err != nil || !isText(r.URL.Path) || !isText(query):
		return newProblem(http.StatusBadRequest, "the URL is not valid UTF-8, or contains a NUL character")
	case r.ContentLength > maxBody:
		return newProblem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", maxBody))
	}
	if err := g.origins.Check(r); err != nil {
		return newProblem(http.StatusForbidden, "a page of another site must not request this: "+err.Error())
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead && g.isStopping() {
		return newProblem(http.StatusServiceUnavailable, "the server is stopping")
	}
	return nil
}

func (g *guard) isStopping() bool {
	select {
	case <-g.config.stopping:
		return true
	default: // also if there is no such channel
		return false
	}
}

func (g *guard) unknown(w http.ResponseWriter, r *http.Request) {
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

func (g *guard) recovered(w http.ResponseWriter, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler { //nolint:errorlint // as net/http compares it
		panic(v)
	}
	g.config.Log.ErrorContext(r.Context(), "a request of the API panicked", "method", r.Method, "path", r.URL.Path, "panic", v, "stack", string(debug.Stack()))
	newProblem(http.StatusInternalServerError, "the server failed; see its log").write(w)
}
