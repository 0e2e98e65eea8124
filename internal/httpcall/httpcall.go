// Package httpcall sends one HTTP request and returns the result.
//
// It imports core/exception and the standard library.
package httpcall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// DefaultTimeout is the timeout of a request without its own.
const DefaultTimeout = 30 * time.Second

// Request is an HTTP request.
type Request struct {
	// Method; "" means GET, or POST if there is a body.
	Method  string
	URL     string
	Headers map[string]string
	// Body is sent unless it is nil, with the type ContentType.
	Body        []byte
	ContentType string
	// Expected are the codes of success; empty means 200 to 299.
	Expected []int
	// Timeout bounds the request and its answer; 0 means DefaultTimeout.
	Timeout time.Duration
	// Keep is the maximum number of bytes read from the answer's body.
	Keep int64
}

// CheckURL refuses a text that is not a URL of the scheme http or https with a host.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("it must begin with http:// or https:// and name a host")
	}
	return nil
}

// Answer is a server's answer.
type Answer struct {
	Code   int
	Status string
	Header http.Header
	Body   []byte
	Cut    bool
	// Again reports that the same request may succeed later: 5xx, 408, 429 and every other code
	// that is neither expected nor 4xx.
	Success, Again bool
	Wait           time.Duration
	Asked          bool
}

// Do sends the request. The error shows neither user nor query of the URL. It is fatal if the
// request cannot be made, or if a redirect (307, 308) would send the body to another host.
func Do(ctx context.Context, client *http.Client, r Request) (*Answer, error) {
	if r.Timeout == 0 {
		r.Timeout = DefaultTimeout
	}
	outer := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, r.Timeout, &timeoutError{r.Timeout})
	defer cancel()
	req, err := r.make(ctx)
	if err != nil {
		return nil, exception.Fatal("", err)
	}
	got, err := guarded(client, r.Headers).Do(req)
	if err != nil {
		return nil, because(outer, ctx, err)
	}
	defer got.Body.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(io.LimitReader(got.Body, r.Keep+1))
	if err != nil {
		return nil, because(outer, ctx, err)
	}
	a := &Answer{Code: got.StatusCode, Status: got.Status, Header: got.Header, Body: body[:min(int64(len(body)), r.Keep)], Cut: int64(len(body)) > r.Keep}
	a.Success = slices.Contains(r.Expected, a.Code) || len(r.Expected) == 0 && a.Code/100 == 2
	a.Again = !a.Success && (a.Code/100 != 4 || a.Code == http.StatusTooManyRequests || a.Code == http.StatusRequestTimeout)
	a.Wait, a.Asked = retryAfter(got.Header, time.Now())
	return a, nil
}

// retryAfter compares a date with the server's own Date, or with now without one.
func retryAfter(h http.Header, now time.Time) (wait time.Duration, asked bool) {
	text := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(max(0, min(seconds, 1<<30))) * time.Second, seconds >= 0
	}
	until, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return max(until.Sub(now), 0), true
}

type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string { return fmt.Sprintf("no response within %v", e.after) }

func (e *timeoutError) Timeout() bool { return true }

func (e *timeoutError) Temporary() bool { return true }

// because returns the reason why no answer came: the end of the caller's context, else the timeout, else the
// network. Credentials of the URL are not shown.
func because(outer, ctx context.Context, err error) error {
	if cause := context.Cause(outer); cause != nil {
		return cause
	}
	if cause := context.Cause(ctx); cause != nil {
		return exception.Retryable("", cause)
	}
	if refused, ok := errors.AsType[*redirectError](err); ok {
		return exception.Fatal("", refused)
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	return exception.Retryable("", err)
}

func (r Request) make(ctx context.Context) (*http.Request, error) {
	method := r.Method
	if method == "" {
		method = http.MethodGet
		if r.Body != nil {
			method = http.MethodPost
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	if r.Body != nil {
		req.Header.Set("Content-Type", r.ContentType)
	}
	for name, value := range r.Headers {
		req.Header.Set(name, value)
		if strings.EqualFold(name, "Host") {
			req.Host = value
		}
	}
	return req, nil
}
