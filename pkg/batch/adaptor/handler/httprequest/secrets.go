package httprequest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/surfin-batch/surfin/internal/httpcall"
)

var named = regexp.MustCompile(`\$\{\s*secret\.([A-Za-z_][A-Za-z0-9_]*)\s*\}`)

// rule SE6
func (h *handler) fill(ctx context.Context, r *httpcall.Request) error {
	u, err := url.Parse(r.URL)
	if err != nil {
		return fmt.Errorf("url: %w", err)
	}
	if named.MatchString(r.URL) || strings.Contains(r.URL, "${secret.") {
		return errors.New("url: a secret is not allowed here, because URLs are logged on the way: put it into a header or the body")
	}
	for name, text := range r.Headers {
		if r.Headers[name], err = h.filled(ctx, text, u.Host, func(value string) string { return value }); err != nil {
			return fmt.Errorf("headers.%s: %w", name, err)
		}
	}
	inBody := func(value string) string { return value }
	if r.ContentType == "application/json" {
		inBody = inJSON
	}
	body, err := h.filled(ctx, string(r.Body), u.Host, inBody)
	if err != nil {
		return fmt.Errorf("body: %w", err)
	}
	if r.Body != nil {
		r.Body = []byte(body)
	}
	return nil
}

func (h *handler) filled(ctx context.Context, text, host string, form func(value string) string) (string, error) {
	var failed error
	filled := named.ReplaceAllStringFunc(text, func(hole string) string {
		name := named.FindStringSubmatch(hole)[1]
		if h.secret == nil {
			failed = errors.Join(failed, fmt.Errorf("${secret.%s}: no secret store is configured for tasks", name))
			return ""
		}
		value, err := h.secret(ctx, name, host)
		if err != nil {
			failed = errors.Join(failed, err)
		}
		return form(value)
	})
	return filled, failed
}

func inJSON(value string) string {
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(text[1 : len(text)-1])
}
