package httpcall

import (
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

const shownBytes = 300

// StatusError is an answer with an unexpected status. Error classes recognize it by its
// method StatusCode.
type StatusError struct {
	code int
	text string
	wait time.Duration
}

// Error is the status, and the beginning of the answer.
func (e *StatusError) Error() string { return e.text }

// StatusCode is the status, such as 404.
func (e *StatusError) StatusCode() int { return e.code }

// RetryAfter is the wait that the server requests before the next request; 0 means none.
func (e *StatusError) RetryAfter() time.Duration { return e.wait }

// Readable reports whether the body is a complete text that a database can hold.
func (a *Answer) Readable() bool {
	return !a.Cut && utf8.Valid(a.Body) && !strings.Contains(string(a.Body), "\x00")
}

// Failure is the error of an answer without success: retryable if the same request may succeed later.
func (a *Answer) Failure() error {
	text := "the server answered " + a.Status
	if a.Readable() && len(a.Body) > 0 {
		text += ": " + strings.ToValidUTF8(string(a.Body[:min(len(a.Body), shownBytes)]), "")
	}
	failed := &StatusError{code: a.Code, text: text, wait: a.Wait}
	if a.Again {
		return exception.Retryable("", failed)
	}
	return failed
}

// Shown is an address without its user and query, which may be secrets.
func Shown(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the request"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// CheckHeader refuses a header that cannot be sent.
func CheckHeader(name, value string) error {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r) }) {
		return fmt.Errorf("%q is not a header name", name)
	}
	if strings.ContainsAny(value, "\r\n\x00") {
		return fmt.Errorf("the value has a line break, which is not allowed in a header")
	}
	return nil
}
