package access

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Refusal is a request that was not admitted. It changed nothing.
type Refusal struct {
	// Status is the status code of HTTP.
	Status int
	Text   string
	// RetryAfter is the wait before a repetition; 0 means that it would be
	// refused again.
	RetryAfter time.Duration
}

// SetRetryAfter sets the header, if there is a wait.
func (r *Refusal) SetRetryAfter(h http.Header) {
	if r.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(r.RetryAfter.Seconds()))))
	}
}

// SetChallenge sets the header that names the ways to sign in, if the client is unknown. A script of a
// page is not offered basic authentication: its browser would ask for a password, over the page.
func (r *Refusal) SetChallenge(h http.Header, request *http.Request) {
	if r.Status != http.StatusUnauthorized {
		return
	}
	h.Add("WWW-Authenticate", `Bearer realm="surfin"`)
	if request.Header.Get("HX-Request") == "" && !strings.Contains(request.Header.Get("Accept"), "text/event-stream") && !hasSession(request) {
		h.Add("WWW-Authenticate", `Basic realm="surfin", charset="UTF-8"`)
	}
}

func refuse(status int, text string) *Refusal { return &Refusal{Status: status, Text: text} }
