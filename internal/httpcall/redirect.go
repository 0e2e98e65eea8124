package httpcall

import (
	"errors"
	"fmt"
	"net/http"
)

const maxRedirects = 10

// guarded removes all headers and the Referer on a redirect to another host or from https to http:
// an API key may have any header name. Once removed, they stay removed. A redirect that would send
// the body to another host is refused.
func guarded(client *http.Client, headers map[string]string) *http.Client {
	own, next := *client, client.CheckRedirect
	own.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if leaves(req, via) {
			if req.Body != nil && req.Body != http.NoBody {
				return &redirectError{req.Response.StatusCode, Shown(req.URL.String())}
			}
			req.Header.Del("Referer")
			for name := range headers {
				req.Header.Del(name)
			}
		}
		switch {
		case next != nil:
			return next(req, via)
		case len(via) >= maxRedirects:
			return errors.New("stopped after 10 redirects")
		}
		return nil
	}
	return &own
}

// redirectError is a redirect that would send the body to another host.
type redirectError struct {
	code int
	to   string
}

func (e *redirectError) Error() string {
	return fmt.Sprintf("the server answered %d, a redirect to %s: a body is not sent to another host; if it is the right one, use its URL", e.code, e.to)
}

func leaves(req *http.Request, via []*http.Request) bool {
	first := via[0].URL
	for _, r := range append(via[1:len(via):len(via)], req) {
		if r.URL.Host != first.Host || first.Scheme == "https" && r.URL.Scheme != "https" {
			return true
		}
	}
	return false
}
