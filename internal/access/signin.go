package access

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// SignIn is the state of the page for signing in.
type SignIn struct {
	// Wrong is why it failed; may be empty.
	Wrong string
	// RetryAfter is the wait before another try; 0 means none.
	RetryAfter time.Duration
	// Over means that the browser has a session that has ended.
	Over bool
	// Next is the path of the page that follows.
	Next string
	// Open means that there are no tokens: a link signs in.
	Open bool
	// Caller is the present client, if any.
	Caller Caller
	Status int
}

// IsSignIn reports whether a path is one of SignIns.
func IsSignIn(path string) bool { return path == "/login" || path == "/logout" }

// SignIns returns the handler of /login and /logout, or nil if the application has a sign-in of its own. page renders SignIn.
func (g *Guard) SignIns(page func(w http.ResponseWriter, r *http.Request, s SignIn)) http.Handler {
	if g.config.UserOf != nil {
		return nil
	}
	s := &signIns{guard: g, page: page}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /login", s.show)
	mux.HandleFunc("POST /login", s.signIn)
	mux.HandleFunc("POST /logout", s.signOut)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		SetPageHeaders(w.Header())
		g.Protect(Room{Name: "the sign-in", Enter: mux, Refuse: s.refuse, Open: func(*http.Request) bool { return true }}).ServeHTTP(w, r)
	})
}

// NewLink returns the path and query of a link that makes an operator's session
// in a browser, once, for ten minutes, by this process. It is "" unless the
// server has neither tokens nor a proxy. An earlier link ends.
func (g *Guard) NewLink() string {
	if !g.door.open() {
		return ""
	}
	return g.config.Base + "/login?code=" + g.link.renew(g.config.Now())
}

// ToSignIn redirects a browser that must sign in first, and reports whether it did.
// A fragment is not redirected: its page says that the session is over.
func (g *Guard) ToSignIn(w http.ResponseWriter, r *http.Request, refused *Refusal) bool {
	if r.Header.Get("HX-Request") != "" || refused.Status != http.StatusUnauthorized || r.Method != http.MethodGet || g.door.open() || !strings.Contains(r.Header.Get("Accept"), "text/html") {
		return false
	}
	http.Redirect(w, r, g.config.Base+"/login?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
	return true
}

// SetPageHeaders sets the headers of every page: it is not kept, not framed, and loads nothing from another host.
func SetPageHeaders(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
}

type signIns struct {
	guard *Guard
	page  func(w http.ResponseWriter, r *http.Request, s SignIn)
}

func (s *signIns) render(w http.ResponseWriter, r *http.Request, status int, wrong string) {
	s.refuse(w, r, refuse(status, wrong))
}

func (s *signIns) refuse(w http.ResponseWriter, r *http.Request, refused *Refusal) {
	refused.SetRetryAfter(w.Header())
	who := CallerOf(r.Context())
	over := who.Name == "" && hasSession(r) && (refused.Status == http.StatusOK || refused.Status == http.StatusUnauthorized)
	s.page(w, r, SignIn{
		Wrong: refused.Text, RetryAfter: refused.RetryAfter, Over: over, Next: nextOf(r), Open: s.guard.door.open(), Caller: who, Status: refused.Status,
	})
}

func (s *signIns) show(w http.ResponseWriter, r *http.Request) {
	code := r.URL.Query().Get("code")
	if code == "" || r.Method == http.MethodHead {
		s.render(w, r, http.StatusOK, "")
		return
	}
	if s.guard.door.open() {
		if end, valid := s.guard.link.use(code, s.guard.config.Now()); valid {
			if !s.begin(w, r, linkCaller()) { // the database was away: the link can be opened again
				s.guard.link.restore(code, end)
			}
			return
		}
	}
	s.render(w, r, http.StatusForbidden, "the link was used, is older than ten minutes, or is of another process: start the server again for another")
}

func (s *signIns) signIn(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		status := http.StatusBadRequest
		if errors.As(err, new(*http.MaxBytesError)) {
			status = http.StatusRequestEntityTooLarge
		}
		s.render(w, r, status, "the form cannot be read")
		return
	}
	who := s.guard.door.byToken(r.PostForm.Get("token"), "")
	if who.Name == "" {
		address := HostOf(r.RemoteAddr)
		s.guard.config.Log.WarnContext(r.Context(), "a sign-in with an unknown token", "address", address)
		refused := refuse(http.StatusUnauthorized, "the token belongs to no client")
		if wait := s.guard.limiter.take("address " + address); wait > 0 {
			refused = &Refusal{http.StatusTooManyRequests, "too many sign-ins failed from this address", wait}
		}
		s.refuse(w, r, refused)
		return
	}
	s.begin(w, r, who)
}

// begin reports whether the session began.
func (s *signIns) begin(w http.ResponseWriter, r *http.Request, who Caller) bool {
	g := s.guard
	if err := g.config.Note(r.Context(), true, who.Name, HostOf(r.RemoteAddr)); err != nil {
		g.config.Log.ErrorContext(r.Context(), "a sign-in could not be noted in the audit", "client", who.Name, "error", err)
		s.refuse(w, r, &Refusal{http.StatusServiceUnavailable, "the sign-in cannot be noted in the audit: the database does not answer", RetryAfter})
		return false
	}
	http.SetCookie(w, sessionCookie(r, g.config.Base, g.door.sessions.value(who, g.config.Now().Add(SessionTime))))
	http.Redirect(w, r, g.config.Base+nextOf(r), http.StatusSeeOther)
	return true
}

func (s *signIns) signOut(w http.ResponseWriter, r *http.Request) {
	g := s.guard
	if who, is := g.door.sessions.find(r, g.config.Now()); is {
		if err := g.config.Note(r.Context(), false, who.Name, HostOf(r.RemoteAddr)); err != nil {
			g.config.Log.ErrorContext(r.Context(), "a sign-out could not be noted in the audit", "client", who.Name, "error", err)
		}
	}
	http.SetCookie(w, sessionCookie(r, g.config.Base, ""))
	http.Redirect(w, r, g.config.Base+"/login", http.StatusSeeOther)
}

// nextOf returns a path of this server, without the base, so that no link leads elsewhere.
func nextOf(r *http.Request) string {
	next := r.URL.Query().Get("next")
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") ||
		IsSignIn(u.Path) {
		return "/"
	}
	return u.RequestURI()
}
